//! Round-trip times between namespaces, measured with datagrams that every end returns.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::time::Timespec;

use crate::error::NetError;
use crate::namespace::{Namespace, on_thread, within};
use crate::system::{become_realtime, block_signals};

const MAGIC: u32 = 0xc4a1_7e57;
const PING: u32 = 0;
const PONG: u32 = 1;
/// Magic, kind, pair, moment of sending.
const MESSAGE_BYTES: usize = 20;
/// How often pings are sent; those of one tick go out together.
const TICK: Duration = Duration::from_millis(1);
const EVENTS: usize = 64;

/// Bytes of one ping as a packet, with the headers of UDP and IPv4.
pub const PACKET_BYTES: usize = MESSAGE_BYTES + 28;

/// One end to measure between: a namespace (None: the caller's) and its address.
pub type End<'a> = (Option<&'a Namespace>, Ipv4Addr);

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// Pings of each ordered pair.
    pub pings: u32,
    /// Pings per second, over all pairs: few enough that they do not wait for one another.
    pub rate_per_s: u32,
    /// How long to wait for the last replies.
    pub patience: Duration,
}

/// Round-trip times in nanoseconds of every ordered pair of different ends, row by row. A ping without a reply has no
/// entry. The measuring thread has real-time priority if permitted, so that it measures the links and not the machine's
/// other load.
///
/// # Errors
/// [`NetError::OperatingSystem`] or [`NetError::Enter`], if sockets cannot be opened.
pub fn measure(ends: &[End], measurement: Measurement) -> Result<Vec<Vec<u64>>, NetError> {
    on_thread(|| {
        block_signals();
        become_realtime();
        measure_here(ends, measurement)
    })
}

fn measure_here(ends: &[End], measurement: Measurement) -> Result<Vec<Vec<u64>>, NetError> {
    let pairs: Vec<(usize, usize)> = (0..ends.len())
        .flat_map(|from| (0..ends.len()).filter(move |&to| to != from).map(move |to| (from, to)))
        .collect();
    let mut field = Field::new(ends, pairs.len())?;
    let total = pairs.len() as u64 * u64::from(measurement.pings);
    let begin = Instant::now();
    let (mut sent, mut last_sent) = (0u64, begin);
    while field.answered < total {
        let due = (begin.elapsed().as_secs_f64() * f64::from(measurement.rate_per_s)) as u64 + 1;
        while sent < due.min(total) {
            let pair = (sent % pairs.len() as u64) as usize;
            field.ping(pair, pairs[pair], begin);
            sent += 1;
            last_sent = Instant::now();
        }
        if sent == total && last_sent.elapsed() > measurement.patience {
            break;
        }
        field.answer(begin);
    }
    field.round_trips.resize(pairs.len(), Vec::new());
    Ok(field.round_trips)
}

/// The sockets of all ends.
struct Field {
    sockets: Vec<UdpSocket>,
    addresses: Vec<SocketAddr>,
    epoll: OwnedFd,
    round_trips: Vec<Vec<u64>>,
    answered: u64,
}

fn failed(source: io::Error) -> NetError {
    NetError::OperatingSystem { what: "sockets", source }
}

impl Field {
    fn new(ends: &[End], pairs: usize) -> Result<Self, NetError> {
        let bind = |&(namespace, address): &End| {
            within(namespace, || {
                let socket = UdpSocket::bind((address, 0)).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                Ok(socket)
            })
        };
        let sockets = ends.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let addresses = sockets.iter().map(|socket| socket.local_addr().map_err(failed)).collect::<Result<_, _>>()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        for (end, socket) in sockets.iter().enumerate() {
            epoll::add(&epoll, socket, epoll::EventData::new_u64(end as u64), epoll::EventFlags::IN)
                .map_err(|error| failed(error.into()))?;
        }
        Ok(Self { sockets, addresses, epoll, round_trips: vec![Vec::new(); pairs], answered: 0 })
    }

    /// Send a ping; one that the kernel refuses has no reply.
    fn ping(&mut self, pair: usize, (from, to): (usize, usize), begin: Instant) {
        let message = write(PING, pair as u32, begin.elapsed().as_nanos() as u64);
        self.sockets[from].send_to(&message, self.addresses[to]).ok();
    }

    /// Reply to pings and record replies until there is nothing more, at most for a tick if nothing arrives.
    fn answer(&mut self, begin: Instant) {
        let blank = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [blank; EVENTS];
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
        let count = epoll::wait(&self.epoll, &mut events, Some(&timeout)).unwrap_or(0);
        for event in &events[..count] {
            let socket = &self.sockets[event.data.u64() as usize];
            let mut message = [0; MESSAGE_BYTES + 1];
            while let Ok((bytes, from)) = socket.recv_from(&mut message) {
                match read(&message[..bytes]) {
                    Some((PING, pair, sent_ns)) => {
                        socket.send_to(&write(PONG, pair, sent_ns), from).ok();
                    }
                    Some((PONG, pair, sent_ns)) if (pair as usize) < self.round_trips.len() => {
                        self.round_trips[pair as usize].push(begin.elapsed().as_nanos() as u64 - sent_ns);
                        self.answered += 1;
                    }
                    _ => {}
                }
            }
        }
    }
}

fn write(kind: u32, pair: u32, sent_ns: u64) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(&MAGIC.to_be_bytes());
    message[4..8].copy_from_slice(&kind.to_be_bytes());
    message[8..12].copy_from_slice(&pair.to_be_bytes());
    message[12..].copy_from_slice(&sent_ns.to_be_bytes());
    message
}

/// Kind, pair and send time; None for a foreign message.
fn read(message: &[u8]) -> Option<(u32, u32, u64)> {
    let message: &[u8; MESSAGE_BYTES] = message.try_into().ok()?;
    let word = |at: usize| u32::from_be_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    (word(0) == MAGIC).then(|| (word(4), word(8), u64::from(word(12)) << 32 | u64::from(word(16))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ordered_pair_is_measured_as_often_as_requested() {
        let ends: Vec<End> = (1..4).map(|last| (None, Ipv4Addr::new(127, 66, 0, last))).collect();
        let measurement = Measurement { pings: 5, rate_per_s: 10_000, patience: Duration::from_secs(5) };
        let result = measure(&ends, measurement).unwrap();
        assert_eq!(result.len(), 6);
        for pair in result {
            assert_eq!(pair.len(), 5);
            assert!(pair.iter().all(|&ns| ns > 0 && ns < 1_000_000_000));
        }
    }

    #[test]
    fn foreign_messages_are_not_treated_as_responses() {
        assert_eq!(read(&write(PONG, 7, u64::MAX - 3)), Some((PONG, 7, u64::MAX - 3)));
        assert_eq!(read(&[0; MESSAGE_BYTES]), None);
        assert_eq!(read(&write(PING, 7, 8)[1..]), None);
    }
}
