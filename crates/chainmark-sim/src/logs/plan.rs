//! From what a host does to the lines that it will write: each event of the network, each slot, each batch of
//! transactions leads to several lines, a little before or after it.

use chainmark_random::mix;

use crate::logs::canned::{GOVERNOR_PERIOD_NS, GOVERNOR_US, START_US};
use crate::logs::event::{Action, Heard};
use crate::logs::fault::Kind;
use crate::logs::host::{Host, START_NS};
use crate::logs::message::Message;
use crate::logs::shared::{FROM_FORGE, Shared};
use crate::logs::transactions::Transactions;
use crate::logs::truth::SlotRow;
use crate::random::{Draws, Purpose};
use crate::trace::{BlockNumber, GENESIS, LoopTimes, Selection};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;
/// Hosts are started within so long, all before the network's start.
const START_SPREAD_NS: f64 = 4e9;
/// The peers are connected so long after the start of the process.
const CONNECTED_AFTER_NS: i64 = 4_130_000_000;
const SAMPLE_AFTER_START_NS: i64 = 90 * MS;
/// Where in a slot the ledger's figures are printed.
const LEDGER_METRICS_AT: f64 = 0.7;
const RESOURCES_PERIOD_NS: i64 = S;
/// Interval of ledger snapshots.
const LEDGER_SNAPSHOT_PERIOD_NS: i64 = 4_230 * S;
/// Blocks are collected so long after they became immutable.
const COLLECTION_AFTER_NS: i64 = 60 * S;
/// Transactions that follow each other faster than this come in one batch.
const BATCH_GAP_NS: i64 = 150 * MS;
/// Shares of batches of 1, 2, … transactions.
const BATCH_SIZES: [f64; 6] = [0.33, 0.27, 0.19, 0.11, 0.06, 0.04];
/// Batches whose transactions are counted with the next batch, as the nodes' counters sometimes do.
const MISCOUNTED: f64 = 0.03;

impl Host {
    fn plan_line(&mut self, at_ns: i64, message: Message, value: u64) {
        self.push(at_ns, Action::Say(message), GENESIS, 0, value);
    }

    fn plan_block_line(&mut self, at_ns: i64, message: Message, block: BlockNumber) {
        self.push(at_ns, Action::Say(message), block, 0, 0);
    }

    fn plan_peer_line(&mut self, at_ns: i64, message: Message, block: BlockNumber, link: u16) {
        self.push(at_ns, Action::Say(message), block, link, 0);
    }

    // ---- a process starts -----------------------------------------------------------------------------------------

    /// The process starts shortly before the network does, and after every outage that ends.
    pub fn plan_starts(&mut self) {
        let mut starts: Vec<i64> = Vec::new();
        if self.outages.front().is_none_or(|first| first.down_ns > 0) {
            let early_ns = START_NS + (self.line_draws.unit(self.number, Purpose::Noise, 0) * START_SPREAD_NS) as i64;
            starts.push(-early_ns);
        }
        starts.extend(self.outages.iter().filter(|outage| outage.online_ns < i64::MAX).map(|outage| outage.up_ns));
        self.next_sample_ns = starts.first().map_or(i64::MAX, |start| start + SAMPLE_AFTER_START_NS);
        for start_ns in starts {
            for (number, after_us) in START_US.iter().enumerate() {
                self.push(start_ns + *after_us as i64 * 1000, Action::Start, GENESIS, 0, number as u64);
            }
            self.plan_connections(start_ns + CONNECTED_AFTER_NS);
        }
    }

    // ---- the passing of time -----------------------------------------------------------------------------------

    /// Plan everything that comes with time alone: the slots given, samples and looks for peers up to a time.
    pub fn plan_slots(&mut self, slots: std::ops::Range<u64>, shared: &Shared) {
        for slot in slots {
            let start_ns = shared.order.slot_start_ns(slot);
            let times = shared.run.loop_times(slot, self.number);
            if self.online(times.started_ns as i64) {
                self.plan_slot(slot, start_ns, &times, shared);
            }
            if slot > 0 && slot.is_multiple_of(shared.order.chain.epoch_slots) {
                self.push(start_ns, Action::Busy, GENESIS, 0, slot);
            }
        }
    }

