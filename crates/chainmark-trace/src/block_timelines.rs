//! What one host did with every block that it knew: forged or noticed, requested, fetched, announced, sent, adopted.

use std::collections::BTreeMap;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::columns::{Field, Kind, Table, Text};
use crate::error::Result;
use crate::event::{Event, Fact, Hash, Peer, Place};
use crate::links::NO_PARENT;
use crate::timeline::{NEVER, PHASES, Phase};
use crate::usage::{Unused, Use};

const GROUP_ROWS: usize = 8192;
/// Phases of the forge loop before the forge.
const LOOP_PHASES: usize = PHASES.len() - 1;
/// Number of remembered rounds of the forge loop: a misplaced line is not further off.
const ROUNDS: usize = 64;

/// Stages whose lines are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Forged,
    Noticed,
    Requested,
    Fetched,
    Announced,
    Sent,
    Adopted,
    Switched,
}

const STAGES: [&str; 8] = ["forged", "noticed", "requested", "fetched", "announced", "sent", "adopted", "switched"];

/// Why a host's knowledge of a block cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    UnknownRequested,
    UnknownFetched,
    UnknownAdopted,
    UnknownAnnounced,
    UnknownSent,
    ForgedTwice,
    ForgedAfterNotice,
    RequestedByForger,
}

impl Fault {
    const fn words(self) -> &'static str {
        match self {
            Self::UnknownRequested => "request of an unknown block",
            Self::UnknownFetched => "fetch of an unknown block",
            Self::UnknownAdopted => "adoption of an unknown block",
            Self::UnknownAnnounced => "announcement of an unknown block",
            Self::UnknownSent => "sending of an unknown block",
            Self::ForgedTwice => "forged twice",
            Self::ForgedAfterNotice => "forged after it was noticed",
            Self::RequestedByForger => "request by the forger",
        }
    }

    /// Whether a missing line may still follow, if lines are out of order.
    const fn may_pass(self) -> bool {
        !matches!(self, Self::ForgedTwice | Self::ForgedAfterNotice | Self::RequestedByForger)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Forger,
    Observer,
    Error(Fault),
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Forger => "forger",
            Self::Observer => "observer",
            Self::Error(_) => "error",
        }
    }
}

/// The first time of a stage, and the position of its line.
#[derive(Debug, Clone, Copy)]
struct Reached {
    at_ns: i64,
    place: Place,
}

#[derive(Debug)]
struct BlockTimeline {
    block: Hash,
    role: Role,
    slot: Option<u64>,
    block_no: Option<u64>,
    /// Of forgers; inside, none is the chain's beginning.
    parent: Option<Option<Hash>>,
    size_bytes: Option<u64>,
    request_length: Option<u64>,
    adopted_delta: Option<u64>,
    switched_delta: Option<u64>,
    loop_ns: [i64; LOOP_PHASES],
    stages: [Option<Reached>; STAGES.len()],
    noticed_from: Option<Box<str>>,
    fetched_from: Option<Box<str>>,
    /// As in the line of the fetch.
    fetched_bytes: Option<u64>,
    /// When the block was first requested from each peer, until one of them sent it.
    requests: Vec<(Box<str>, i64)>,
    /// When it was first requested from the peer that sent the block first.
    answered_request_ns: Option<i64>,
    /// New messages that were not used because the block was unknown.
    withheld: u64,
}

impl BlockTimeline {
    fn new(block: Hash, role: Role) -> Self {
        Self {
            block,
            role,
            slot: None,
            block_no: None,
            parent: None,
            size_bytes: None,
            request_length: None,
            adopted_delta: None,
            switched_delta: None,
            loop_ns: [NEVER; LOOP_PHASES],
            stages: [None; STAGES.len()],
            noticed_from: None,
            fetched_from: None,
            fetched_bytes: None,
            requests: Vec::new(),
            answered_request_ns: None,
            withheld: 0,
        }
    }

    /// The first time counts, even if its line follows that of a later one; true if this is it.
    fn reach(&mut self, stage: Stage, at_ns: i64, place: Place) -> bool {
        let reached = &mut self.stages[stage as usize];
        let is_first = reached.is_none_or(|known| at_ns < known.at_ns);
        if is_first {
            *reached = Some(Reached { at_ns, place });
        }
        is_first
    }

    /// The same by the published rules: the first line counts.
    fn reach_once(&mut self, stage: Stage, at_ns: i64, place: Place) -> bool {
        self.stages[stage as usize].is_none() && self.reach(stage, at_ns, place)
    }

    /// Whether all its reported times are later than this one.
    fn is_later_than(&self, at_ns: i64) -> bool {
        self.stages.iter().flatten().all(|reached| reached.at_ns > at_ns)
    }

