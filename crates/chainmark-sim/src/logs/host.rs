//! One host: when it runs, its planned actions, and its state in its lines.

use std::collections::VecDeque;

use crate::cluster::Cluster;
use crate::logs::damage::Damage;
use crate::logs::data::MempoolSize;
use crate::logs::event::{Action, Event, Heard};
use crate::logs::fault::{Fault, Kind};
use crate::logs::frame::{Frames, Link, address, links};
use crate::logs::message::Message;
use crate::logs::order::{Format, LogRequest, Rotation};
use crate::logs::resources::Resources;
use crate::logs::rows::{BlockRows, SlotRows};
use crate::logs::sink::Sink;
use crate::logs::text::Stamp;
use crate::random::{Draws, Purpose};
use crate::trace::{BlockNumber, GENESIS};

const S: i64 = 1_000_000_000;
/// Time from a process's start until it takes part.
pub const START_NS: i64 = 4_500_000_000;

/// A time in which the process is down, then starting.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    pub down_ns: i64,
    /// When the process starts.
    pub up_ns: i64,
    /// When it takes part again; `i64::MAX`: never.
    pub online_ns: i64,
}

/// The transactions of a mempool: those with numbers from `low` to before `high`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mempool {
    pub low: u64,
    pub high: u64,
    pub bytes: u64,
}

impl Mempool {
    pub fn size(self) -> MempoolSize {
        MempoolSize { transactions: self.high - self.low, bytes: self.bytes }
    }
}

/// One host.
pub struct Host {
    pub number: u32,
    pub name: String,
    pub address: String,
    pub format: Format,
    pub system_start_ns: i64,
    pub clock_offset_ns: i64,
    pub clock_drift: f64,
    pub links: Vec<Link>,
    pub outages: VecDeque<Outage>,
    pub stalls: Vec<(i64, i64)>,
    pub damage: Damage,
    /// The host's own name, and the one that a fault gives it.
    pub frames: [Frames; 2],
    // Planned actions.
    pub inbox: Vec<Heard>,
    pub events: Vec<Event>,
    pub leading: Vec<(u64, BlockNumber)>,
    /// The block that was announced last.
    pub announced: BlockNumber,
    pub next_sample_ns: i64,
    pub next_snapshot_ns: i64,
    pub next_governor_ns: i64,
    pub next_transaction: u64,
    pub refills: bool,
    pub batch_end_ns: i64,
    pub miscounted: Option<(u64, u64)>,
    // The state in the lines so far.
    pub tip: BlockNumber,
    pub tentative: BlockNumber,
    pub mempool: Mempool,
    pub collected: u64,
    pub accepted: u64,
    pub resources: Resources,
    pub started_ns: i64,
    pub last_adoption_ns: i64,
    pub slots: SlotRows,
    pub blocks: BlockRows,
    // The log.
    pub stamp: Stamp,
    pub line_number: u64,
    pub line_draws: Draws,
    pub out: Vec<u8>,
    pub last_at_ns: i64,
    pub rotation: Option<Rotation>,
    pub file_lines: u64,
    pub file_bytes: u64,
    /// The output; returned between chunks.
    pub sink: Sink,
    pub lines: u64,
    pub bytes: u64,
}

/// What a host is made from.
pub struct Setup<'a> {
    pub order: &'a LogRequest,
    pub cluster: &'a Cluster,
    pub format: Format,
    pub faults: Vec<Fault>,
    /// (from, until) of the times when it is down, ascending.
    pub offline: Vec<(i64, i64)>,
    pub stalled: Vec<(i64, i64)>,
    pub sink: Sink,
}