    fn plan_slot(&mut self, slot: u64, start_ns: i64, times: &LoopTimes, shared: &Shared) {
        let is_leader = shared.run.is_leader(slot, self.number);
        self.slots.insert(SlotRow { slot, is_leader, ..SlotRow::default() });
        let draws = shared.draws(0x510e, slot);
        let started_ns = times.started_ns as i64;
        if is_leader || !self.befallen(Kind::MissedStart, started_ns, draws) {
            self.plan_loop(slot, times, 0, is_leader);
        }
        if !is_leader && self.befallen(Kind::DoubleStart, started_ns, draws) {
            let later_ns = 80 * MS + (draws.unit(self.number, Purpose::Noise, 1) * 200e6) as i64;
            self.plan_loop(slot, times, later_ns, is_leader);
        }
        let in_slot = LEDGER_METRICS_AT * shared.order.chain.slot_length_s * 1e9;
        let late_ns = 2 * MS + (draws.exponential(self.number, Purpose::Ledger, 0, 1.6e6) as i64).min(250 * MS);
        self.plan_line(start_ns + in_slot as i64 + late_ns, Message::LedgerMetrics, slot);
    }

    /// Whether a fault of slots applies to this one; counts it.
    fn befallen(&mut self, kind: Kind, at_ns: i64, draws: Draws) -> bool {
        let Some(index) = self.damage.holding(kind, at_ns) else { return false };
        let hit = draws.unit(self.number, Purpose::Fault, index as u32) < self.damage.faults[index].value;
        self.damage.lines[index] += u64::from(hit);
        hit
    }

    fn plan_loop(&mut self, slot: u64, times: &LoopTimes, later_ns: i64, is_leader: bool) {
        let at = |ns: u64| ns as i64 + later_ns;
        let view_ns = at(times.ledger_view_ns);
        let decided_ns = at(times.leadership_ns);
        self.plan_line(at(times.started_ns), Message::LoopStart, slot);
        self.plan_line(at(times.block_context_ns), Message::BlockContext, slot);
        self.plan_line(at(times.ledger_state_ns), Message::LedgerState, slot);
        self.plan_line(view_ns, Message::LedgerView, slot);
        self.plan_line(view_ns + (decided_ns - view_ns) / 5, Message::StateInfo, slot);
        self.plan_line(decided_ns, if is_leader { Message::IsLeader } else { Message::NotLeader }, slot);
    }

    /// Plan resource samples, ledger snapshots and looks for peers up to a time.
    pub fn plan_periodic(&mut self, until_ns: i64, shared: &Shared) {
        while self.next_sample_ns < until_ns {
            if let Some(up_ns) = self.down_until(self.next_sample_ns) {
                self.next_sample_ns = up_ns.saturating_add(90 * MS);
                continue;
            }
            let at_ns = self.next_sample_ns;
            self.plan_line(at_ns, Message::Resources, 0);
            let late = shared.draws(0x05a3, at_ns as u64).unit(self.number, Purpose::Resources, 9);
            self.next_sample_ns += RESOURCES_PERIOD_NS + 500 * US + (late * 2e6) as i64;
        }
        while self.next_snapshot_ns < until_ns {
            let at_ns = self.next_snapshot_ns;
            let draws = shared.draws(0x5a97, at_ns as u64);
            let took_ns = 2 * S + (draws.unit(self.number, Purpose::Ledger, 0) * 6e9) as i64;
            self.push(at_ns, Action::Busy, GENESIS, 0, u64::MAX);
            self.plan_line(at_ns, Message::TookSnapshotRising, 0);
            self.plan_line(at_ns + took_ns, Message::TookSnapshotFalling, took_ns as u64);
            self.next_snapshot_ns += LEDGER_SNAPSHOT_PERIOD_NS;
        }
        while self.next_governor_ns < until_ns {
            let at_ns = self.next_governor_ns;
            for (number, after_us) in GOVERNOR_US.iter().enumerate() {
                self.push(near(at_ns, *after_us as i64), Action::Governor, GENESIS, 0, number as u64);
            }
            let late = shared.draws(0x60e5, at_ns as u64).unit(self.number, Purpose::Noise, 0);
            self.next_governor_ns += GOVERNOR_PERIOD_NS + (late * 20e9) as i64;
        }
    }

    /// Plan what a process says when its peers are connected.
    pub fn plan_connections(&mut self, at_ns: i64) {
        for link in 0..self.links.len() as u16 {
            let connected_ns = near(at_ns, i64::from(link) * 2_300);
            if self.links[link as usize].upstream {
                self.plan_peer_line(connected_ns, Message::FoundIntersection, GENESIS, link);
                self.plan_peer_line(near(connected_ns, 600), Message::RolledBack, GENESIS, link);
            }
            self.plan_peer_line(near(connected_ns, 1_400), Message::NewFollower, GENESIS, link);
        }
    }

