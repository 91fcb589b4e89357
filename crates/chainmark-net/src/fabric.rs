//! The switch without its devices: packets in, packets out when they are due, nothing in between forgotten.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::Ipv4Addr;

use crate::accounting::{AddedError, PacketCounts};
use crate::line::{Line, LineSettings};
use crate::packet::{Ipv4, resets};

/// Maximum number of packets in flight on one line, and of bytes on all of them: an amount that a machine can hold
/// safely.
pub const LINE_PACKETS_MAX: usize = 65_536;
pub const BYTES_MAX: usize = 512 << 20;

/// Where packets go, and what time it is.
pub trait Output {
    /// Hand a packet to a port; false if it was not accepted.
    fn write(&mut self, port: usize, packet: &[u8]) -> bool;
    /// Monotonic time in nanoseconds.
    fn now_ns(&mut self) -> u64;
}

/// How a line is cut, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LineCut {
    /// It works.
    #[default]
    None,
    /// Packets vanish.
    Silent,
    /// Packets vanish, and connections that still send are reset at both ends.
    Reset,
}

struct Packet {
    due_ns: u64,
    bytes: Box<[u8]>,
}

struct Lane {
    line: Line,
    is_direct: bool,
    cut: LineCut,
    queue: VecDeque<Packet>,
    /// The due time of the lane's entry in the schedule; an entry with another one is out of date.
    scheduled_ns: Option<u64>,
}

/// Ports, the lines between every ordered pair of them, and the accounting.
pub struct Fabric {
    ports: usize,
    /// The port of each address of the network, by the address's last byte.
    routes: [Option<u16>; 256],
    network: [u8; 3],
    lanes: Vec<Lane>,
    schedule: BinaryHeap<Reverse<(u64, usize)>>,
    queued_bytes: usize,
    counts: PacketCounts,
    error: AddedError,
}

impl Fabric {
    /// `addresses` of the ports, all in one /24 network; `settings(from, to)` of each ordered pair.
    pub fn new(addresses: &[Ipv4Addr], seed: u64, settings: impl Fn(usize, usize) -> LineSettings) -> Self {
        let ports = addresses.len();
        let mut routes = [None; 256];
        for (port, address) in addresses.iter().enumerate() {
            routes[usize::from(address.octets()[3])] = Some(port as u16);
        }
        let lane = |index: usize| {
            let settings = settings(index / ports, index % ports);
            Lane {
                line: Line::new(settings, seed, index as u64),
                is_direct: settings.is_direct(),
                cut: LineCut::None,
                queue: VecDeque::new(),
                scheduled_ns: None,
            }
        };
        let [first, second, third, _] = addresses.first().map_or([0; 4], Ipv4Addr::octets);
        Self {
            ports,
            routes,
            network: [first, second, third],
            lanes: (0..ports * ports).map(lane).collect(),
            schedule: BinaryHeap::new(),
            queued_bytes: 0,
            counts: PacketCounts::default(),
            error: AddedError::default(),
        }
    }

    pub fn counts(&self) -> PacketCounts {
        self.counts
    }

    pub fn error(&self) -> &AddedError {
        &self.error
    }

    /// When the next packet is due; it may be earlier than that after a cut, never later.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.schedule.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Take one packet that a port sent.
    pub fn arrive(&mut self, from: usize, bytes: &[u8], output: &mut impl Output) {
        self.counts.read += 1;
        self.counts.read_bytes += bytes.len() as u64;
        let Some(packet) = Ipv4::parse(bytes) else {
            self.counts.not_ipv4 += 1;
            return;
        };
        let Some(to) = self.route(packet.destination()).filter(|&to| to != from) else {
            self.counts.no_route += 1;
            return;
        };
        let index = from * self.ports + to;
        let lane = &mut self.lanes[index];
        if lane.cut != LineCut::None {
            self.counts.cut += 1;
            if lane.cut == LineCut::Reset {
                self.reset(from, to, &packet, output);
            }
        } else if lane.is_direct {
            self.deliver(to, bytes, output);
        } else {
            self.enqueue(index, bytes, output.now_ns());
        }
    }

