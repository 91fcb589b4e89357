//! The switch between real namespaces, with the kernel's own TCP and UDP at both ends. Skipped, saying so, where
//! namespaces may not be made.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use chainmark_net::round_trips::{Measurement, measure};
use chainmark_net::{Cut, DelaySwitch, LineSettings, Namespace, NetError, Port, Stats, SwitchConfig};

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Namespaces and the switch between them; the last port is outside of all, spared and undelayed.
struct Net {
    namespaces: Vec<Namespace>,
    addresses: Vec<Ipv4Addr>,
    switch: DelaySwitch,
}

impl Net {
    /// `third` separates concurrent tests. None, with a reason on stderr, if the machine does not permit it.
    fn new(third: u8, nodes: usize, line: impl Fn(usize, usize) -> LineSettings) -> Option<Self> {
        match Self::try_new(third, nodes, line) {
            Ok(net) => Some(net),
            Err(error @ (NetError::Namespace { .. } | NetError::NoTun { .. })) => {
                eprintln!("skipped: {error}; {}", error.hint());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn try_new(third: u8, nodes: usize, line: impl Fn(usize, usize) -> LineSettings) -> Result<Self, NetError> {
        let namespaces = (0..nodes).map(|_| Namespace::new()).collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<Ipv4Addr> = (0..=nodes).map(|port| Ipv4Addr::new(198, 19, third, port as u8 + 1)).collect();
        let outside = format!("cmtest{third}");
        let mut ports: Vec<Port> = namespaces
            .iter()
            .zip(&addresses)
            .map(|(namespace, &address)| Port { namespace: Some(namespace), device: "wan0", address })
            .collect();
        ports.push(Port { namespace: None, device: &outside, address: addresses[nodes] });
        let of = |from, to| if from == nodes || to == nodes { LineSettings::default() } else { line(from, to) };
        let lines = (0..ports.len() * ports.len()).map(|pair| of(pair / ports.len(), pair % ports.len())).collect();
        let config = SwitchConfig { ports, lines, spared: Some(nodes), mtu: 1500, seed: 1 };
        let switch = DelaySwitch::start(&config)?;
        Ok(Self { namespaces, addresses, switch })
    }

    fn udp(&self, node: usize) -> UdpSocket {
        let address = self.addresses[node];
        let socket = match self.namespaces.get(node) {
            Some(namespace) => namespace.enter(|| Ok(UdpSocket::bind((address, 0)).unwrap())).unwrap(),
            None => UdpSocket::bind((address, 0)).unwrap(),
        };
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// A connection from one node to another: both ends.
    fn connection(&self, from: usize, to: usize) -> (TcpStream, TcpStream) {
        let address = self.addresses[to];
        let listener = self.namespaces[to].enter(|| Ok(TcpListener::bind((address, 0)).unwrap())).unwrap();
        let target = listener.local_addr().unwrap();
        let near = self.namespaces[from].enter(|| Ok(TcpStream::connect(target).unwrap())).unwrap();
        let far = listener.accept().unwrap().0;
        for stream in [&near, &far] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
        }
        (near, far)
    }

    fn finish(self) -> Stats {
        let stats = self.switch.stop().unwrap();
        assert!(stats.counts.balanced(), "{stats:?}");
        assert_eq!(stats.unread, 0);
        stats
    }
}

fn delayed(delay_ns: u64) -> LineSettings {
    LineSettings { delay_ns, ..LineSettings::default() }
}

#[test]
fn round_trips_take_the_delays_of_both_directions_and_the_outside_has_none() {
    let one_way = |from: usize, to: usize| if from < to { delayed(20 * MS) } else { delayed(30 * MS) };
    let Some(net) = Net::new(1, 3, one_way) else { return };
    let mut ends: Vec<_> = net.namespaces.iter().map(Some).zip(net.addresses.iter().copied()).collect();
    ends.push((None, net.addresses[3]));
    let pings = Measurement { pings: 10, rate_per_s: 2000, patience: PATIENCE };
    let measured = measure(&ends, pings).unwrap();
    let pairs = (0..4).flat_map(|from| (0..4).filter(move |&to| to != from).map(move |to| (from, to)));
    for ((from, to), times) in pairs.zip(measured) {
        let least = times.iter().copied().min().expect("no ping is lost");
        assert_eq!(times.len(), 10);
        let intended = if from == 3 || to == 3 { 0 } else { 50 * MS };
        assert!(least >= intended, "{from}-{to}: {least} ns");
        // The least of ten, so that a busy machine does not fail it.
        assert!(least < intended + 25 * MS, "{from}-{to}: {least} ns");
    }
    net.finish();
}

#[test]
fn datagrams_keep_their_order_under_jitter_and_all_arrive() {
    let jittery = LineSettings { delay_ns: 10 * MS, jitter_share: 0.5, ..LineSettings::default() };
    let Some(net) = Net::new(2, 2, |_, _| jittery) else { return };
    let (near, far) = (net.udp(0), net.udp(1));
    let target = far.local_addr().unwrap();
    let mut buffer = [0; 64];
    let mut expected = 0u32;
    for round in 0..20u32 {
        for number in round * 50..(round + 1) * 50 {
            near.send_to(&number.to_be_bytes(), target).unwrap();
        }
        while expected < (round + 1) * 50 {
            let bytes = far.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..bytes], expected.to_be_bytes());
            expected += 1;
        }
    }
    let stats = net.finish();
    assert_eq!(stats.counts.delivered, 1000);
    assert_eq!(stats.error.packets, 1000);
}

#[test]
fn a_stream_is_not_changed_by_loss_and_a_narrow_line_limits_its_rate() {
    let narrow = LineSettings { delay_ns: MS, jitter_share: 0.1, loss: 0.01, bandwidth_bps: Some(20_000_000) };
    let Some(net) = Net::new(3, 2, |_, _| narrow) else { return };
    let (mut near, mut far) = net.connection(0, 1);
    let sent: Vec<u8> = (0..1_000_000u32).map(|number| (number * 7 % 251) as u8).collect();
    let begin = Instant::now();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            near.write_all(&sent).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        far.read_to_end(&mut received).unwrap();
        received
    });
    assert!(received == sent);
    assert!(begin.elapsed() > Duration::from_millis(400), "a megabyte at 20 Mbit/s: {:?}", begin.elapsed());
    assert!(net.finish().counts.lost > 0);
}