    // ---- blocks ------------------------------------------------------------------------------------------------

    /// Plan the lines about the network's events.
    pub fn plan_heard(&mut self, shared: &Shared) {
        let mut inbox = std::mem::take(&mut self.inbox);
        for heard in inbox.drain(..) {
            match heard {
                Heard::Forged { block, times } => self.plan_forged(block, &times, shared),
                Heard::Header { at_ns, peer, block } => self.plan_header(at_ns, self.link(peer), block),
                Heard::Requested { at_ns, peer, block, length } => {
                    self.plan_request(at_ns, self.link(peer), block, length);
                }
                Heard::Sent { at_ns, peer, block } => self.plan_send(at_ns, self.link(peer), block),
                Heard::Fetched { at_ns, peer, block, first } => {
                    self.plan_fetched(at_ns, self.link(peer), block, first, shared);
                }
                Heard::Announced { at_ns, peer, block, rollback } => {
                    self.plan_announcement(at_ns, self.link(peer), block, rollback, shared);
                }
                Heard::Selected { at_ns, block, selection } => self.plan_selection(at_ns, block, selection, shared),
            }
        }
        self.inbox = inbox;
    }

    fn plan_forged(&mut self, block: BlockNumber, times: &LoopTimes, shared: &Shared) {
        let slot = shared.blocks.get(block).block.slot;
        let forged_ns = times.forged_ns as i64;
        self.leading.push((slot, block));
        for (ns, message) in [
            (times.ticked_ns as i64, Message::Ticked),
            (times.snapshot_ns as i64, Message::Snapshot),
            (forged_ns, Message::Forged),
        ] {
            self.push(ns, Action::Say(message), block, 0, slot);
        }
        // The forge loop puts it into the queue.
        self.push(near(forged_ns, 59), Action::Say(Message::QueueRising), block, FROM_FORGE, 0);
        self.push(near(forged_ns, 84), Action::Say(Message::QueueFalling), block, FROM_FORGE, 0);
        self.plan_queued(near(forged_ns, 100), block);
    }

    fn plan_header(&mut self, at_ns: i64, link: u16, block: BlockNumber) {
        self.plan_peer_line(at_ns, Message::DownloadedHeader, block, link);
        for (after_us, message) in [
            (602, Message::ValidatedHeader),
            (648, Message::GaveToken),
            (670, Message::JumpingWaiting),
            (680, Message::JumpingInstruction),
        ] {
            self.plan_peer_line(near(at_ns, after_us), message, block, link);
        }
    }

    fn plan_request(&mut self, at_ns: i64, link: u16, block: BlockNumber, length: u32) {
        self.plan_peer_line(near(at_ns, -87), Message::AddedFetch, block, link);
        self.plan_peer_line(near(at_ns, -23), Message::AcknowledgedFetch, block, link);
        self.push(at_ns, Action::Say(Message::SendFetch), block, link, u64::from(length));
    }

    fn plan_fetched(&mut self, at_ns: i64, link: u16, block: BlockNumber, first: bool, shared: &Shared) {
        let draws = shared.draws(0xf3c4, u64::from(block));
        let body_ns = 500 * US + (draws.unit(self.number, Purpose::Noise, u32::from(link)) * 2e6) as i64;
        self.plan_peer_line(at_ns - body_ns, Message::StartedBatch, block, link);
        self.plan_peer_line(near(at_ns, -62), Message::QueueRising, block, link);
        self.plan_peer_line(near(at_ns, -44), Message::QueueFalling, block, link);
        self.plan_peer_line(at_ns, Message::CompletedFetch, block, link);
        self.plan_peer_line(near(at_ns, 54), Message::CompletedBatch, block, link);
        if first {
            self.plan_queued(near(at_ns, 60), block);
        } else {
            self.plan_block_line(near(at_ns, 180), Message::Popped, block);
            self.plan_block_line(near(at_ns, 200), Message::AlreadyInVolatile, block);
            self.plan_block_line(near(at_ns, 230), Message::Popping, block);
        }
    }

    /// The chain database takes a block from its queue.
    fn plan_queued(&mut self, at_ns: i64, block: BlockNumber) {
        for (after_us, message) in [
            (15, Message::StarvationEnded),
            (25, Message::Popped),
            (56, Message::VolatileRising),
            (230, Message::VolatileFalling),
            (264, Message::LimitOnEagerness),
            (280, Message::TryAdd),
        ] {
            self.plan_block_line(near(at_ns, after_us), message, block);
        }
    }

