//! What surrounds the data of a line: everything about it that one host always prints alike, rendered once.

use chainmark_random::mix;

use crate::cluster::Cluster;
use crate::logs::message::{Legacy, MESSAGES, Message, MessageInfo};
use crate::logs::order::Format;

/// Legacy logs cut the host's name to this length.
const LEGACY_HOST_LENGTH: usize = 8;
const LEGACY_VERSION: &str = "8.1.2:d2d90";
const PORT: u32 = 3001;

/// Threads that every node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    Main,
    Resources,
    LedgerMetrics,
    AddBlock,
    LedgerSnapshot,
    Collect,
    Copy,
    Mempool,
    Progress,
    FetchDecision,
    Forge,
    LocalServer,
    RemoteServer,
    LedgerPeers,
    Governor,
    Shutdown,
}

const NODE_THREADS: [(Thread, u32); 16] = [
    (Thread::Main, 5),
    (Thread::Resources, 13),
    (Thread::LedgerMetrics, 15),
    (Thread::AddBlock, 29),
    (Thread::LedgerSnapshot, 31),
    (Thread::Collect, 33),
    (Thread::Copy, 35),
    (Thread::Mempool, 39),
    (Thread::Progress, 41),
    (Thread::FetchDecision, 45),
    (Thread::Forge, 49),
    (Thread::LocalServer, 51),
    (Thread::RemoteServer, 50),
    (Thread::LedgerPeers, 59),
    (Thread::Governor, 61),
    (Thread::Shutdown, 47),
];
const FIRST_LINK_THREAD: u32 = 70;

/// Threads that a node has for each of its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkThread {
    Inbound,
    SyncClient,
    FetchReceive,
    FetchSend,
    SyncServer,
    FetchServer,
}
const LINK_THREADS: u32 = 6;

/// One peer of a host, as it is printed.
#[derive(Debug, Clone)]
pub struct Link {
    pub peer: u32,
    /// `"connectionId":"…"`, or the addresses of both ends in a legacy log; without the braces.
    pub connection: Box<[u8]>,
    /// The older system's estimate of the one-way time, in seconds.
    pub one_way_s: f64,
    pub upstream: bool,
}

/// The address of a host: one subnet for each region.
pub fn address(cluster: &Cluster, host: u32) -> String {
    let region = cluster.region_of[host as usize];
    let number = cluster.numbers[host as usize];
    format!("10.{}.{}.{}", region + 1, number / 250, number % 250 + 4)
}

/// The peers of a host: upstream, then downstream.
pub fn links(cluster: &Cluster, host: u32, format: Format) -> Vec<Link> {
    let own = address(cluster, host);
    let upstream = &cluster.upstream[host as usize];
    let mut peers: Vec<(u32, f64, bool)> = upstream.iter().map(|link| (link.host, link.rtt_s, true)).collect();
    for link in &cluster.downstream[host as usize] {
        if !peers.iter().any(|(peer, ..)| *peer == link.host) {
            let back = cluster.upstream[link.host as usize].iter().find(|back| back.host == host);
            peers.push((link.host, back.map_or(0.0, |back| back.rtt_s), false));
        }
    }
    let describe = |(peer, rtt_s, upstream): (u32, f64, bool)| {
        let other = address(cluster, peer);
        let connection = if format == Format::Legacy {
            format!(
                "\"local\":{{\"addr\":\"{own}\",\"port\":\"{PORT}\"}},\
                 \"remote\":{{\"addr\":\"{other}\",\"port\":\"{PORT}\"}}"
            )
        } else {
            format!("\"connectionId\":\"{own}:{PORT} {other}:{PORT}\"")
        };
        Link { peer, connection: connection.into_bytes().into(), one_way_s: rtt_s / 2.0, upstream }
    };
    peers.into_iter().map(describe).collect()
}

/// The parts of a host's lines that do not change.
#[derive(Debug, Clone)]
pub struct Frames {
    pub open: &'static [u8],
    /// From the end of the time to the beginning of the data, by message; None if the format lacks it.
    heads: Vec<Option<Box<[u8]>>>,
    /// From the end of the data to the thread, by message.
    tails: Vec<Box<[u8]>>,
    /// The thread and the rest of the line.
    threads: Vec<Box<[u8]>>,
    format: Format,
    host: String,
}