    fn route(&self, destination: Ipv4Addr) -> Option<usize> {
        let [first, second, third, last] = destination.octets();
        if [first, second, third] != self.network {
            return None;
        }
        self.routes[usize::from(last)].map(usize::from)
    }

    fn reset(&mut self, from: usize, to: usize, packet: &Ipv4, output: &mut impl Output) {
        if let Some(resets) = resets(packet) {
            self.counts.resets += u64::from(output.write(from, &resets.to_sender));
            self.counts.resets += u64::from(output.write(to, &resets.to_receiver));
        }
    }

    fn deliver(&mut self, to: usize, bytes: &[u8], output: &mut impl Output) {
        if output.write(to, bytes) {
            self.counts.delivered += 1;
            self.counts.delivered_bytes += bytes.len() as u64;
        } else {
            self.counts.write_failed += 1;
        }
    }

    fn enqueue(&mut self, index: usize, bytes: &[u8], now_ns: u64) {
        let lane = &mut self.lanes[index];
        // A full queue is checked before the line: a packet that does not fit uses no time on the wire.
        if lane.queue.len() >= LINE_PACKETS_MAX || self.queued_bytes + bytes.len() > BYTES_MAX {
            self.counts.queue_full += 1;
            return;
        }
        let Some(due_ns) = lane.line.enter(now_ns, bytes.len()) else {
            self.counts.lost += 1;
            return;
        };
        lane.queue.push_back(Packet { due_ns, bytes: bytes.into() });
        self.queued_bytes += bytes.len();
        self.counts.queued += 1;
        if lane.scheduled_ns.is_none() {
            lane.scheduled_ns = Some(due_ns);
            self.schedule.push(Reverse((due_ns, index)));
        }
    }

    /// Write at most `limit` packets that are due; true if that was the limit and more may be.
    pub fn deliver_due(&mut self, limit: usize, output: &mut impl Output) -> bool {
        let mut now_ns = output.now_ns();
        let mut written = 0;
        while let Some(&Reverse((due_ns, index))) = self.schedule.peek()
            && due_ns <= now_ns
        {
            if written == limit {
                return true;
            }
            self.schedule.pop();
            if self.lanes[index].scheduled_ns != Some(due_ns) {
                continue;
            }
            let packet = self.lanes[index].queue.pop_front().expect("a scheduled lane has a packet");
            self.queued_bytes -= packet.bytes.len();
            self.counts.queued -= 1;
            self.deliver(index % self.ports, &packet.bytes, output);
            written += 1;
            now_ns = output.now_ns();
            self.error.record(now_ns.saturating_sub(packet.due_ns));
            let lane = &mut self.lanes[index];
            lane.scheduled_ns = lane.queue.front().map(|next| next.due_ns);
            if let Some(next_ns) = lane.scheduled_ns {
                self.schedule.push(Reverse((next_ns, index)));
            }
        }
        false
    }

    /// Set how every line is cut; packets in flight on a newly cut line are dropped and counted.
    pub fn set_cuts(&mut self, cut: impl Fn(usize, usize) -> LineCut) {
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            lane.cut = cut(index / self.ports, index % self.ports);
            if lane.cut != LineCut::None {
                self.counts.cut += lane.queue.len() as u64;
                self.counts.queued -= lane.queue.len() as u64;
                self.queued_bytes -= lane.queue.iter().map(|packet| packet.bytes.len()).sum::<usize>();
                lane.queue.clear();
                lane.line.clear();
                lane.scheduled_ns = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[derive(Default)]
    struct Recorded {
        now_ns: u64,
        fails: bool,
        written: Vec<(usize, u64, Vec<u8>)>,
    }

    impl Output for Recorded {
        fn write(&mut self, port: usize, packet: &[u8]) -> bool {
            if !self.fails {
                self.written.push((port, self.now_ns, packet.to_vec()));
            }
            !self.fails
        }

        fn now_ns(&mut self) -> u64 {
            self.now_ns
        }
    }

    fn address(port: usize) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 7, port as u8 + 1)
    }