    fn plan_announcement(
        &mut self,
        at_ns: i64,
        link: u16,
        block: BlockNumber,
        rollback: Option<BlockNumber>,
        shared: &Shared,
    ) {
        if self.announced != block {
            self.announced = block;
            self.plan_block_line(near(at_ns, -200), Message::TentativeRising, block);
            self.plan_block_line(near(at_ns, -191), Message::TentativeFalling, block);
        }
        if let Some(ancestor) = rollback {
            self.plan_rollback(near(at_ns, -90), link, block, ancestor);
        }
        let draws = shared.draws(0xa220, u64::from(block));
        let host = self.number;
        let drawn = |purpose| draws.unit(host, Purpose::Fault, 8 * u32::from(link) + purpose);
        if let Some(index) = self.damage.holding(Kind::Rollback, at_ns)
            && drawn(0) < self.damage.faults[index].value
        {
            self.damage.lines[index] += 2;
            let parent = shared.blocks.get(block).block.parent;
            self.plan_rollback(near(at_ns, -80), link, block, parent);
        }
        if let Some(index) = self.damage.holding(Kind::NonBlocking, at_ns)
            && drawn(1) < self.damage.faults[index].value
        {
            self.damage.lines[index] += 2;
            self.push(near(at_ns, -70), Action::NonBlockingRising, block, link, 0);
            self.push(near(at_ns, -40), Action::NonBlockingFalling, block, link, 0);
        }
        self.plan_peer_line(at_ns, Message::AnnounceRising, block, link);
        self.plan_peer_line(near(at_ns, 45), Message::AnnounceFalling, block, link);
    }

    fn plan_rollback(&mut self, at_ns: i64, link: u16, block: BlockNumber, ancestor: BlockNumber) {
        self.push(at_ns, Action::RollBackRising, block, link, u64::from(ancestor));
        self.push(near(at_ns, 30), Action::RollBackFalling, block, link, u64::from(ancestor));
    }

    fn plan_send(&mut self, at_ns: i64, link: u16, block: BlockNumber) {
        self.plan_peer_line(near(at_ns, -155), Message::Stream, block, link);
        self.plan_peer_line(at_ns, Message::SendBlock, block, link);
    }

    fn plan_selection(&mut self, at_ns: i64, block: BlockNumber, selection: Selection, shared: &Shared) {
        let message = match selection {
            Selection::Stored => return self.plan_block_line(at_ns, Message::StoreOnly, block),
            Selection::Extended => Message::AddedToChain,
            Selection::Switched { .. } => Message::SwitchedToFork,
        };
        if message == Message::SwitchedToFork {
            self.plan_block_line(at_ns - 2 * MS, Message::TrySwitch, block);
        }
        self.plan_block_line(near(at_ns, -100), Message::ChangingSelection, block);
        self.plan_block_line(at_ns, message, block);
        self.plan_block_line(near(at_ns, 70), Message::TentativeOutdated, block);
        self.plan_block_line(near(at_ns, 126), Message::Popping, block);
        self.plan_block_line(near(at_ns, 137), Message::StarvationBegan, block);
        self.plan_block_line(near(at_ns, 4_500), Message::CopiedToImmutable, block);
        self.plan_block_line(near(at_ns, 4_520), Message::ScheduledCollection, block);
        self.plan_block_line(at_ns + COLLECTION_AFTER_NS, Message::PerformedCollection, block);
        // The mempool is synchronised with the new tip, and the forge loop waits for that.
        let drawn = shared.draws(0x3e30, u64::from(block)).unit(self.number, Purpose::Noise, 0);
        let synchronised_ns = at_ns + 8 * MS + (drawn * 7e6) as i64;
        if shared.blocks.get(block).block.forger == self.number {
            self.plan_block_line(synchronised_ns - 700 * US, Message::AdoptedBlock, block);
        }
        self.plan_block_line(synchronised_ns, Message::RemoveTxs, block);
    }

    // ---- transactions ------------------------------------------------------------------------------------------