impl Frames {
    pub fn new(format: Format, host: &str, links: usize) -> Self {
        let threads = NODE_THREADS.iter().map(|(_, id)| *id);
        let link_threads = (0..links as u32 * LINK_THREADS).map(|place| FIRST_LINK_THREAD + 2 * place);
        let end = match format {
            Format::Legacy => "\"}\n".to_owned(),
            _ => format!("\",\"host\":\"{host}\"}}\n"),
        };
        Self {
            open: if format == Format::Legacy { b"{\"app\":[],\"at\":\"" } else { b"{\"at\":\"" },
            heads: MESSAGES.iter().map(|info| head(format, info)).collect(),
            tails: MESSAGES.iter().map(|info| tail(format, info, host)).collect(),
            threads: threads.chain(link_threads).map(|id| format!("{id}{end}").into_bytes().into()).collect(),
            format,
            host: host.to_owned(),
        }
    }

    #[inline]
    pub fn head(&self, message: Message) -> Option<&[u8]> {
        self.heads[message as usize].as_deref()
    }

    #[inline]
    pub fn tail(&self, message: Message) -> &[u8] {
        &self.tails[message as usize]
    }

    #[inline]
    pub fn node_thread(&self, thread: Thread) -> &[u8] {
        &self.threads[thread as usize]
    }

    #[inline]
    pub fn link_thread(&self, link: u16, thread: LinkThread) -> &[u8] {
        &self.threads[NODE_THREADS.len() + link as usize * LINK_THREADS as usize + thread as usize]
    }

    /// The same parts for a message that is not in `MESSAGES`.
    pub fn other(&self, namespace: &str, legacy: &str, severity: &str) -> (Vec<u8>, Vec<u8>) {
        if self.format == Format::Legacy {
            let head = b"Z\",\"data\":{".to_vec();
            return (head, legacy_tail("}", legacy, severity, &self.host).into_bytes());
        }
        let head = format!("Z\",\"ns\":\"{namespace}\",\"data\":{{").into_bytes();
        (head, format!("}},\"sev\":\"{severity}\",\"thread\":\"").into_bytes())
    }
}

fn head(format: Format, info: &MessageInfo) -> Option<Box<[u8]>> {
    let text = match (format, info.legacy) {
        (Format::Legacy, Legacy::None) => return None,
        (Format::Legacy, Legacy::Flat(_)) => "Z\",\"data\":{".to_owned(),
        (Format::Legacy, Legacy::Nested(_)) => "Z\",\"data\":{\"credentials\":\"Cardano\",\"val\":{".to_owned(),
        (Format::V10_4, _) if info.message == Message::LedgerMetrics => return None,
        (Format::V10_4, _) if info.message == Message::LoopStart => {
            format!("Z\",\"ns\":\"{}Plus\",\"data\":{{", info.namespace)
        }
        _ => format!("Z\",\"ns\":\"{}\",\"data\":{{", info.namespace),
    };
    Some(text.into_bytes().into())
}

fn tail(format: Format, info: &MessageInfo, host: &str) -> Box<[u8]> {
    let text = match (format, info.legacy) {
        (Format::Legacy, Legacy::Nested(space)) => legacy_tail("}}", space, info.severity, host),
        (Format::Legacy, Legacy::Flat(space)) => legacy_tail("}", space, info.severity, host),
        _ => format!("}},\"sev\":\"{}\",\"thread\":\"", info.severity),
    };
    text.into_bytes().into()
}

fn legacy_tail(close: &str, space: &str, severity: &str, host: &str) -> String {
    let pid = 1_000 + mix(host.bytes().fold(0, |sum, byte| sum * 131 + u64::from(byte))) % 30_000;
    let cut: String = host.chars().take(LEGACY_HOST_LENGTH).collect();
    format!(
        "{close},\"env\":\"{LEGACY_VERSION}\",\"host\":\"{cut}\",\"loc\":null,\"msg\":\"\",\
         \"ns\":[\"cardano.node.{space}\"],\"pid\":\"{pid}\",\"sev\":\"{severity}\",\"thread\":\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_at_their_indices() {
        for (place, (thread, _)) in NODE_THREADS.iter().enumerate() {
            assert_eq!(*thread as usize, place);
        }
    }
}
