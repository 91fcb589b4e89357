//! A running network: leaders are drawn slot by slot, hosts select chains, some of them fail.
//!
//! Rules: the longer chain wins, of two equally long ones that with the smaller leader VRF. Blocks that extend the
//! chain are announced before they are validated (pipelining); a chain that a host switches to, after. A header whose
//! ancestors are missing leads to one request for the whole missing range.

use serde::{Deserialize, Serialize};

use crate::block_window::{BlockWindow, Known};
use crate::cluster::{Cluster, Upstream};
use crate::error::{Result, SimulationError};
use crate::model::Scenario;
use crate::propagation::{ANNOUNCEMENT_STEP_NS, extra_rounds_ns, half_ns};
use crate::queue::{Event, EventQueue};
use crate::random::{Draws, Purpose};
use crate::timing::{NS, Regime, Timing};
use crate::trace::{Block, BlockNumber, GENESIS, LoopTimes, NEVER, Observer, Selection};
use crate::transport::Transport;

/// A host that comes back needs so long to open its connections.
const HANDSHAKE_NS: u64 = 50_000_000;
/// Headers of a catch-up follow each other so closely.
const CATCH_UP_STEP_NS: u64 = 50_000;
/// Maximum memory, in bytes, of host states for old blocks.
const RETAINED_BYTES: usize = 256 << 20;
const RETAINED_MAX: usize = 4096;
const RETAINED_MIN: usize = 64;

/// A period in which a host is down, or receives nothing. `until_ns` of `u64::MAX`: permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    pub host: u32,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// The faults in the network itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbances {
    /// Hosts that neither forge, receive nor serve; on return they fetch what they missed.
    pub offline: Vec<Absence>,
    /// Hosts whose network input is held back until the end.
    pub stalled: Vec<Absence>,
    /// (slot, host): leaders besides the drawn ones.
    pub forced_leaders: Vec<(u64, u32)>,
}

/// The duration of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainConfig {
    pub slots: u64,
    pub slot_length_s: f64,
    pub active_slots_coefficient: f64,
    pub disturbances: Disturbances,
    /// How many blocks back a host may still need one; 0 chooses by the number of hosts.
    pub retained_blocks: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The next slot that has a leader.
    Slot {
        slot: u64,
    },
    /// A leader looks at its chain.
    Context {
        slot: u64,
        times: LoopTimes,
    },
    Forged {
        times: LoopTimes,
    },
    Header {
        place: u32,
    },
    Decision,
    Body {
        place: u32,
    },
    /// A body that will never come.
    Lost,
    /// A host takes a block from its queue.
    Select,
    Adopted {
        from: BlockNumber,
    },
    Announce,
    /// A host is up again, or receives again.
    Return,
    CatchUp {
        place: u32,
    },
}

#[derive(Debug, Clone)]
struct HostState {
    tip: BlockNumber,
    /// The host validates one block at a time.
    busy_until_ns: u64,
    last_decision_ns: Option<u64>,
    /// By place of the upstream peer: the last header it sent.
    heard: Vec<BlockNumber>,
    /// The end of the chain that downstream peers know of.
    announced_tip: BlockNumber,
    /// Bodies whose ancestors are missing.
    waiting: Vec<BlockNumber>,
}

/// A running network. `advance` runs it and reports its events to a listener.
pub struct ChainRun {
    cluster: Cluster,
    timing: Timing,
    scenario: Scenario,
    order: ChainConfig,
    slot_ns: f64,
    /// By host.
    leader_probability: Vec<f64>,
    transport: Transport,
    queue: EventQueue<Kind>,
    hosts: Vec<HostState>,
    window: BlockWindow,
    best: BlockNumber,
    /// Simulated so far.
    pub events: u64,
}