impl Host {
    pub fn new(number: u32, setup: Setup) -> Self {
        let (order, cluster) = (setup.order, setup.cluster);
        let seed = order.scenario.seed;
        let name = cluster.names[number as usize].clone();
        let of_kind = |kind| setup.faults.iter().filter(move |fault| fault.kind == kind);
        let other_name = of_kind(Kind::WrongHost).next().map_or(name.as_str(), |fault| &fault.name);
        let links = links(cluster, number, setup.format);
        let frames = [&name, other_name].map(|name| Frames::new(setup.format, name, links.len()));
        let draws = Draws::new(seed ^ 0x0057, 0);
        let blocks_per_s = order.chain.active_slots_coefficient / order.chain.slot_length_s;
        Self {
            number,
            address: address(cluster, number),
            format: setup.format,
            system_start_ns: order.system_start_ns,
            clock_offset_ns: of_kind(Kind::ClockOffset).map(|fault| (fault.value * 1e9) as i64).sum(),
            clock_drift: of_kind(Kind::ClockDrift).map(|fault| fault.value * 1e-6).sum(),
            links,
            outages: setup.offline.iter().map(|&(from_ns, until_ns)| outage(from_ns, until_ns)).collect(),
            stalls: setup.stalled,
            frames,
            inbox: Vec::new(),
            events: Vec::new(),
            leading: Vec::new(),
            announced: GENESIS,
            next_sample_ns: i64::MAX,
            next_snapshot_ns: 4_230 * S + (draws.unit(number, Purpose::Ledger, 0) * 5e9) as i64,
            next_governor_ns: 3 * S,
            next_transaction: 0,
            refills: false,
            batch_end_ns: 0,
            miscounted: None,
            tip: GENESIS,
            tentative: GENESIS,
            mempool: Mempool::default(),
            collected: 0,
            accepted: 0,
            resources: Resources::new(&order.workload, blocks_per_s, seed, number, 0),
            started_ns: 0,
            last_adoption_ns: i64::MIN,
            slots: SlotRows::default(),
            blocks: BlockRows::beginning_with(GENESIS + 1),
            stamp: Stamp::default(),
            line_number: 0,
            line_draws: draws,
            out: Vec::new(),
            last_at_ns: i64::MIN,
            rotation: order.rotation,
            file_lines: 0,
            file_bytes: 0,
            sink: setup.sink,
            lines: 0,
            bytes: 0,
            damage: Damage::new(setup.faults),
            name,
        }
    }

    pub fn push(&mut self, at_ns: i64, action: Action, block: BlockNumber, link: u16, value: u64) {
        self.events.push(Event { at_ns, value, block, link, action });
    }

    // ---- when it runs ------------------------------------------------------------------------------------------

    /// When an outage that holds at a time ends: for ever is `i64::MAX`.
    pub fn offline_until(&self, at_ns: i64) -> Option<i64> {
        self.outages
            .iter()
            .find(|outage| outage.down_ns <= at_ns && at_ns < outage.online_ns)
            .map(|outage| outage.online_ns)
    }

    pub fn online(&self, at_ns: i64) -> bool {
        self.offline_until(at_ns).is_none()
    }

    /// When a process that is down at a time is up again.
    pub fn down_until(&self, at_ns: i64) -> Option<i64> {
        self.outages.iter().find(|outage| outage.down_ns <= at_ns && at_ns < outage.up_ns).map(|outage| outage.up_ns)
    }

    pub fn stalled_until(&self, at_ns: i64) -> Option<i64> {
        self.stalls.iter().find(|(from, until)| *from <= at_ns && at_ns < *until).map(|(_, until)| *until)
    }

    /// When the last line about a block is due.
    pub fn last_block_event_ns(&self) -> i64 {
        let about_blocks = self.events.iter().filter(|event| {
            let late = matches!(event.action, Action::Say(Message::PerformedCollection));
            event.block != GENESIS && !late
        });
        about_blocks.map(|event| event.at_ns).max().unwrap_or(0)
    }

    pub fn link(&self, peer: u32) -> u16 {
        self.links.iter().position(|link| link.peer == peer).unwrap_or_default() as u16
    }
}

fn outage(from_ns: i64, until_ns: i64) -> Outage {
    let up_ns = if until_ns == i64::MAX { i64::MAX } else { (until_ns - START_NS).max(from_ns) };
    Outage { down_ns: from_ns, up_ns, online_ns: until_ns }
}