    /// Plan the batches of transactions that arrive before a time.
    pub fn plan_transactions(&mut self, until_ns: i64, shared: &Shared) {
        if self.links.iter().all(|link| !link.upstream) {
            return;
        }
        loop {
            if let Some(online_ns) = self.offline_until(self.batch_end_ns) {
                self.batch_end_ns = online_ns.saturating_add(500 * MS);
                self.refills = true;
            }
            if self.refills {
                if self.batch_end_ns >= until_ns {
                    return;
                }
                // A restarted node requests the content of the others' mempools.
                self.next_transaction = shared.transactions.consumed();
                (self.refills, self.miscounted) = (false, None);
            }
            let first = self.next_transaction;
            let draws = shared.draws(0x7a45, first);
            let Some((count, released_ns)) = self.batch(draws, first, shared.transactions) else { return };
            let spread_ns = 50 * MS + (draws.unit(self.number, Purpose::Transactions, 1) * 400e6) as i64;
            let at_ns = released_ns.saturating_add(spread_ns).max(self.batch_end_ns + 50 * US);
            let at_ns = self.stalled_until(at_ns).unwrap_or(at_ns);
            if at_ns >= until_ns {
                return;
            }
            if self.offline_until(at_ns).is_some() {
                self.batch_end_ns = at_ns;
                continue;
            }
            self.next_transaction += count;
            self.plan_batch(at_ns, first, count, draws);
        }
    }

    /// How many transactions come together, and when the last of them was submitted.
    fn batch(&self, draws: Draws, first: u64, transactions: &Transactions) -> Option<(u64, i64)> {
        let mut drawn = draws.unit(self.number, Purpose::Transactions, 0);
        let mut wanted = 1;
        for share in BATCH_SIZES {
            if drawn < share {
                break;
            }
            drawn -= share;
            wanted += 1;
        }
        let mut last_ns = transactions.released_ns(first)?;
        let mut count = 1;
        while count < wanted.min(BATCH_SIZES.len() as u64) {
            match transactions.released_ns(first + count) {
                Some(ns) if ns <= last_ns.saturating_add(BATCH_GAP_NS) => last_ns = ns,
                _ => break,
            }
            count += 1;
        }
        Some((count, last_ns))
    }

    fn plan_batch(&mut self, at_ns: i64, first: u64, count: u64, draws: Draws) {
        let upstream = self.links.iter().filter(|link| link.upstream).count() as u64;
        let link = draws.below(self.number, Purpose::Transactions, 2, upstream) as u16;
        let count_of = |message| Action::Say(message);
        self.push(near(at_ns, -1_000), count_of(Message::CanRequest), GENESIS, link, 0);
        self.push(near(at_ns, -960), count_of(Message::CannotRequest), GENESIS, link, count);
        self.push(at_ns, count_of(Message::Collected), GENESIS, link, count);
        let miscounted = self.miscounted.is_none() && draws.unit(self.number, Purpose::Transactions, 3) < MISCOUNTED;
        let mut time_ns = at_ns;
        if miscounted {
            self.miscounted = Some((first, count));
        } else {
            let (held_first, held) = self.miscounted.take().unwrap_or((first, 0));
            let all = (held_first..held_first + held).chain(first..first + count);
            for number in all {
                time_ns = near(time_ns, 370);
                self.push(time_ns, Action::Say(Message::AddedTx), GENESIS, link, number);
            }
        }
        self.push(near(time_ns, 15), count_of(Message::Processed), GENESIS, link, 0);
        self.push(near(time_ns, 26), count_of(Message::CannotRequest), GENESIS, link, 1 + count / 2);
        self.batch_end_ns = near(time_ns, 26);
        // Other peers offer the same transactions, in vain.
        let drawn = draws.unit(self.number, Purpose::Transactions, 4);
        let echoes = u32::from(drawn > 0.25) + u32::from(drawn > 0.7);
        for echo in 0..echoes {
            let link = draws.below(self.number, Purpose::Transactions, 5 + echo, upstream) as u16;
            let wait = draws.unit(self.number, Purpose::Transactions, 9 + echo);
            let echo_ns = time_ns + MS + (wait * 150e6) as i64;
            self.push(echo_ns, count_of(Message::CanRequest), GENESIS, link, 0);
            self.push(near(echo_ns, 33), count_of(Message::CannotRequest), GENESIS, link, count);
            self.push(near(echo_ns, 480), count_of(Message::CannotRequest), GENESIS, link, 0);
        }
    }
}

/// About this many microseconds after a time, with a small random offset: no two lines have the same distance in time.
fn near(at_ns: i64, after_us: i64) -> i64 {
    at_ns + after_us * US + (mix(at_ns as u64 ^ after_us as u64) & 0xfff) as i64
}