/// Read until the stream ends somehow.
fn ending(stream: &mut TcpStream) -> ErrorKind {
    let mut buffer = [0; 64];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return ErrorKind::UnexpectedEof,
            Ok(_) => {}
            Err(error) => return error.kind(),
        }
    }
}

#[test]
fn a_cut_with_reset_ends_both_sockets_of_a_connection_and_restoring_allows_new_ones() {
    let Some(net) = Net::new(4, 3, |_, _| delayed(5 * MS)) else { return };
    let (mut near, mut far) = net.connection(0, 1);
    let (mut other, mut third) = net.connection(0, 2);
    near.write_all(b"before").unwrap();
    far.read_exact(&mut [0; 6]).unwrap();
    net.switch.cut(1, Cut::Reset).unwrap();
    near.write_all(b"in vain").unwrap();
    assert_eq!(ending(&mut near), ErrorKind::ConnectionReset);
    assert_eq!(ending(&mut far), ErrorKind::ConnectionReset);
    other.write_all(b"x").unwrap();
    third.read_exact(&mut [0; 1]).unwrap();
    let (outside, inside) = (net.udp(3), net.udp(1));
    outside.send_to(b"still seen", inside.local_addr().unwrap()).unwrap();
    assert_eq!(inside.recv(&mut [0; 64]).unwrap(), 10);
    net.switch.mend(1).unwrap();
    let (mut near, mut far) = net.connection(0, 1);
    near.write_all(b"again").unwrap();
    far.read_exact(&mut [0; 5]).unwrap();
    let stats = net.finish();
    assert!(stats.counts.cut > 0 && stats.counts.resets >= 2);
}

#[test]
fn a_cut_with_reset_ends_the_far_socket_even_if_packets_were_lost_before() {
    // The cut drops packets in flight, so the far end expects an older number than the next segment has: it sends a
    // challenge, and only the reset in response ends it.
    let Some(net) = Net::new(5, 2, |_, _| delayed(200 * MS)) else { return };
    let (mut near, mut far) = net.connection(0, 1);
    near.write_all(b"never arrives").unwrap();
    // A round trip to the outside: the segment has been read by then.
    let (outside, inside) = (net.udp(2), net.udp(0));
    inside.send_to(b"?", outside.local_addr().unwrap()).unwrap();
    outside.recv(&mut [0; 8]).unwrap();
    net.switch.cut(1, Cut::Reset).unwrap();
    near.write_all(b"in vain").unwrap();
    assert_eq!(ending(&mut near), ErrorKind::ConnectionReset);
    assert_eq!(ending(&mut far), ErrorKind::ConnectionReset);
    net.finish();
}

#[test]
fn connections_continue_after_a_silent_partition_is_healed() {
    let Some(net) = Net::new(6, 3, |_, _| delayed(MS)) else { return };
    let (mut near, mut far) = net.connection(0, 1);
    net.switch.partition(&[0, 1, 0, 0], Cut::Silent).unwrap();
    near.write_all(b"waits").unwrap();
    far.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(far.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    net.switch.heal().unwrap();
    let mut received = [0; 5];
    far.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"waits");
    assert_eq!(net.finish().counts.resets, 0);
}

#[test]
fn a_switch_that_is_dropped_leaves_no_device_behind() {
    let Some(net) = Net::new(7, 1, |_, _| delayed(MS)) else { return };
    let devices = || std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(devices().contains("cmtest7:"));
    drop(net);
    assert!(!devices().contains("cmtest7:"));
}

#[test]
fn invalid_requests_are_rejected_by_name() {
    let address = Ipv4Addr::new(198, 19, 8, 1);
    let port = Port { namespace: None, device: "cmtest8", address };
    let config = SwitchConfig { ports: vec![port; 2], lines: vec![delayed(0); 4], spared: None, mtu: 1500, seed: 0 };
    let refused = |config: &SwitchConfig| DelaySwitch::start(config).unwrap_err().to_string();
    assert_eq!(refused(&config), "an address is 198.19.8.1; it must be another one of the same /24 network");
    assert!(refused(&SwitchConfig { lines: vec![], ..config.clone() }).starts_with("the number of lines is 0"));
    assert!(refused(&SwitchConfig { mtu: 100, ..config.clone() }).starts_with("mtu is 100"));
    assert!(refused(&SwitchConfig { spared: Some(2), ..config }).starts_with("the spared port"));
}

#[test]
fn a_cut_of_an_unknown_port_is_rejected() {
    let Some(net) = Net::new(9, 1, |_, _| delayed(MS)) else { return };
    assert_eq!(net.switch.cut(7, Cut::Silent).unwrap_err().to_string(), "port is 7; it must be the number of a port");
    assert!(net.switch.partition(&[0], Cut::Silent).is_err());
    net.switch.stop().unwrap();
    assert_eq!(net.switch.mend(0).unwrap_err().to_string(), "the delay switch has ended");
}