    /// The use of a message, which depends on whether it contained new information.
    fn reported(&mut self, is_new: bool) -> Use {
        if matches!(self.role, Role::Error(_)) {
            self.withheld += u64::from(is_new);
            return IN_ERROR;
        }
        used_if(is_new)
    }

    fn ask(&mut self, peer: &str, at_ns: i64) {
        let Some(fetched) = self.stages[Stage::Fetched as usize] else {
            if self.requests.iter().all(|(requested, _)| **requested != *peer) {
                self.requests.push((peer.into(), at_ns));
            }
            return;
        };
        let is_of_sender = self.fetched_from.as_deref().unwrap_or_default() == peer;
        if self.answered_request_ns.is_none() && is_of_sender && at_ns <= fetched.at_ns {
            self.answered_request_ns = Some(at_ns);
        }
    }

    fn answer(&mut self, peer: &str) {
        let requests = std::mem::take(&mut self.requests);
        self.answered_request_ns = requests.iter().find(|(requested, _)| **requested == *peer).map(|&(_, at_ns)| at_ns);
    }
}

const REPETITION: Use = Use::Unused(Unused::Repetition);
const IN_ERROR: Use = Use::Unused(Unused::BlockInError);

fn used_if(is_first: bool) -> Use {
    if is_first { Use::Used } else { REPETITION }
}

/// Counts of the timelines of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockCounts {
    pub entries: u64,
    pub forged: u64,
    pub errors: u64,
    /// Blocks that the host adopted by a change of its chain.
    pub switched_adoptions: u64,
    /// Changes of the chain to blocks that the host's earlier messages did not mention.
    pub switched_unknown: u64,
    pub errors_by: BTreeMap<&'static str, u64>,
}

/// The timelines of one host's blocks, from its events in the order of its files.
pub struct BlockTimelines {
    published: bool,
    by_block: FxHashMap<Hash, u32>,
    timelines: Vec<BlockTimeline>,
    /// Slot and time of the last event of each phase of the forge loop, for the last rounds by their slots; the
    /// published analysis has one for all of them.
    loops: Vec<[(u64, i64); LOOP_PHASES]>,
    /// Slots in which blocks were forged, and their timelines.
    forged_in: Vec<(u64, u32)>,
    switched_unknown: u64,
    recovered: u64,
}

impl BlockTimelines {
    pub fn new(published: bool) -> Self {
        Self {
            published,
            by_block: FxHashMap::default(),
            timelines: Vec::new(),
            loops: vec![[(0, NEVER); LOOP_PHASES]; if published { 1 } else { ROUNDS }],
            forged_in: Vec::new(),
            switched_unknown: 0,
            recovered: 0,
        }
    }

    /// Messages that were counted as of a block in error and are used after all.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Process an event; None means that it is not about a block.
    pub fn listen(&mut self, event: &Event<'_>, place: Place) -> Option<Use> {
        let at_ns = event.at_ns;
        let use_ = match &event.fact {
            Fact::Forged { slot, block_no, block, parent } => {
                self.forge(at_ns, place, *block, (*slot, *block_no, *parent))
            }
            Fact::Noticed { slot, block_no, block, peer } => {
                self.notice(at_ns, place, *block, (*slot, *block_no, *peer))
            }
            Fact::Requested { head, length, peer } => self.request(at_ns, place, *head, (*length, *peer)),
            Fact::Fetched { block, size_bytes, peer } => self.fetch(at_ns, place, *block, (*size_bytes, *peer)),
            Fact::Announced { block } => self.reach(*block, Fault::UnknownAnnounced, Stage::Announced, at_ns, place),
            Fact::Sent { block } => self.reach(*block, Fault::UnknownSent, Stage::Sent, at_ns, place),
            Fact::Added { block, delta } => self.adopt(at_ns, place, *block, *delta, None),
            Fact::SelfAdopted { block, size_bytes, .. } => self.adopt(at_ns, place, *block, 1, Some(*size_bytes)),
            Fact::Switched { block, delta } => self.switch(at_ns, place, *block, *delta),
            of_loop => {
                self.follow_loop(at_ns, of_loop);
                return None;
            }
        };
        Some(use_)
    }

