//! Blocks that spread through a network, one forger after the other: no leaders are drawn and no chain is selected, so
//! that every host forges equally often and the largest sampling noise is gone.

use crate::cluster::Cluster;
use crate::model::Scenario;
use crate::queue::{Event, EventQueue};
use crate::random::Draws;
use crate::timing::{NS, Regime, Timing};
use crate::trace::{LoopTimes, NEVER};
use crate::transport::Transport;

/// Headers leave for one peer after the other.
pub const ANNOUNCEMENT_STEP_NS: u64 = 15_000;

/// The stages that a host's adoption time is made of. They add up to it exactly.
pub const STAGES: [&str; 9] =
    ["forging", "announcement", "header", "round_trips", "extra_rounds", "request", "body", "adoption", "tails"];
const FORGING: usize = 0;
const ANNOUNCEMENT: usize = 1;
const HEADER: usize = 2;
const ROUND_TRIPS: usize = 3;
const EXTRA_ROUNDS: usize = 4;
const REQUEST: usize = 5;
const BODY: usize = 6;
const ADOPTION: usize = 7;
const TAILS: usize = 8;

/// Parts of a time, in nanoseconds, by stage.
pub type Parts = [u64; STAGES.len()];

/// What happened to one block at one host; times in nanoseconds since the start of its slot.
#[derive(Debug, Clone, Copy)]
pub struct HostBlock {
    pub noticed_ns: u64,
    pub requested_ns: u64,
    pub fetched_ns: u64,
    pub announced_ns: u64,
    pub sent_ns: u64,
    pub adopted_ns: u64,
    /// Upstream peers, by index in the list, whose header arrived and who received no request yet.
    candidates: u64,
    in_flight: u32,
    deciding: bool,
    pub requests: u32,
    /// The peer whose copy arrived first, by index in the list.
    pub source: u32,
    /// TCP rounds of that copy.
    pub rounds: u32,
}

const UNTOUCHED: HostBlock = HostBlock {
    noticed_ns: NEVER,
    requested_ns: NEVER,
    fetched_ns: NEVER,
    announced_ns: NEVER,
    sent_ns: NEVER,
    adopted_ns: NEVER,
    candidates: 0,
    in_flight: 0,
    deciding: false,
    requests: 0,
    source: u32::MAX,
    rounds: 0,
};

/// A block that every host has.
pub struct Spread<'a> {
    pub forger: u32,
    pub times: LoopTimes,
    pub bytes: u32,
    pub slot_start_ns: u64,
    pub hosts: &'a [HostBlock],
    /// By host: the parts of its adoption time.
    pub parts: &'a [Parts],
}

struct OpenBlock {
    draws: Draws,
    regime: Regime,
    forger: u32,
    bytes: u32,
    slot_start_ns: u64,
    times: LoopTimes,
    open_events: u32,
    hosts: Vec<HostBlock>,
    parts: Vec<Parts>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Header { place: u32 },
    Decision,
    Body { place: u32, requested_ns: u64, rounds: u32 },
    Announce,
}

/// One block to forge: key of its draws, time and forger.
#[derive(Debug, Clone, Copy)]
pub struct Forge {
    pub draws: Draws,
    pub slot_start_ns: u64,
    pub forger: u32,
    pub slow: bool,
}

/// A network through which blocks spread.
pub struct Propagation<'a> {
    cluster: &'a Cluster,
    timing: &'a Timing,
    scenario: &'a Scenario,
    transport: Transport,
    queue: EventQueue<Kind>,
    last_decision_ns: Vec<u64>,
    blocks: Vec<OpenBlock>,
    free: Vec<u32>,
    /// Simulated: headers, decisions, requests, bodies, announcements and adoptions.
    pub events: u64,
}

impl<'a> Propagation<'a> {
    pub fn new(cluster: &'a Cluster, timing: &'a Timing, scenario: &'a Scenario) -> Self {
        Self {
            cluster,
            timing,
            scenario,
            transport: Transport::new(cluster, &scenario.parameters),
            queue: EventQueue::default(),
            last_decision_ns: vec![0; cluster.hosts()],
            blocks: Vec::new(),
            free: Vec::new(),
            events: 0,
        }
    }