    fn packet(from: usize, to: Ipv4Addr, number: u32) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[0] = 0x45;
        bytes[3] = 40;
        bytes[9] = 17;
        bytes[12..16].copy_from_slice(&address(from).octets());
        bytes[16..20].copy_from_slice(&to.octets());
        bytes[36..40].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    fn segment(from: usize, to: usize) -> Vec<u8> {
        let mut bytes = packet(from, address(to), 0);
        bytes[9] = 6;
        bytes[32] = 0x50;
        bytes[33] = 0x10;
        bytes
    }

    fn fabric(ports: usize, settings: LineSettings) -> Fabric {
        let addresses: Vec<Ipv4Addr> = (0..ports).map(address).collect();
        Fabric::new(&addresses, 5, |_, _| settings)
    }

    fn delayed(delay_ns: u64) -> LineSettings {
        LineSettings { delay_ns, ..LineSettings::default() }
    }

    #[test]
    fn a_packet_leaves_its_port_when_it_is_due_and_not_before() {
        let mut fabric = fabric(3, delayed(20 * MS));
        let mut output = Recorded { now_ns: 100 * MS, ..Recorded::default() };
        fabric.arrive(0, &packet(0, address(2), 9), &mut output);
        assert_eq!(fabric.next_due_ns(), Some(120 * MS));
        output.now_ns = 120 * MS - 1;
        fabric.deliver_due(usize::MAX, &mut output);
        assert!(output.written.is_empty());
        output.now_ns = 120 * MS + 7;
        fabric.deliver_due(usize::MAX, &mut output);
        assert_eq!(output.written, [(2, 120 * MS + 7, packet(0, address(2), 9))]);
        assert_eq!(fabric.error().summary().max_ns, 7);
    }

    #[test]
    fn undeliverable_packets_are_counted_by_reason() {
        let mut fabric = fabric(2, LineSettings::default());
        let mut output = Recorded::default();
        fabric.arrive(0, &[0x60; 60], &mut output);
        fabric.arrive(0, &packet(0, Ipv4Addr::new(8, 8, 8, 8), 0), &mut output);
        fabric.arrive(0, &packet(0, Ipv4Addr::new(198, 18, 7, 77), 0), &mut output);
        fabric.arrive(0, &packet(0, address(0), 0), &mut output);
        output.fails = true;
        fabric.arrive(0, &packet(0, address(1), 0), &mut output);
        let counts = fabric.counts();
        assert_eq!((counts.not_ipv4, counts.no_route, counts.write_failed, counts.read), (1, 3, 1, 5));
        assert!(counts.balanced());
    }

    #[test]
    fn a_full_queue_drops_and_counts_packets_instead_of_growing() {
        let mut fabric = fabric(2, delayed(MS));
        let mut output = Recorded::default();
        let one = packet(0, address(1), 0);
        for _ in 0..LINE_PACKETS_MAX + 3 {
            fabric.arrive(0, &one, &mut output);
        }
        assert_eq!(fabric.counts().queue_full, 3);
        output.now_ns = 10 * MS;
        assert!(fabric.deliver_due(10, &mut output));
        assert!(!fabric.deliver_due(usize::MAX, &mut output));
        assert_eq!(fabric.counts().delivered as usize, LINE_PACKETS_MAX);
        assert!(fabric.counts().balanced());
    }