    /// Remember the forge loop's stages: a forged block gets them.
    fn follow_loop(&mut self, at_ns: i64, fact: &Fact<'_>) {
        let (phase, slot) = match fact {
            Fact::LoopStart { slot, .. } => (Phase::Started, slot),
            Fact::BlockContext { slot, .. } => (Phase::BlockContext, slot),
            Fact::LedgerState { slot } => (Phase::LedgerState, slot),
            Fact::LedgerView { slot } => (Phase::LedgerView, slot),
            Fact::Leadership { slot, leads: true } => (Phase::Leadership, slot),
            Fact::Ticked { slot, .. } => (Phase::Ticked, slot),
            Fact::MempoolSnapshot { slot } => (Phase::Snapshot, slot),
            _ => return,
        };
        let round = self.round(*slot);
        self.loops[round][phase as usize] = (*slot, at_ns);
        if !self.published && self.forged_in.last().is_some_and(|(last, _)| slot <= last) {
            self.complete_forge(*slot, phase, at_ns);
        }
    }

    fn round(&self, slot: u64) -> usize {
        (slot % self.loops.len() as u64) as usize
    }

    /// A phase reported after the forging of its round.
    fn complete_forge(&mut self, slot: u64, phase: Phase, at_ns: i64) {
        let Some(&(_, timeline)) = self.forged_in.iter().rev().find(|(of, _)| *of == slot) else { return };
        let recorded_ns = &mut self.timelines[timeline as usize].loop_ns[phase as usize];
        if *recorded_ns == NEVER {
            *recorded_ns = at_ns;
        }
    }

    fn insert(&mut self, timeline: BlockTimeline) {
        self.by_block.insert(timeline.block, self.timelines.len() as u32);
        self.timelines.push(timeline);
    }

    /// The timeline of a block that must have begun: otherwise one with an error begins. One with an error accepts no
    /// further events, unless the missing line may still follow.
    fn known(&mut self, block: Hash, fault: Fault) -> Option<&mut BlockTimeline> {
        if !self.by_block.contains_key(&block) {
            self.insert(BlockTimeline::new(block, Role::Error(fault)));
        }
        let timeline = &mut self.timelines[self.by_block[&block] as usize];
        let takes = match timeline.role {
            Role::Forger | Role::Observer => true,
            Role::Error(fault) => !self.published && fault.may_pass(),
        };
        takes.then_some(timeline)
    }

    fn reach(&mut self, block: Hash, fault: Fault, stage: Stage, at_ns: i64, place: Place) -> Use {
        let by_time = !self.published;
        let Some(timeline) = self.known(block, fault) else { return IN_ERROR };
        let is_first = reach(timeline, by_time, stage, at_ns, place);
        timeline.reported(is_first)
    }

    fn forge(
        &mut self,
        at_ns: i64,
        place: Place,
        block: Hash,
        (slot, block_no, parent): (u64, u64, Option<Hash>),
    ) -> Use {
        let by_time = !self.published;
        let number = match self.by_block.get(&block) {
            Some(&known) => {
                let timeline = &mut self.timelines[known as usize];
                let same =
                    (timeline.slot, timeline.block_no, timeline.parent) == (Some(slot), Some(block_no), Some(parent));
                let was_first = by_time && timeline.is_later_than(at_ns);
                let was_requested =
                    timeline.stages[Stage::Requested as usize].or(timeline.stages[Stage::Fetched as usize]);
                timeline.role = match timeline.role {
                    Role::Forger if same => return REPETITION,
                    Role::Forger => Role::Error(Fault::ForgedTwice),
                    Role::Observer if was_first && was_requested.is_none() => Role::Forger,
                    Role::Observer => Role::Error(Fault::ForgedAfterNotice),
                    Role::Error(fault) if was_first && was_requested.is_none() && fault.may_pass() => Role::Forger,
                    error @ Role::Error(_) => error,
                };
                if timeline.role != Role::Forger {
                    return IN_ERROR;
                }
                self.recovered += std::mem::take(&mut timeline.withheld);
                timeline.stages[Stage::Noticed as usize] = None;
                timeline.noticed_from = None;
                known
            }
            None => {
                self.insert(BlockTimeline::new(block, Role::Forger));
                self.timelines.len() as u32 - 1
            }
        };
        let round = self.loops[self.round(slot)];
        let timeline = &mut self.timelines[number as usize];
        (timeline.slot, timeline.block_no, timeline.parent) = (Some(slot), Some(block_no), Some(parent));
        // The published analysis uses the last value that it saw, even from an earlier round.
        timeline.loop_ns =
            round.map(|(reported, recorded_ns)| if reported == slot || !by_time { recorded_ns } else { NEVER });
        timeline.reach(Stage::Forged, at_ns, place);
        self.forged_in.push((slot, number));
        Use::Used
    }