    /// Forge these blocks, ascending by time, and report each when every host has it.
    pub fn run(&mut self, blocks: impl Iterator<Item = Forge>, mut spread: impl FnMut(&Spread<'_>)) {
        for forge in blocks {
            while self.queue.next_time_ns().is_some_and(|time| time < forge.slot_start_ns) {
                self.step(&mut spread);
            }
            self.forge(forge);
        }
        while self.queue.next_time_ns().is_some() {
            self.step(&mut spread);
        }
    }

    fn forge(&mut self, forge: Forge) {
        let number = self.cluster.numbers[forge.forger as usize];
        let regime = self.timing.regime(forge.draws, Some(forge.slow));
        let mut times = self.timing.loop_times(forge.draws, number, forge.slot_start_ns);
        self.timing.forge(&mut times, forge.draws, number, regime);
        let index = self.open(&forge, regime, times);
        let block = &mut self.blocks[index as usize];
        let (usual, extra) = self.timing.adoption(forge.draws, number, regime, true);
        let since_slot = times.forged_ns - forge.slot_start_ns;
        let announced = since_slot + self.timing.forger_announcement(forge.draws, number);
        let host = &mut block.hosts[forge.forger as usize];
        host.fetched_ns = since_slot;
        host.announced_ns = announced;
        host.adopted_ns = since_slot + usual + extra;
        let parts = &mut block.parts[forge.forger as usize];
        parts[FORGING] = since_slot;
        parts[ADOPTION] = usual;
        parts[TAILS] = extra;
        self.events += 2;
        let leaves = if self.scenario.parameters.pipelining { announced } else { announced.max(host.adopted_ns) };
        block.hosts[forge.forger as usize].announced_ns = leaves;
        self.plan(index, forge.forger, leaves, Kind::Announce);
    }

    fn open(&mut self, forge: &Forge, regime: Regime, times: LoopTimes) -> u32 {
        let n = self.cluster.hosts();
        let index = self.free.pop().unwrap_or_else(|| {
            let draws = forge.draws;
            let (hosts, parts) = (Vec::with_capacity(n), Vec::with_capacity(n));
            let (forger, bytes, slot_start_ns, open_events) = (0, 0, 0, 0);
            self.blocks.push(OpenBlock {
                draws,
                regime,
                forger,
                bytes,
                slot_start_ns,
                times,
                open_events,
                hosts,
                parts,
            });
            self.blocks.len() as u32 - 1
        });
        let block = &mut self.blocks[index as usize];
        block.draws = forge.draws;
        block.regime = regime;
        block.forger = forge.forger;
        block.bytes = self.timing.block_bytes(forge.draws);
        block.slot_start_ns = forge.slot_start_ns;
        block.times = times;
        block.hosts.clear();
        block.hosts.resize(n, UNTOUCHED);
        block.parts.clear();
        block.parts.resize(n, Parts::default());
        index
    }

    /// Plan an event of a block `since_slot_ns` after its slot began.
    fn plan(&mut self, block: u32, host: u32, since_slot_ns: u64, kind: Kind) {
        let open = &mut self.blocks[block as usize];
        open.open_events += 1;
        self.queue.push(Event { time_ns: open.slot_start_ns + since_slot_ns, host, block, kind });
    }

    fn step(&mut self, spread: &mut impl FnMut(&Spread<'_>)) {
        let Some(event) = self.queue.pop() else { return };
        let now = event.time_ns - self.blocks[event.block as usize].slot_start_ns;
        self.events += 1;
        match event.kind {
            Kind::Header { place } => self.header(event.block, event.host, place, now),
            Kind::Decision => self.decide(event.block, event.host, now),
            Kind::Body { .. } => self.body(event.block, event.host, event.kind, now),
            Kind::Announce => self.announce(event.block, event.host, now),
        }
        let block = &mut self.blocks[event.block as usize];
        block.open_events -= 1;
        if block.open_events == 0 {
            spread(&Spread {
                forger: block.forger,
                times: block.times,
                bytes: block.bytes,
                slot_start_ns: block.slot_start_ns,
                hosts: &block.hosts,
                parts: &block.parts,
            });
            self.free.push(event.block);
        }
    }

    fn announce(&mut self, block: u32, host: u32, now: u64) {
        let cluster = self.cluster;
        let draws = self.blocks[block as usize].draws;
        let number = cluster.numbers[host as usize];
        for (k, peer) in cluster.downstream[host as usize].iter().enumerate() {
            // A peer that already has the body receives the header, too, without any effect.
            if self.blocks[block as usize].hosts[peer.host as usize].fetched_ns != NEVER {
                self.events += 1;
                continue;
            }
            let link = &cluster.upstream[peer.host as usize][peer.place as usize];
            let service = self.timing.header(draws, cluster.numbers[peer.host as usize], number);
            let arrives = now + k as u64 * ANNOUNCEMENT_STEP_NS + half_ns(link.rtt_s) + service;
            self.plan(block, peer.host, arrives, Kind::Header { place: peer.place });
        }
    }

    fn header(&mut self, block: u32, host: u32, place: u32, now: u64) {
        let open = &mut self.blocks[block as usize];
        let state = &mut open.hosts[host as usize];
        state.noticed_ns = state.noticed_ns.min(now);
        if state.fetched_ns != NEVER {
            return;
        }
        state.candidates |= 1 << place;
        if state.deciding || state.in_flight >= self.scenario.parameters.fetch_concurrency {
            return;
        }
        state.deciding = true;
        let numbers = &self.cluster.numbers;
        let peer = self.cluster.upstream[host as usize][place as usize].host;
        let wait = self.timing.request(open.draws, numbers[host as usize], numbers[peer as usize]);
        let interval = (self.scenario.parameters.decision_interval_s * NS) as u64;
        let earliest = (self.last_decision_ns[host as usize] + interval).saturating_sub(open.slot_start_ns);
        let at = (now + wait).max(if self.last_decision_ns[host as usize] == 0 { 0 } else { earliest });
        self.plan(block, host, at, Kind::Decision);
    }

    fn decide(&mut self, block: u32, host: u32, now: u64) {
        let open = &mut self.blocks[block as usize];
        self.last_decision_ns[host as usize] = open.slot_start_ns + now;
        let state = &mut open.hosts[host as usize];
        state.deciding = false;
        if state.fetched_ns != NEVER {
            return;
        }
        let concurrency = self.scenario.parameters.fetch_concurrency;
        while self.blocks[block as usize].hosts[host as usize].in_flight < concurrency {
            let state = &mut self.blocks[block as usize].hosts[host as usize];
            if state.candidates == 0 {
                return;
            }
            // Upstream peers are sorted by round trip.
            let place = state.candidates.trailing_zeros();
            state.candidates &= state.candidates - 1;
            state.in_flight += 1;
            state.requests += 1;
            state.requested_ns = state.requested_ns.min(now);
            self.request(block, host, place, now);
        }
    }

    fn request(&mut self, block: u32, host: u32, place: u32, now: u64) {
        let link = self.cluster.upstream[host as usize][place as usize];
        let numbers = (self.cluster.numbers[host as usize], self.cluster.numbers[link.host as usize]);
        let open = &mut self.blocks[block as usize];
        let server_ns = self.timing.server(open.draws, numbers.0, numbers.1);
        let client_ns = self.timing.client(open.draws, numbers.0, numbers.1);
        let sent = now + half_ns(link.rtt_s) + server_ns;
        let transfer = self.transport.send(&link, u64::from(open.bytes), open.slot_start_ns + sent);
        let travel = half_ns(link.rtt_s) + extra_rounds_ns(transfer.rounds, link.rtt_s);
        let usual = sent + travel + transfer.bytes_ns + client_ns - now;
        let arrives = now + self.timing.changed_fetch(usual, link.fetch);
        let sender = &mut open.hosts[link.host as usize];
        sender.sent_ns = sender.sent_ns.min(sent.min(arrives));
        self.events += 2;
        self.plan(block, host, arrives, Kind::Body { place, requested_ns: now, rounds: transfer.rounds });
    }

    fn body(&mut self, block: u32, host: u32, kind: Kind, now: u64) {
        let Kind::Body { place, requested_ns, rounds } = kind else { return };
        let open = &mut self.blocks[block as usize];
        let state = &mut open.hosts[host as usize];
        state.in_flight -= 1;
        if state.fetched_ns != NEVER {
            return;
        }
        let number = self.cluster.numbers[host as usize];
        let (usual, extra) = self.timing.adoption(open.draws, number, open.regime, false);
        let announcement = self.timing.announcement(open.draws, number);
        let adopted = now + usual + extra;
        let announced = if self.scenario.parameters.pipelining { now } else { adopted } + announcement;
        state.fetched_ns = now;
        state.adopted_ns = adopted;
        state.announced_ns = announced;
        state.source = place;
        state.rounds = rounds;
        let link = &self.cluster.upstream[host as usize][place as usize];
        let source = link.host as usize;
        let mut parts = open.parts[source];
        let from = open.hosts[source];
        // What the source did after it had the body is not on this path; its announcement is.
        parts[ADOPTION] = usual;
        parts[TAILS] = extra;
        let arrived = self.header_arrival(block, host, place);
        let trip = half_ns(link.rtt_s);
        let fetch = Fetch::of(now - requested_ns, 2 * trip, extra_rounds_ns(rounds, link.rtt_s));
        parts[ANNOUNCEMENT] += from.announced_ns - from.fetched_ns;
        parts[HEADER] += arrived - from.announced_ns - trip;
        parts[REQUEST] += requested_ns - arrived;
        parts[ROUND_TRIPS] += trip + fetch.trip_ns;
        parts[EXTRA_ROUNDS] += fetch.rounds_ns;
        parts[BODY] += fetch.body_ns;
        self.blocks[block as usize].parts[host as usize] = parts;
        self.events += 1;
        self.plan(block, host, announced, Kind::Announce);
    }

    /// When the header of the peer at `place` came: a function of the draws, so it need not be remembered.
    fn header_arrival(&self, block: u32, host: u32, place: u32) -> u64 {
        let open = &self.blocks[block as usize];
        let link = &self.cluster.upstream[host as usize][place as usize];
        let list = &self.cluster.downstream[link.host as usize];
        let k = list.iter().position(|peer| peer.host == host).unwrap_or(0) as u64;
        let numbers = (self.cluster.numbers[host as usize], self.cluster.numbers[link.host as usize]);
        let service = self.timing.header(open.draws, numbers.0, numbers.1);
        let announced = open.hosts[link.host as usize].announced_ns;
        announced + k * ANNOUNCEMENT_STEP_NS + half_ns(link.rtt_s) + service
    }
}

/// What a fetch is made of. One that a what-if makes shorter than its round trips lacks the later ones first.
struct Fetch {
    trip_ns: u64,
    rounds_ns: u64,
    body_ns: u64,
}

impl Fetch {
    fn of(whole_ns: u64, trip_ns: u64, rounds_ns: u64) -> Self {
        let trip_ns = trip_ns.min(whole_ns);
        let rounds_ns = rounds_ns.min(whole_ns - trip_ns);
        Self { trip_ns, rounds_ns, body_ns: whole_ns - trip_ns - rounds_ns }
    }
}

pub fn half_ns(rtt_s: f64) -> u64 {
    (rtt_s * NS / 2.0) as u64
}

pub fn extra_rounds_ns(rounds: u32, rtt_s: f64) -> u64 {
    (f64::from(rounds - 1) * rtt_s * NS) as u64
}