    #[test]
    fn a_cut_drops_packets_in_flight_and_a_restored_line_works_again() {
        let mut fabric = fabric(3, delayed(10 * MS));
        let mut output = Recorded::default();
        fabric.arrive(0, &packet(0, address(1), 1), &mut output);
        fabric.set_cuts(|from, to| if from == 1 || to == 1 { LineCut::Silent } else { LineCut::None });
        fabric.arrive(1, &packet(1, address(0), 2), &mut output);
        fabric.arrive(0, &packet(0, address(2), 3), &mut output);
        fabric.set_cuts(|_, _| LineCut::None);
        output.now_ns = 5 * MS;
        fabric.arrive(0, &packet(0, address(1), 4), &mut output);
        output.now_ns = 12 * MS;
        fabric.deliver_due(usize::MAX, &mut output);
        output.now_ns = 15 * MS;
        fabric.deliver_due(usize::MAX, &mut output);
        let written: Vec<(usize, u64)> = output.written.iter().map(|(port, at, _)| (*port, *at)).collect();
        assert_eq!(written, [(2, 12 * MS), (1, 15 * MS)]);
        assert_eq!(fabric.counts().cut, 2);
        assert!(fabric.counts().balanced());
    }

    #[test]
    fn a_cut_with_reset_resets_both_ends_of_a_connection_and_ignores_datagrams() {
        let mut fabric = fabric(2, delayed(MS));
        let mut output = Recorded::default();
        fabric.set_cuts(|_, _| LineCut::Reset);
        fabric.arrive(0, &packet(0, address(1), 1), &mut output);
        assert!(output.written.is_empty());
        fabric.arrive(0, &segment(0, 1), &mut output);
        let ends: Vec<usize> = output.written.iter().map(|(port, ..)| *port).collect();
        assert_eq!(ends, [0, 1]);
        assert_eq!((fabric.counts().cut, fabric.counts().resets), (2, 2));
        assert!(fabric.counts().balanced());
    }

    proptest! {
        #[test]
        fn packets_of_a_pair_always_stay_in_order_and_the_counts_balance(
            steps in proptest::collection::vec((0usize..4, 0usize..5, 0..3 * MS, 0u8..20), 1..400),
            jitter_share in 0.0..1.0f64, loss in 0.0..0.5f64,
            bandwidth_bps in proptest::option::of(100_000u64..1 << 30),
        ) {
            let mut fabric = fabric(4, LineSettings { delay_ns: 5 * MS, jitter_share, loss, bandwidth_bps });
            let mut output = Recorded::default();
            let mut arrived = 0;
            for (number, (from, to, gap_ns, action)) in steps.into_iter().enumerate() {
                output.now_ns += gap_ns;
                match action {
                    0 => fabric.set_cuts(|a, b| if a == from || b == from { LineCut::Reset } else { LineCut::None }),
                    1 => fabric.set_cuts(|_, _| LineCut::None),
                    2 => fabric.arrive(from, &[number as u8; 25], &mut output),
                    3 => fabric.arrive(from, &segment(from, to), &mut output),
                    _ => fabric.arrive(from, &packet(from, address(to), number as u32), &mut output),
                }
                arrived += u64::from(action > 1);
                fabric.deliver_due(if number % 3 == 0 { 2 } else { usize::MAX }, &mut output);
                let counts = fabric.counts();
                prop_assert!(counts.balanced(), "{:?}", counts);
                // Counted independently of the accounting: received, queued, and delivered packets.
                let queued: usize = fabric.lanes.iter().map(|lane| lane.queue.len()).sum();
                let delivered = output.written.len() as u64 - counts.resets;
                prop_assert_eq!([counts.read, counts.queued, counts.delivered], [arrived, queued as u64, delivered]);
            }
            while let Some(due_ns) = fabric.next_due_ns() {
                output.now_ns = output.now_ns.max(due_ns);
                fabric.deliver_due(usize::MAX, &mut output);
            }
            prop_assert_eq!(fabric.counts().queued, 0);
            prop_assert!(fabric.counts().balanced());
            let mut last = [[0u32; 4]; 4];
            for (to, _, bytes) in output.written.iter().filter(|(_, _, bytes)| bytes[9] == 17) {
                let from = usize::from(bytes[15]) - 1;
                let number = u32::from_be_bytes([bytes[36], bytes[37], bytes[38], bytes[39]]) + 1;
                prop_assert!(number > last[from][*to]);
                last[from][*to] = number;
            }
        }
    }
}