    fn notice(&mut self, at_ns: i64, place: Place, block: Hash, (slot, block_no, peer): (u64, u64, Peer<'_>)) -> Use {
        let number = match self.by_block.get(&block) {
            Some(&known) => {
                let timeline = &mut self.timelines[known as usize];
                let was_first = !self.published && timeline.is_later_than(at_ns);
                match timeline.role {
                    Role::Forger => return Use::Unused(Unused::OwnBlock),
                    Role::Observer if !was_first => return REPETITION,
                    Role::Error(fault) if !(was_first && fault.may_pass()) => return IN_ERROR,
                    Role::Observer | Role::Error(_) => {}
                }
                self.recovered += std::mem::take(&mut timeline.withheld);
                timeline.role = Role::Observer;
                known
            }
            None => {
                self.insert(BlockTimeline::new(block, Role::Observer));
                self.timelines.len() as u32 - 1
            }
        };
        let timeline = &mut self.timelines[number as usize];
        (timeline.slot, timeline.block_no) = (timeline.slot.or(Some(slot)), timeline.block_no.or(Some(block_no)));
        let is_first = timeline.reach(Stage::Noticed, at_ns, place);
        if is_first {
            timeline.noticed_from = peer.remote.map(Box::from);
        }
        used_if(is_first)
    }

    fn request(&mut self, at_ns: i64, place: Place, head: Hash, (length, peer): (u64, Peer<'_>)) -> Use {
        let by_time = !self.published;
        let Some(timeline) = self.known(head, Fault::UnknownRequested) else { return IN_ERROR };
        if timeline.role == Role::Forger {
            timeline.role = Role::Error(Fault::RequestedByForger);
            return IN_ERROR;
        }
        timeline.ask(peer.remote.unwrap_or_default(), at_ns);
        let is_first = reach(timeline, by_time, Stage::Requested, at_ns, place);
        if is_first {
            timeline.request_length = Some(length);
        }
        timeline.reported(is_first)
    }

    fn fetch(&mut self, at_ns: i64, place: Place, block: Hash, (size_bytes, peer): (Option<u64>, Peer<'_>)) -> Use {
        let by_time = !self.published;
        let Some(timeline) = self.known(block, Fault::UnknownFetched) else { return IN_ERROR };
        if timeline.role == Role::Forger {
            return Use::Unused(Unused::OwnBlock);
        }
        let was_reported = timeline.stages[Stage::Fetched as usize].is_some();
        let is_first = reach(timeline, by_time, Stage::Fetched, at_ns, place);
        if is_first {
            timeline.fetched_from = peer.remote.map(Box::from);
            timeline.fetched_bytes = size_bytes;
        }
        if is_first && !was_reported {
            timeline.answer(peer.remote.unwrap_or_default());
        }
        timeline.reported(is_first)
    }

    fn adopt(&mut self, at_ns: i64, place: Place, block: Hash, delta: u64, size_bytes: Option<u64>) -> Use {
        let by_time = !self.published;
        let Some(timeline) = self.known(block, Fault::UnknownAdopted) else { return IN_ERROR };
        let is_first = reach(timeline, by_time, Stage::Adopted, at_ns, place);
        if is_first {
            timeline.adopted_delta = Some(delta);
        }
        let reports_size = timeline.role != Role::Observer && timeline.size_bytes.is_none() && size_bytes.is_some();
        if reports_size {
            timeline.size_bytes = size_bytes;
        }
        timeline.reported(is_first || reports_size)
    }

    fn switch(&mut self, at_ns: i64, place: Place, block: Hash, delta: u64) -> Use {
        let Some(&known) = self.by_block.get(&block) else {
            self.switched_unknown += 1;
            return Use::Unused(Unused::UnknownSwitch);
        };
        let by_time = !self.published;
        let timeline = &mut self.timelines[known as usize];
        if matches!(timeline.role, Role::Error(fault) if !(by_time && fault.may_pass())) {
            return IN_ERROR;
        }
        let is_first = reach(timeline, by_time, Stage::Switched, at_ns, place);
        if is_first {
            timeline.switched_delta = Some(delta);
        }
        if self.published { Use::Unused(Unused::NotPublished) } else { timeline.reported(is_first) }
    }

    pub fn summary(&self) -> BlockCounts {
        let mut summary = BlockCounts {
            entries: self.timelines.len() as u64,
            switched_unknown: self.switched_unknown,
            ..BlockCounts::default()
        };
        for timeline in &self.timelines {
            match timeline.role {
                Role::Forger => summary.forged += 1,
                Role::Observer => {}
                Role::Error(fault) => {
                    summary.errors += 1;
                    *summary.errors_by.entry(fault.words()).or_default() += 1;
                    continue;
                }
            }
            summary.switched_adoptions += u64::from(timeline.stages[Stage::Switched as usize].is_some());
        }
        summary
    }

    /// Write one row per block, by number, then hash; blocks without a number in any line come last.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut order: Vec<&BlockTimeline> = self.timelines.iter().collect();
        order.sort_unstable_by_key(|timeline| (timeline.block_no.is_none(), timeline.block_no, timeline.block));
        let mut table = Table::create(path, &fields(), GROUP_ROWS)?;
        for timeline in order {
            write_row(&mut table, timeline)?;
        }
        table.finish()
    }
}

/// By the published rules the first line of a stage counts, otherwise the first time.
fn reach(timeline: &mut BlockTimeline, by_time: bool, stage: Stage, at_ns: i64, place: Place) -> bool {
    if by_time { timeline.reach(stage, at_ns, place) } else { timeline.reach_once(stage, at_ns, place) }
}

fn write_row(table: &mut Table, timeline: &BlockTimeline) -> Result<()> {
    table.text(BLOCK, hex(&timeline.block));
    table.text(ROLE, Text::from(timeline.role.name()));
    if let Role::Error(fault) = timeline.role {
        table.text(ROLE + 1, Text::from(fault.words()));
        if fault.may_pass() {
            // The missing line did not follow: the reported values do not count.
            return table.end_row();
        }
    }
    if let Some(parent) = timeline.parent {
        table.text(PARENT, parent.map_or_else(|| Text::from(NO_PARENT), |parent| hex(&parent)));
    }
    let numbers = [
        (BLOCK + 1, timeline.block_no),
        (BLOCK + 2, timeline.slot),
        (PARENT + 1, timeline.size_bytes),
        (PARENT + 2, timeline.request_length),
        (PARENT + 3, timeline.adopted_delta),
        (PARENT + 4, timeline.switched_delta),
    ];
    for (column, number) in numbers {
        if let Some(number) = number {
            table.integer(column, i64::try_from(number).unwrap_or(i64::MAX));
        }
    }
    for (column, &at_ns) in timeline.loop_ns.iter().enumerate().filter(|&(_, &at_ns)| at_ns != NEVER) {
        table.integer(FIRST_TIME + column, at_ns);
    }
    for (stage, reached) in timeline.stages.iter().enumerate() {
        let Some(Reached { at_ns, place }) = *reached else { continue };
        table.integer(FIRST_STAGE + stage, at_ns);
        table.small(FIRST_PLACE + 2 * stage, place.file as i32);
        table.integer(FIRST_PLACE + 2 * stage + 1, place.line as i64);
    }
    for (column, number) in
        [timeline.fetched_bytes.and_then(|bytes| i64::try_from(bytes).ok()), timeline.answered_request_ns]
            .into_iter()
            .enumerate()
    {
        if let Some(number) = number {
            table.integer(FIRST_FETCH + column, number);
        }
    }
    for (column, peer) in [&timeline.fetched_from, &timeline.noticed_from].into_iter().enumerate() {
        if let Some(peer) = peer {
            table.text(FIRST_PEER + column, Text::from(&**peer));
        }
    }
    table.end_row()
}

fn hex(hash: &Hash) -> Text {
    Text::from(hash.to_string().into_bytes())
}

const BLOCK: usize = 0;
const ROLE: usize = 3;
const PARENT: usize = 5;
const FIRST_TIME: usize = PARENT + 5;
const FIRST_STAGE: usize = FIRST_TIME + LOOP_PHASES;
const FIRST_FETCH: usize = FIRST_STAGE + STAGES.len();
const FIRST_PEER: usize = FIRST_FETCH + 2;
const FIRST_PLACE: usize = FIRST_PEER + 2;

fn fields() -> Vec<Field> {
    let integer = |name: &str| Field::optional(name, Kind::Integer);
    let text = |name: &str| Field::optional(name, Kind::Text);
    let mut fields = vec![
        Field::required("block", Kind::Text),
        integer("block_no"),
        integer("slot"),
        Field::required("role", Kind::Text),
        text("error"),
        text("parent"),
    ];
    fields.extend(["size_bytes", "request_length", "adopted_delta", "switched_delta"].map(integer));
    fields.extend(PHASES[..LOOP_PHASES].iter().chain(&STAGES).map(|stage| integer(&format!("{stage}_ns"))));
    fields.extend(["fetched_bytes", "answered_request_ns"].map(integer));
    fields.extend(["fetched_from", "noticed_from"].map(text));
    for stage in STAGES {
        fields.push(Field::optional(format!("{stage}_file"), Kind::Small));
        fields.push(integer(&format!("{stage}_line")));
    }
    fields
}
