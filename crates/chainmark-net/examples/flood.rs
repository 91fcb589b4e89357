//! Sends datagrams through the switch at a fixed rate, and measures how late each arrives relative to the intended
//! time.
//!
//! `flood PACKETS_PER_S SECONDS PAYLOAD_BYTES DELAY_MS NODES` prints figures as JSON. One thread sends and receives on
//! core 0, the switch has core 1. Each packet carries its send time, so the error of the path includes everything on
//! it: the devices' queues, the switch, and the time until the receiver reads.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use chainmark_net::{DelaySwitch, LineSettings, Namespace, Port, SwitchConfig};
use hdrhistogram::Histogram;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::thread::{CpuSet, sched_setaffinity};

const NS_PER_S: u64 = 1_000_000_000;
/// Packets that are sent before the receiver has a look.
const BATCH: u64 = 8;
const HEADER: usize = 24;
const RECEIVE_BYTES: usize = 64 << 20;

struct Options {
    rate_per_s: u64,
    seconds: u64,
    payload: usize,
    delay_ns: u64,
    nodes: usize,
}

fn options() -> Options {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a whole number")).collect();
    let [rate_per_s, seconds, payload, delay_ms, nodes] = numbers[..] else {
        panic!("five numbers: packets per second, seconds, bytes of payload, delay in ms, nodes");
    };
    Options { rate_per_s, seconds, payload: payload as usize, delay_ns: delay_ms * 1_000_000, nodes: nodes as usize }
}

/// What the receiver saw.
struct Seen {
    error_ns: Histogram<u64>,
    received: u64,
    reordered: u64,
    early: u64,
    last: Vec<u64>,
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // On a machine with one core everything shares it.
    sched_setaffinity(None, &cores).ok();
}

/// Receive the available packets; sequence numbers must grow within each pair.
fn receive(sockets: &[UdpSocket], options: &Options, begin: Instant, seen: &mut Seen) {
    let mut buffer = [0; 2048];
    for (to, socket) in sockets.iter().enumerate() {
        while let Ok(bytes) = socket.recv(&mut buffer) {
            assert!(bytes >= HEADER);
            let word = |at: usize| u64::from_be_bytes(buffer[at..at + 8].try_into().expect("eight bytes"));
            let (sent_ns, number, from) = (word(0), word(8), word(16) as usize);
            let took_ns = begin.elapsed().as_nanos() as u64 - sent_ns;
            seen.received += 1;
            seen.early += u64::from(took_ns < options.delay_ns);
            seen.error_ns.saturating_record(took_ns.saturating_sub(options.delay_ns));
            let previous = &mut seen.last[from * options.nodes + to];
            seen.reordered += u64::from(number <= *previous);
            *previous = number;
        }
    }
}

/// Send to every ordered pair in turn, evenly spaced, and receive in between; late packets are sent at once. Returns
/// the number of sent packets, and the seconds that it took.
fn exchange(sockets: &[UdpSocket], options: &Options, seen: &mut Seen) -> (u64, f64) {
    let nodes = options.nodes;
    let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().expect("it is bound")).collect();
    let pairs: Vec<(usize, usize)> =
        (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes)).filter(|(from, to)| from != to).collect();
    let mut message = vec![0; options.payload.max(HEADER)];
    let total = options.rate_per_s * options.seconds;
    let (mut sent, mut number, begin) = (0, 0, Instant::now());
    while number < total {
        let due = (begin.elapsed().as_nanos() * u128::from(options.rate_per_s) / u128::from(NS_PER_S)) as u64 + 1;
        for _ in 0..due.min(total).saturating_sub(number).min(BATCH) {
            let (from, to) = pairs[(number % pairs.len() as u64) as usize];
            number += 1;
            message[0..8].copy_from_slice(&(begin.elapsed().as_nanos() as u64).to_be_bytes());
            message[8..16].copy_from_slice(&number.to_be_bytes());
            message[16..24].copy_from_slice(&(from as u64).to_be_bytes());
            sent += u64::from(sockets[from].send_to(&message, addresses[to]).is_ok());
        }
        receive(sockets, options, begin, seen);
    }
    let send_s = begin.elapsed().as_secs_f64();
    let end = Instant::now() + Duration::from_nanos(options.delay_ns) + Duration::from_millis(300);
    while Instant::now() < end && seen.received < sent {
        receive(sockets, options, begin, seen);
    }
    (sent, send_s)
}

fn main() {
    let options = options();
    let namespaces: Vec<Namespace> = (0..options.nodes).map(|_| Namespace::new().expect("namespaces")).collect();
    let address = |node: usize| Ipv4Addr::new(198, 19, 255, node as u8 + 1);
    let ports: Vec<Port> = namespaces
        .iter()
        .enumerate()
        .map(|(node, namespace)| Port { namespace: Some(namespace), device: "wan0", address: address(node) })
        .collect();
    let line = LineSettings { delay_ns: options.delay_ns, ..LineSettings::default() };
    let lines = vec![line; options.nodes * options.nodes];
    let config = SwitchConfig { ports, lines, spared: None, mtu: 1500, seed: 1 };
    pin(1);
    let switch = DelaySwitch::start(&config).expect("a switch");
    pin(0);
    let bind = |node: usize| {
        let socket = namespaces[node].enter(|| Ok(UdpSocket::bind((address(node), 7000)).expect("a port")));
        let socket = socket.expect("a namespace");
        socket.set_nonblocking(true).expect("a socket");
        // What the generator does not look at in time must wait, not vanish.
        set_socket_recv_buffer_size_force(&socket, RECEIVE_BYTES).expect("a larger buffer");
        socket
    };
    let sockets: Vec<UdpSocket> = (0..options.nodes).map(bind).collect();
    let error_ns = Histogram::new_with_max(60 * NS_PER_S, 3).expect("constants that fit");
    let mut seen = Seen { error_ns, received: 0, reordered: 0, early: 0, last: vec![0; options.nodes * options.nodes] };
    let (sent, send_s) = exchange(&sockets, &options, &mut seen);
    let stats = switch.stop().expect("the switch runs");
    assert!(stats.counts.balanced());
    let quantile = |share| seen.error_ns.value_at_quantile(share);
    println!(
        "{{\"sent\": {sent}, \"send_s\": {send_s:.3}, \"received\": {}, \"reordered\": {}, \"early\": {}, \
         \"path_p50_ns\": {}, \"path_p99_ns\": {}, \"path_max_ns\": {}, \"switch_p50_ns\": {}, \"switch_p99_ns\": {}, \
         \"switch_max_ns\": {}, \"switch_cpu_s\": {:.3}, \"delivered\": {}, \"unread\": {}, \"queue_full\": {}, \
         \"realtime\": {}}}",
        seen.received,
        seen.reordered,
        seen.early,
        quantile(0.5),
        quantile(0.99),
        seen.error_ns.max(),
        stats.error.p50_ns,
        stats.error.p99_ns,
        stats.error.max_ns,
        stats.cpu_ns as f64 / 1e9,
        stats.counts.delivered,
        stats.unread,
        stats.counts.queue_full,
        stats.realtime,
    );
}