impl ChainRun {
    /// A network at its genesis.
    ///
    /// # Errors
    /// The scenario or the cluster is invalid, or a disturbance names a host that does not exist.
    pub fn new(scenario: &Scenario, order: &ChainConfig) -> Result<Self> {
        scenario.check()?;
        let cluster = Cluster::build(&scenario.cluster)?;
        check(order, &cluster)?;
        let n = cluster.hosts();
        let affordable = (RETAINED_BYTES / (n * size_of::<Known>())).clamp(RETAINED_MIN, RETAINED_MAX);
        let capacity = if order.retained_blocks == 0 { affordable } else { order.retained_blocks };
        let hosts = cluster.upstream.iter().map(|list| HostState {
            tip: GENESIS,
            busy_until_ns: 0,
            last_decision_ns: None,
            heard: vec![GENESIS; list.len()],
            announced_tip: GENESIS,
            waiting: Vec::new(),
        });
        let mut run = Self {
            timing: Timing::new(scenario),
            scenario: scenario.clone(),
            order: order.clone(),
            slot_ns: order.slot_length_s * NS,
            leader_probability: leader_probabilities(&cluster, order.active_slots_coefficient),
            transport: Transport::new(&cluster, &scenario.parameters),
            queue: EventQueue::default(),
            hosts: hosts.collect(),
            window: BlockWindow::new(n, capacity, Block::genesis()),
            best: GENESIS,
            events: 0,
            cluster,
        };
        run.plan_leaders(0);
        for absence in order.disturbances.offline.iter().chain(&order.disturbances.stalled) {
            if absence.until_ns != NEVER {
                run.plan(absence.until_ns, absence.host, GENESIS, Kind::Return);
            }
        }
        Ok(run)
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A block in memory: any of the last few thousand (fewer in very large networks).
    pub fn block(&self, number: BlockNumber) -> &Block {
        self.window.block(number)
    }

    pub fn remembers(&self, number: BlockNumber) -> bool {
        self.window.remembers(number)
    }

    /// The end of the best chain that any host adopted.
    pub fn best_tip(&self) -> BlockNumber {
        self.best
    }

    /// The end of the chain of one host at this moment.
    pub fn tip_of(&self, host: u32) -> BlockNumber {
        self.hosts[host as usize].tip
    }

    /// Whether a block is on the best chain.
    pub fn on_chain(&self, number: BlockNumber) -> bool {
        self.window.descends(self.best, number)
    }

    /// Whether no further event will happen.
    pub fn finished(&self) -> bool {
        self.queue.next_time_ns().is_none()
    }

    pub fn slot_start_ns(&self, slot: u64) -> u64 {
        (slot as f64 * self.slot_ns) as u64
    }

    /// Whether a host leads in a slot, drawn or forced; it forges only if it is up.
    pub fn is_leader(&self, slot: u64, host: u32) -> bool {
        let number = self.cluster.numbers[host as usize];
        let draws = Draws::new(self.scenario.seed, slot);
        draws.chance(number, Purpose::Leader, 0, self.leader_probability[host as usize])
            || self.order.disturbances.forced_leaders.contains(&(slot, host))
    }

    /// The forge loop of a host in a slot, up to the decision who leads.
    pub fn loop_times(&self, slot: u64, host: u32) -> LoopTimes {
        let draws = Draws::new(self.scenario.seed, slot);
        self.timing.loop_times(draws, self.cluster.numbers[host as usize], self.slot_start_ns(slot))
    }

    /// Whether a host is down at a time.
    pub fn offline(&self, host: u32, time_ns: u64) -> bool {
        absent(&self.order.disturbances.offline, host, time_ns).is_some()
    }

    /// Everything that happens before `until_ns`.
    pub fn advance(&mut self, until_ns: u64, observer: &mut impl Observer) {
        while self.queue.next_time_ns().is_some_and(|time| time < until_ns) {
            let Some(event) = self.queue.pop() else { break };
            self.events += 1;
            self.step(&event, observer);
        }
        observer.reached(until_ns);
    }

    fn step(&mut self, event: &Event<Kind>, observer: &mut impl Observer) {
        let (now, host, block) = (event.time_ns, event.host, event.block);
        match event.kind {
            Kind::Slot { slot } => self.slot(slot),
            Kind::Return => self.return_of(host, now),
            _ if self.offline(host, now) => (),
            Kind::Context { slot, times } => self.context(now, host, slot, times),
            _ if !self.window.remembers(block) => (),
            Kind::Forged { times } => self.forged(now, host, block, &times, observer),
            Kind::Header { place } => self.header(event, place, observer),
            Kind::Decision => self.decide(now, host, block, observer),
            Kind::Body { place } => self.body(event, place, observer),
            Kind::Lost => self.lost(now, host, block),
            Kind::Select => self.select(now, host, block, observer),
            Kind::Adopted { from } => self.adopted(now, host, block, from, observer),
            Kind::Announce => self.announce(now, host, block, observer),
            Kind::CatchUp { place } => self.catch_up(now, host, place),
        }
    }

    fn plan(&mut self, time_ns: u64, host: u32, block: BlockNumber, kind: Kind) {
        self.queue.push(Event { time_ns, host, block, kind });
    }

    // ---- forging -----------------------------------------------------------------------------------------------

    /// Look for the next slot that has a leader, from `slot` on.
    fn plan_leaders(&mut self, slot: u64) {
        let n = self.cluster.hosts() as u32;
        if let Some(next) = (slot..self.order.slots).find(|&slot| (0..n).any(|host| self.is_leader(slot, host))) {
            self.plan(self.slot_start_ns(next), 0, GENESIS, Kind::Slot { slot: next });
        }
    }

    fn slot(&mut self, slot: u64) {
        for host in 0..self.cluster.hosts() as u32 {
            if self.is_leader(slot, host) {
                let times = self.loop_times(slot, host);
                self.plan(times.block_context_ns, host, GENESIS, Kind::Context { slot, times });
            }
        }
        self.plan_leaders(slot + 1);
    }

    fn context(&mut self, now: u64, host: u32, slot: u64, mut times: LoopTimes) {
        let parent = self.hosts[host as usize].tip;
        if !self.window.remembers(parent) {
            return; // far behind: it is busy catching up
        }
        if parent != GENESIS && self.window.block(parent).slot >= slot {
            return; // it already has a block of this slot
        }
        let number = self.cluster.numbers[host as usize];
        let draws = Timing::block_draws(self.scenario.seed, slot, number);
        let regime = self.timing.regime(draws, None);
        self.timing.forge(&mut times, draws, number, regime);
        let block = Block {
            number: self.window.newest + 1,
            slot,
            height: self.window.block(parent).height + 1,
            parent,
            forger: host,
            vrf: draws.bits(number, Purpose::Vrf, 0),
            bytes: self.timing.block_bytes(draws),
            key: draws.bits(number, Purpose::Hash, 0),
            fast: regime.fast,
            slow: regime.slow,
        };
        debug_assert!(now <= times.forged_ns);
        self.window.insert(block);
        self.plan(times.forged_ns, host, block.number, Kind::Forged { times });
    }

    fn forged(&mut self, now: u64, host: u32, block: BlockNumber, times: &LoopTimes, observer: &mut impl Observer) {
        observer.forged(self.window.block(block), times);
        let known = self.window.known_mut(block, host);
        known.body = true;
        known.noticed = true;
        self.enqueue(now, host, block);
    }

    // ---- headers and fetch decisions ---------------------------------------------------------------------------

    fn header(&mut self, event: &Event<Kind>, place: u32, observer: &mut impl Observer) {
        let (now, host, block) = (event.time_ns, event.host, event.block);
        if let Some(stall) = absent(&self.order.disturbances.stalled, host, now) {
            return self.hold_back(event, &stall);
        }
        let peer = self.upstream(host, place);
        observer.header(now, host, peer.host, self.window.block(block));
        self.hosts[host as usize].heard[place as usize] = block;
        let tip = self.hosts[host as usize].tip;
        let plausible = self.window.prefers(block, tip);
        let concurrency = self.scenario.parameters.fetch_concurrency;
        let known = self.window.known_mut(block, host);
        known.noticed = true;
        if known.body || !plausible {
            return;
        }
        known.candidates |= 1 << place;
        if !known.deciding && known.in_flight < concurrency {
            self.plan_decision(now, host, block, peer.host);
        }
    }

    fn plan_decision(&mut self, now: u64, host: u32, block: BlockNumber, peer: u32) {
        self.window.known_mut(block, host).deciding = true;
        let numbers = &self.cluster.numbers;
        let draws = self.draws(block);
        let wait = self.timing.request(draws, numbers[host as usize], numbers[peer as usize]);
        let interval = (self.scenario.parameters.decision_interval_s * NS) as u64;
        let earliest = self.hosts[host as usize].last_decision_ns.map_or(0, |last| last + interval);
        self.plan((now + wait).max(earliest), host, block, Kind::Decision);
    }

    fn decide(&mut self, now: u64, host: u32, block: BlockNumber, observer: &mut impl Observer) {
        self.hosts[host as usize].last_decision_ns = Some(now);
        self.window.known_mut(block, host).deciding = false;
        let concurrency = self.scenario.parameters.fetch_concurrency;
        loop {
            let known = self.window.known_mut(block, host);
            if known.body || known.candidates == 0 || known.in_flight >= concurrency {
                return;
            }
            let place = known.candidates.trailing_zeros();
            known.candidates &= known.candidates - 1;
            self.request(now, host, place, block, observer);
        }
    }

    /// Request everything that is missing up to a peer's last header.
    fn request(&mut self, now: u64, host: u32, place: u32, block: BlockNumber, observer: &mut impl Observer) {
        let link = self.upstream(host, place);
        let heard = self.hosts[host as usize].heard[place as usize];
        let better = self.window.remembers(heard) && heard != block && self.window.descends(heard, block);
        let head = if better && !self.window.has(heard, host) && self.window.known(heard, host).in_flight == 0 {
            heard
        } else {
            block
        };
        let mut range = vec![head];
        let mut next = self.window.block(head).parent;
        while !self.window.has(next, host) && (next == block || self.window.known(next, host).in_flight == 0) {
            range.push(next);
            next = self.window.block(next).parent;
        }
        range.reverse();
        observer.requested(now, host, link.host, self.window.block(head), range.len() as u32);
        self.serve(now, host, place, &link, &range, observer);
    }

    fn serve(
        &mut self,
        now: u64,
        host: u32,
        place: u32,
        link: &Upstream,
        range: &[BlockNumber],
        observer: &mut impl Observer,
    ) {
        let numbers = (self.cluster.numbers[host as usize], self.cluster.numbers[link.host as usize]);
        let trip = half_ns(link.rtt_s);
        let mut sent = now + trip;
        let (mut bytes, mut first_sent, mut arrived) = (0, 0, 0);
        let total: u64 = range.iter().map(|&number| u64::from(self.window.block(number).bytes)).sum();
        let transfer = self.transport.send(link, total, sent);
        for &number in range {
            let draws = self.draws(number);
            sent += self.timing.server(draws, numbers.0, numbers.1);
            first_sent = if bytes == 0 { sent } else { first_sent };
            bytes += u64::from(self.window.block(number).bytes);
            // A later block of the range needs the rounds of all bytes before it, at most those of the whole.
            let share = bytes as f64 / total as f64;
            let rounds = (f64::from(transfer.rounds) * share).ceil().max(1.0) as u32;
            let on_wire = extra_rounds_ns(rounds, link.rtt_s) + (transfer.bytes_ns as f64 * share) as u64;
            arrived = (first_sent.max(sent) + trip + on_wire).max(arrived);
            arrived += self.timing.client(draws, numbers.0, numbers.1);
            let at = now + self.timing.changed_fetch(arrived - now, link.fetch);
            self.window.known_mut(number, host).in_flight += 1;
            if self.offline(link.host, sent) {
                self.plan(at + 2 * trip, host, number, Kind::Lost);
            } else {
                observer.sent(sent, link.host, host, self.window.block(number));
                self.plan(at, host, number, Kind::Body { place });
            }
        }
    }

    fn lost(&mut self, now: u64, host: u32, block: BlockNumber) {
        let known = self.window.known_mut(block, host);
        known.in_flight = known.in_flight.saturating_sub(1);
        if known.body || known.deciding {
            return;
        }
        self.ask_again(now, host, block);
    }

    /// Plan a decision about a block among all peers known to have it.
    fn ask_again(&mut self, now: u64, host: u32, block: BlockNumber) {
        let mut candidates = 0;
        for (place, &heard) in self.hosts[host as usize].heard.iter().enumerate() {
            let peer = self.cluster.upstream[host as usize][place].host;
            if self.window.remembers(heard) && !self.offline(peer, now) && self.window.descends(heard, block) {
                candidates |= 1 << place;
            }
        }
        self.window.known_mut(block, host).candidates = candidates;
        if candidates != 0 {
            let peer = self.upstream(host, candidates.trailing_zeros()).host;
            self.plan_decision(now, host, block, peer);
        }
    }

    fn body(&mut self, event: &Event<Kind>, place: u32, observer: &mut impl Observer) {
        let (now, host, block) = (event.time_ns, event.host, event.block);
        if let Some(stall) = absent(&self.order.disturbances.stalled, host, now) {
            return self.hold_back(event, &stall);
        }
        let peer = self.upstream(host, place).host;
        let known = self.window.known_mut(block, host);
        known.in_flight = known.in_flight.saturating_sub(1);
        let first = !known.body;
        known.body = true;
        observer.fetched(now, host, peer, self.window.block(block), first);
        if first {
            self.enqueue(now, host, block);
        }
    }

    // ---- chain selection ---------------------------------------------------------------------------------------

    fn enqueue(&mut self, now: u64, host: u32, block: BlockNumber) {
        let known = self.window.known_mut(block, host);
        if !known.queued {
            known.queued = true;
            let at = now.max(self.hosts[host as usize].busy_until_ns);
            self.plan(at, host, block, Kind::Select);
        }
    }

    fn select(&mut self, now: u64, host: u32, block: BlockNumber, observer: &mut impl Observer) {
        let state = &self.hosts[host as usize];
        if now < state.busy_until_ns {
            return self.plan(state.busy_until_ns, host, block, Kind::Select);
        }
        self.window.known_mut(block, host).queued = false;
        let tip = state.tip;
        let chosen = *self.window.block(block);
        let extends = chosen.parent == tip;
        if !extends && !self.complete(block, host) {
            self.hosts[host as usize].waiting.push(block);
            return observer.selected(now, host, &chosen, Selection::Stored);
        }
        if !extends && !self.window.prefers(block, tip) {
            return observer.selected(now, host, &chosen, Selection::Stored);
        }
        let adopted = now + self.validation_ns(host, &chosen, tip);
        self.hosts[host as usize].busy_until_ns = adopted;
        self.plan(adopted, host, block, Kind::Adopted { from: tip });
        if extends && self.scenario.parameters.pipelining {
            self.plan(now + self.announcement_ns(host, &chosen), host, block, Kind::Announce);
        }
    }

    /// Whether a host has all bodies back to its own chain.
    fn complete(&self, block: BlockNumber, host: u32) -> bool {
        let fork = self.window.common_ancestor(block, self.hosts[host as usize].tip);
        let mut next = block;
        while next > fork && self.window.remembers(next) {
            if !self.window.has(next, host) {
                return false;
            }
            next = self.window.block(next).parent;
        }
        true
    }

    /// Validating every block between the fork and this block.
    fn validation_ns(&self, host: u32, block: &Block, tip: BlockNumber) -> u64 {
        let number = self.cluster.numbers[host as usize];
        let fork = self.window.common_ancestor(block.number, tip);
        let (mut next, mut total) = (block.number, 0);
        while next > fork && self.window.remembers(next) {
            let ancestor = self.window.block(next);
            let regime = Regime { fast: ancestor.fast, slow: ancestor.slow };
            let (usual, extra) = self.timing.adoption(self.draws(next), number, regime, ancestor.forger == host);
            total += usual + extra;
            next = ancestor.parent;
        }
        total
    }

    fn announcement_ns(&self, host: u32, block: &Block) -> u64 {
        let number = self.cluster.numbers[host as usize];
        let draws = self.draws(block.number);
        if block.forger == host {
            self.timing.forger_announcement(draws, number)
        } else {
            self.timing.announcement(draws, number)
        }
    }

    fn adopted(&mut self, now: u64, host: u32, block: BlockNumber, from: BlockNumber, observer: &mut impl Observer) {
        let chosen = *self.window.block(block);
        let extended = chosen.parent == from;
        let selection = if extended { Selection::Extended } else { Selection::Switched { from } };
        self.hosts[host as usize].tip = block;
        if self.best == GENESIS || self.window.prefers(block, self.best) {
            self.best = block;
        }
        observer.selected(now, host, &chosen, selection);
        if !extended || !self.scenario.parameters.pipelining {
            self.plan(now + self.announcement_ns(host, &chosen), host, block, Kind::Announce);
        }
        for waiting in std::mem::take(&mut self.hosts[host as usize].waiting) {
            if !self.window.remembers(waiting) {
                continue;
            }
            if self.complete(waiting, host) {
                self.enqueue(now, host, waiting);
            } else {
                self.hosts[host as usize].waiting.push(waiting);
            }
        }
    }

    fn announce(&mut self, now: u64, host: u32, block: BlockNumber, observer: &mut impl Observer) {
        let reported = self.hosts[host as usize].announced_tip;
        let fork = if self.window.remembers(reported) { self.window.common_ancestor(reported, block) } else { GENESIS };
        let mut news = Vec::new();
        let mut next = block;
        while next != fork && self.window.remembers(next) && !self.window.known(next, host).announced {
            news.push(next);
            next = self.window.block(next).parent;
        }
        news.reverse();
        self.hosts[host as usize].announced_tip = block;
        let mut rollback = (fork != reported).then_some(fork);
        for (behind, &number) in news.iter().enumerate() {
            self.window.known_mut(number, host).announced = true;
            self.announce_to_peers(now + behind as u64 * CATCH_UP_STEP_NS, host, number, rollback.take(), observer);
        }
    }

    fn announce_to_peers(
        &mut self,
        now: u64,
        host: u32,
        block: BlockNumber,
        rollback: Option<BlockNumber>,
        observer: &mut impl Observer,
    ) {
        let draws = self.draws(block);
        let number = self.cluster.numbers[host as usize];
        for k in 0..self.cluster.downstream[host as usize].len() {
            let peer = self.cluster.downstream[host as usize][k];
            let leaves = now + k as u64 * ANNOUNCEMENT_STEP_NS;
            if self.offline(peer.host, leaves) {
                continue;
            }
            let ancestor = rollback.filter(|&b| self.window.remembers(b)).map(|b| *self.window.block(b));
            observer.announced(leaves, host, peer.host, self.window.block(block), ancestor.as_ref());
            let link = self.upstream(peer.host, peer.place);
            let service = self.timing.header(draws, self.cluster.numbers[peer.host as usize], number);
            self.plan(leaves + half_ns(link.rtt_s) + service, peer.host, block, Kind::Header { place: peer.place });
        }
    }

    /// What a stalled host is sent comes at the end of the stall, in order and all but at once.
    fn hold_back(&mut self, event: &Event<Kind>, stall: &Absence) {
        if stall.until_ns != NEVER {
            let behind = (event.time_ns - stall.from_ns) / 1_000_000;
            self.plan(stall.until_ns + behind, event.host, event.block, event.kind);
        }
    }

    // ---- absences ----------------------------------------------------------------------------------------------

    /// A host that was down discards pending work and learns from all its peers what it missed.
    fn return_of(&mut self, host: u32, now: u64) {
        let was_offline = self.order.disturbances.offline.iter().any(|a| a.host == host && a.until_ns == now);
        if !was_offline {
            return; // what was held back comes by itself
        }
        for number in self.window.oldest()..=self.window.newest {
            let known = self.window.known_mut(number, host);
            (known.in_flight, known.candidates) = (0, 0);
            (known.deciding, known.queued) = (false, false);
        }
        let state = &mut self.hosts[host as usize];
        state.busy_until_ns = now;
        state.waiting.clear();
        for place in 0..state.heard.len() as u32 {
            let link = self.upstream(host, place);
            let opened = now + HANDSHAKE_NS + half_ns(link.rtt_s) * 4;
            self.plan(opened, host, self.window.newest, Kind::CatchUp { place });
        }
    }

    fn catch_up(&mut self, now: u64, host: u32, place: u32) {
        let link = self.upstream(host, place);
        if self.offline(link.host, now) {
            return;
        }
        let (reported, tip) = (self.hosts[link.host as usize].announced_tip, self.hosts[host as usize].tip);
        if !self.window.remembers(reported) {
            return;
        }
        let fork = self.window.common_ancestor(reported, tip);
        let (mut missed, mut next) = (Vec::new(), reported);
        while next != fork && self.window.remembers(next) {
            missed.push(next);
            next = self.window.block(next).parent;
        }
        let number = self.cluster.numbers[host as usize];
        let peer = self.cluster.numbers[link.host as usize];
        let service = self.timing.header(self.draws(reported), number, peer);
        for (behind, &block) in missed.iter().rev().enumerate() {
            let arrives = now + half_ns(link.rtt_s) + service + behind as u64 * CATCH_UP_STEP_NS;
            self.plan(arrives, host, block, Kind::Header { place });
        }
    }

    fn upstream(&self, host: u32, place: u32) -> Upstream {
        self.cluster.upstream[host as usize][place as usize]
    }

    fn draws(&self, block: BlockNumber) -> Draws {
        let block = self.window.block(block);
        Timing::block_draws(self.scenario.seed, block.slot, self.cluster.numbers[block.forger as usize])
    }
}

/// 1 − (1 − f)^σ, where a host's share σ of the stake is its share of the pools.
fn leader_probabilities(cluster: &Cluster, active_slots_coefficient: f64) -> Vec<f64> {
    let all: f64 = cluster.pools.iter().map(|&pools| f64::from(pools)).sum();
    let led = |pools: u32| 1.0 - (1.0 - active_slots_coefficient).powf(f64::from(pools) / all);
    cluster.pools.iter().map(|&pools| led(pools)).collect()
}

fn absent(absences: &[Absence], host: u32, time_ns: u64) -> Option<Absence> {
    absences.iter().copied().find(|a| a.host == host && a.from_ns <= time_ns && time_ns < a.until_ns)
}

fn check(order: &ChainConfig, cluster: &Cluster) -> Result<()> {
    let (f, slot) = (order.active_slots_coefficient, order.slot_length_s);
    if !(f > 0.0 && f < 1.0) {
        return Err(SimulationError::impossible(
            format!("the active slots coefficient is {f}"),
            "it is a probability between 0 and 1; 0.05 gives a block every 20 slots",
        ));
    }
    if !(slot > 0.0 && slot <= 3600.0) {
        return Err(SimulationError::impossible(format!("a slot of {slot} s is impossible"), "1 s is usual"));
    }
    let n = cluster.hosts();
    let faulty = order.disturbances.offline.iter().chain(&order.disturbances.stalled).map(|a| a.host);
    let forced = order.disturbances.forced_leaders.iter().map(|(_, host)| *host);
    if let Some(host) = faulty.chain(forced).find(|&host| host as usize >= n) {
        return Err(SimulationError::impossible(
            format!("a disturbance names host {host}, but there are {n}"),
            format!("hosts are numbered from 0 to {}", n - 1),
        ));
    }
    Ok(())
}
