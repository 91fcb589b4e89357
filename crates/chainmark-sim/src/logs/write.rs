//! A host's log, line by line in the order of time, and what a reader knows from it.

use crate::error::Result;
use crate::logs::canned::{self, Canned, Context, END_US};
use crate::logs::damage::{LineFacts, Place, truncate};
use crate::logs::data::Pen;
use crate::logs::event::{Action, Event};
use crate::logs::fault::Kind;
use crate::logs::host::{Host, Mempool};
use crate::logs::message::Message;
use crate::logs::order::{Format, Rotation};
use crate::logs::render;
use crate::logs::resources::Resources;
use crate::logs::shared::Shared;
use crate::logs::text::Stamp;
use crate::logs::truth::{Adoption, LOOP_STAGES, Stage};
use crate::random::Purpose;
use crate::trace::GENESIS;

/// The buffer is handed on when it has grown to this.
const BUFFER_BYTES: usize = 1 << 18;

impl Host {
    /// Write everything planned before a time, in the order of time.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn write_until(&mut self, until_ns: i64, shared: &Shared) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        // Stable: of two events at one time, that which was planned first comes first.
        events.sort_by_key(|event| event.at_ns);
        let count = events.partition_point(|event| event.at_ns < until_ns);
        self.out.reserve(BUFFER_BYTES + BUFFER_BYTES / 8);
        for event in &events[..count] {
            self.act(event, shared);
            if self.out.len() >= BUFFER_BYTES {
                self.hand_on()?;
            }
        }
        events.drain(..count);
        self.events = events;
        self.leading.retain(|(slot, _)| shared.order.slot_start_ns(slot + 60) > until_ns);
        self.outages.retain(|outage| outage.online_ns > until_ns);
        self.hand_on()?;
        // A thousand hosts need no thousand buffers.
        self.out = Vec::new();
        Ok(())
    }

    /// End the log: the lines of a shutdown, and perhaps the last one cut off.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn end(&mut self, end_ns: i64, shared: &Shared) -> Result<()> {
        if self.online(end_ns) {
            for (number, after_us) in END_US.iter().enumerate() {
                self.push(end_ns + *after_us as i64 * 1000, Action::End, GENESIS, 0, number as u64);
            }
        }
        self.events.retain(|event| event.at_ns < end_ns || event.action == Action::End);
        self.write_until(i64::MAX, shared)?;
        self.truncate(shared);
        self.hand_on()?;
        self.sink.finish()
    }

    /// A last line that the process did not bring to its end.
    fn truncate(&mut self, shared: &Shared) {
        let Some(index) = self.damage.faults.iter().position(|fault| fault.kind == Kind::Truncated) else { return };
        let action = Action::Say(Message::CannotRequest);
        let event = Event { at_ns: self.last_at_ns + 1_000, value: 1, block: GENESIS, link: 0, action };
        let start = self.out.len();
        if self.line(&event, Message::CannotRequest, shared).is_some() && self.out.len() > start {
            let drawn = self.line_draws.unit(self.number, Purpose::Fault, 7);
            truncate(&mut self.out, start, drawn);
            self.damage.lines[index] += 1;
        }
    }

    fn hand_on(&mut self) -> Result<()> {
        self.sink.write(&self.out)?;
        self.bytes += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    fn act(&mut self, event: &Event, shared: &Shared) {
        if let Some(outage) =
            self.outages.iter().find(|outage| outage.down_ns <= event.at_ns && event.at_ns < outage.online_ns)
        {
            let starting =
                matches!(event.action, Action::Start | Action::Say(Message::Resources)) || connects(event.action);
            if !starting || event.at_ns < outage.up_ns {
                return;
            }
        }
        match event.action {
            Action::Say(message) => self.say(event, message, shared),
            Action::Start => self.start(event, shared),
            Action::End => self.canned(event, canned::end(event.value as usize, &self.context(shared)), shared),
            Action::Governor => {
                let age_ns = event.at_ns - self.started_ns;
                self.canned(event, canned::governor(event.value as usize, self.format, age_ns), shared);
            }
            Action::Busy => self.resources.busy(event.at_ns, event.value),
            // Announcements that no reader may count: a rollback, a read that does not block.
            Action::RollBackRising | Action::NonBlockingRising => {
                self.line(event, Message::AnnounceRising, shared);
            }
            Action::RollBackFalling | Action::NonBlockingFalling => {
                self.line(event, Message::AnnounceFalling, shared);
            }
        }
    }

    fn context<'a>(&'a self, shared: &Shared<'a>) -> Context<'a> {
        let tip = shared.blocks.get(self.tip);
        Context {
            format: self.format,
            host: &self.name,
            address: &self.address,
            last_slot: shared.order.slots,
            tip,
            immutable: shared.blocks.get(tip.immutable),
            peers: self.links.iter().filter(|link| link.upstream).count(),
        }
    }

    fn start(&mut self, event: &Event, shared: &Shared) {
        if event.value == 0 {
            let blocks_per_s = shared.order.chain.active_slots_coefficient / shared.order.chain.slot_length_s;
            let seed = shared.order.scenario.seed;
            self.resources = Resources::new(&shared.order.workload, blocks_per_s, seed, self.number, event.at_ns);
            self.started_ns = event.at_ns;
            let end = shared.blocks.get(self.tip).transactions_end;
            self.mempool = Mempool { low: end, high: end, bytes: 0 };
            (self.collected, self.accepted, self.tentative) = (0, 0, GENESIS);
        }
        self.canned(event, canned::start(event.value as usize, &self.context(shared)), shared);
    }

    fn canned(&mut self, event: &Event, line: Option<Canned>, shared: &Shared) {
        let Some(line) = line else { return };
        self.rotate(event.at_ns);
        let start = self.out.len();
        let printed_ns = self.system_start_ns + self.clock_ns(event.at_ns);
        match line {
            Canned::Text(text) => {
                self.out.extend_from_slice(text.as_bytes());
                self.out.push(b'\n');
            }
            Canned::Object { namespace, legacy, severity, thread, data } => {
                let frames = &self.frames[usize::from(self.damage.holding(Kind::WrongHost, event.at_ns).is_some())];
                let (head, tail) = frames.other(namespace, legacy, severity);
                self.out.extend_from_slice(frames.open);
                push_time(&mut self.stamp, &mut self.out, self.format, printed_ns);
                for part in [&head[..], data.as_bytes(), &tail, frames.node_thread(thread)] {
                    self.out.extend_from_slice(part);
                }
            }
        }
        self.end_line(start, event, None, shared);
    }

    /// The time that the host's clock shows, since the start of the network.
    #[inline]
    fn clock_ns(&self, at_ns: i64) -> i64 {
        at_ns + self.clock_offset_ns + (at_ns as f64 * self.clock_drift) as i64
    }

    fn say(&mut self, event: &Event, message: Message, shared: &Shared) {
        if !self.before(event, message, shared) {
            return;
        }
        let copies = self.line(event, message, shared);
        self.after(event, message, shared, copies);
    }

    /// The changes before a line is written; false if there is nothing to report.
    fn before(&mut self, event: &Event, message: Message, shared: &Shared) -> bool {
        match message {
            Message::TryAdd => shared.blocks.get(event.block).block.parent == self.tip,
            Message::TentativeRising => {
                let first = self.tentative != event.block && shared.blocks.get(event.block).block.parent == self.tip;
                self.tentative = if first { event.block } else { self.tentative };
                first
            }
            Message::TentativeFalling | Message::TentativeOutdated => self.tentative == event.block,
            Message::CopiedToImmutable | Message::ScheduledCollection | Message::PerformedCollection => {
                shared.blocks.get(event.block).immutable != GENESIS
            }
            Message::TookSnapshotRising | Message::TookSnapshotFalling => {
                shared.blocks.get(self.tip).immutable != GENESIS
            }
            Message::AddedTx => self.add(event, shared),
            Message::Collected => {
                self.collected += event.value;
                true
            }
            Message::RemoveTxs => {
                let end = shared.blocks.get(event.block).transactions_end.min(self.mempool.high);
                self.mempool.bytes -=
                    (self.mempool.low..end).map(|number| shared.transactions.bytes(number)).sum::<u64>();
                end > self.mempool.low
            }
            _ => true,
        }
    }

    /// Add a transaction to the mempool, or reject it because a block already holds it.
    fn add(&mut self, event: &Event, shared: &Shared) -> bool {
        let number = event.value;
        if number < self.mempool.low {
            let copies = self.line(event, Message::RejectedTx, shared);
            self.after(event, Message::RejectedTx, shared, copies);
            return false;
        }
        if self.mempool.low == self.mempool.high {
            (self.mempool.low, self.mempool.high) = (number, number);
        }
        self.mempool.high = number + 1;
        self.mempool.bytes += shared.transactions.bytes(number);
        self.accepted += 1;
        true
    }

    /// Append a line; returns how often it can be read, or None if the format has no such message.
    fn line(&mut self, event: &Event, message: Message, shared: &Shared) -> Option<u32> {
        let wrong = !self.damage.faults.is_empty() && self.damage.holding(Kind::WrongHost, event.at_ns).is_some();
        self.frames[usize::from(wrong)].head(message)?;
        self.rotate(event.at_ns);
        let start = self.out.len();
        let clock_ns = self.clock_ns(event.at_ns);
        let mut out = std::mem::take(&mut self.out);
        let usage = (message == Message::Resources).then(|| self.resources.sample(event.at_ns));
        {
            let frames = &self.frames[usize::from(wrong)];
            out.extend_from_slice(frames.open);
            push_time(&mut self.stamp, &mut out, self.format, self.system_start_ns + clock_ns);
            out.extend_from_slice(frames.head(message).unwrap_or_default());
            self.data(&mut Pen(&mut out), event, message, clock_ns, usage.as_ref(), shared);
            out.extend_from_slice(frames.tail(message));
            out.extend_from_slice(render::thread(frames, message, event.link));
        }
        self.out = out;
        let copies = self.end_line(start, event, Some(message), shared);
        if let Some(usage) = usage
            && copies > 0
            && event.at_ns >= 0
            && let Some(row) = self.slots.get(shared.slot_of(event.at_ns))
        {
            row.usage = Some((self.format.printed_ns(clock_ns), usage));
        }
        Some(copies)
    }

    fn rotate(&mut self, at_ns: i64) {
        let full = match self.rotation {
            None => return,
            Some(Rotation::Lines(lines)) => self.file_lines >= lines,
            Some(Rotation::Bytes(bytes)) => self.file_bytes >= bytes,
        };
        if self.line_number > 0 && !full {
            return;
        }
        let mut name = b"stdout-".to_vec();
        let mut stamp = Vec::new();
        self.stamp.push(&mut stamp, self.system_start_ns + self.clock_ns(at_ns));
        name.extend(stamp.into_iter().filter(|byte| !b"-:".contains(byte)));
        self.sink.rotate(&self.out, String::from_utf8_lossy(&name).into_owned());
        self.bytes += self.out.len() as u64;
        self.out.clear();
        (self.file_lines, self.file_bytes) = (0, 0);
    }

    /// Damage the finished line by the faults; returns how often it can be read.
    fn end_line(&mut self, start: usize, event: &Event, message: Option<Message>, shared: &Shared) -> u32 {
        self.line_number += 1;
        let (mut lines, mut copies) = (1, 1);
        if !self.damage.faults.is_empty() {
            if self.limited(event, message) {
                self.out.truncate(start);
                return 0;
            }
            let place = Place { draws: shared.draws(0x11e5, self.line_number), host: self.number };
            let reported = LineFacts {
                at_ns: event.at_ns,
                announces: matches!(message, Some(Message::AnnounceRising | Message::AnnounceFalling)),
                sends: message == Some(Message::SendBlock),
                block_draws: shared.draws(0xb10c, u64::from(event.block)),
            };
            (lines, copies) = self.damage.apply(&mut self.out, start, place, &reported);
            self.line_draws = place.draws;
        }
        self.last_at_ns = event.at_ns;
        self.lines += lines;
        self.file_lines += lines;
        self.file_bytes += (self.out.len() - start) as u64;
        copies
    }

    /// Whether an adoption follows the last one too closely to be logged.
    fn limited(&mut self, event: &Event, message: Option<Message>) -> bool {
        if message != Some(Message::AddedToChain) {
            return false;
        }
        let Some(index) = self.damage.holding(Kind::LimitedAdoptions, event.at_ns) else { return false };
        let gap_ns = (1e9 / self.damage.faults[index].value) as i64;
        if event.at_ns.saturating_sub(self.last_adoption_ns) < gap_ns {
            self.damage.lines[index] += 1;
            return true;
        }
        self.last_adoption_ns = event.at_ns;
        false
    }

    // ---- what follows from lines -------------------------------------------------------------------------------

    /// What changes when a line was, or would have been, written; and what a reader knows from it.
    fn after(&mut self, event: &Event, message: Message, shared: &Shared, copies: Option<u32>) {
        match message {
            Message::AddedToChain | Message::SwitchedToFork => {
                self.tip = event.block;
                self.resources.block();
            }
            Message::StoreOnly => {
                if let Some(row) = self.blocks.of(event.block) {
                    row.adoption.get_or_insert(Adoption::Stored);
                }
            }
            Message::Processed => (self.collected, self.accepted) = (0, 0),
            Message::RemoveTxs => {
                self.mempool.low = shared.blocks.get(event.block).transactions_end.min(self.mempool.high);
            }
            _ => {}
        }
        let Some(copies) = copies else { return };
        let written = copies > 0;
        let printed_ns = self.format.printed_ns(self.clock_ns(event.at_ns));
        match message {
            Message::AddedTx | Message::RemoveTxs if written => {
                let size = self.mempool.size().transactions;
                if let Some(row) = self.slots.get(shared.slot_of(event.at_ns)) {
                    row.mempool_transactions = Some(size);
                }
            }
            Message::LoopStart
            | Message::BlockContext
            | Message::LedgerState
            | Message::LedgerView
            | Message::IsLeader
            | Message::NotLeader
            | Message::LedgerMetrics => self.note_slot(event, message, shared, printed_ns, copies),
            _ => self.note_block(event, message, printed_ns, written),
        }
    }

    fn note_slot(&mut self, event: &Event, message: Message, shared: &Shared, printed_ns: i64, copies: u32) {
        let written = copies > 0;
        let tip = shared.blocks.get(self.tip);
        let stage = match message {
            Message::LoopStart => Some(Stage::Started),
            Message::BlockContext => Some(Stage::BlockContext),
            Message::LedgerState => Some(Stage::LedgerState),
            Message::LedgerView => Some(Stage::LedgerView),
            Message::IsLeader | Message::NotLeader => Some(Stage::Leadership),
            _ => None,
        };
        if let Some(row) = self.slots.get(event.value) {
            if let Some(stage) = stage {
                row.reached[stage as usize].last(event.at_ns, printed_ns, written);
            }
            row.loop_starts += if message == Message::LoopStart { copies } else { 0 };
            let tells = match self.format {
                Format::Legacy | Format::V10_4 => Message::LoopStart,
                _ => Message::LedgerMetrics,
            };
            if message == tells && written {
                row.ledger = Some((tip.density, tip.utxo_entries));
            }
        }
        let forging = self.leading.iter().find(|(slot, _)| *slot == event.value).map(|(_, block)| *block);
        if let (Some(stage), Some(block)) = (stage, forging)
            && let Some(row) = self.blocks.of(block)
        {
            debug_assert!((stage as usize) < LOOP_STAGES);
            row.reached[stage as usize].first(event.at_ns, printed_ns, written);
        }
    }

    fn note_block(&mut self, event: &Event, message: Message, printed_ns: i64, written: bool) {
        let stage = match message {
            Message::Ticked => Stage::Ticked,
            Message::Snapshot => Stage::Snapshot,
            Message::Forged => Stage::Forged,
            Message::DownloadedHeader => Stage::Noticed,
            Message::SendFetch => Stage::Requested,
            Message::CompletedFetch => Stage::Fetched,
            Message::AnnounceRising => Stage::Announced,
            Message::AnnounceFalling => {
                // Without its key, a falling edge counts as an announcement like any other.
                let silent = self.damage.holding(Kind::FallingEdges, event.at_ns).is_none();
                if let Some(row) = self.blocks.of(event.block).filter(|_| silent) {
                    row.reached[Stage::Announced as usize].repeated(printed_ns, written);
                }
                return;
            }
            Message::SendBlock => Stage::Sent,
            Message::AddedToChain | Message::SwitchedToFork => Stage::Adopted,
            Message::AdoptedBlock => Stage::SelfAdopted,
            _ => return,
        };
        let Some(row) = self.blocks.of(event.block) else { return };
        row.reached[stage as usize].first(event.at_ns, printed_ns, written);
        match message {
            Message::SendFetch if row.fetch_length == 0 => row.fetch_length = event.value,
            Message::AddedToChain => row.adoption = Some(Adoption::Extended),
            Message::SwitchedToFork => row.adoption = Some(Adoption::Switched),
            _ => {}
        }
    }
}

/// Whether it is part of opening a connection, which a process does before it takes part.
fn connects(action: Action) -> bool {
    matches!(action, Action::Say(Message::FoundIntersection | Message::RolledBack | Message::NewFollower))
}

#[inline]
fn push_time(stamp: &mut Stamp, out: &mut Vec<u8>, format: Format, ns: i64) {
    if format == Format::Legacy { stamp.push_centiseconds(out, ns) } else { stamp.push(out, ns) }
}
