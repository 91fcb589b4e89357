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

/// The first time of a stage, and where it stands.
#[derive(Debug, Clone, Copy)]
struct Reached {
    at_ns: i64,
    place: Place,
}

#[derive(Debug)]
struct Life {
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
    /// As the line of the fetch tells it.
    fetched_bytes: Option<u64>,
    /// When each peer was first asked for the block, until one of them sent it.
    asked: Vec<(Box<str>, i64)>,
    /// When the peer that sent the block first was asked for it first.
    answered_request_ns: Option<i64>,
}

impl Life {
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
            asked: Vec::new(),
            answered_request_ns: None,
        }
    }

    /// The first time counts; true if this is it.
    fn reach(&mut self, stage: Stage, at_ns: i64, place: Place) -> bool {
        let reached = &mut self.stages[stage as usize];
        let is_first = reached.is_none();
        reached.get_or_insert(Reached { at_ns, place });
        is_first
    }

    fn ask(&mut self, peer: &str, at_ns: i64) {
        if self.stages[Stage::Fetched as usize].is_none() && self.asked.iter().all(|(asked, _)| **asked != *peer) {
            self.asked.push((peer.into(), at_ns));
        }
    }

    fn answer(&mut self, peer: &str) {
        let asked = std::mem::take(&mut self.asked);
        self.answered_request_ns = asked.iter().find(|(asked, _)| **asked == *peer).map(|&(_, at_ns)| at_ns);
    }
}

const REPETITION: Use = Use::Unused(Unused::Repetition);
const IN_ERROR: Use = Use::Unused(Unused::BlockInError);

fn used_if(is_first: bool) -> Use {
    if is_first { Use::Used } else { REPETITION }
}

/// Counts of the lives of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LivesSummary {
    pub entries: u64,
    pub forged: u64,
    pub errors: u64,
    /// Blocks that the host adopted by a change of its chain.
    pub switched_adoptions: u64,
    /// Changes of the chain to blocks that the host's messages had not told of.
    pub switched_unknown: u64,
    pub errors_by: BTreeMap<&'static str, u64>,
}

/// The lives of one host's blocks, made from its events in the order of its files.
pub struct Lives {
    published: bool,
    by_block: FxHashMap<Hash, u32>,
    lives: Vec<Life>,
    /// Slot and time of the last event of each phase of the forge loop.
    last_loop: [(u64, i64); LOOP_PHASES],
    switched_unknown: u64,
}

impl Lives {
    pub fn new(published: bool) -> Self {
        Self {
            published,
            by_block: FxHashMap::default(),
            lives: Vec::new(),
            last_loop: [(0, NEVER); LOOP_PHASES],
            switched_unknown: 0,
        }
    }

    /// Take an event in; none says that it is about no block.
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

    /// Remember the forge loop's stages: a forged block takes them along.
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
        self.last_loop[phase as usize] = (*slot, at_ns);
    }

    fn insert(&mut self, life: Life) {
        self.by_block.insert(life.block, self.lives.len() as u32);
        self.lives.push(life);
    }

    /// The life of a block that must have begun: otherwise one in error begins. One in error takes no more events.
    fn known(&mut self, block: Hash, fault: Fault) -> Option<&mut Life> {
        let Some(&place) = self.by_block.get(&block) else {
            self.insert(Life::new(block, Role::Error(fault)));
            return None;
        };
        Some(&mut self.lives[place as usize]).filter(|life| !matches!(life.role, Role::Error(_)))
    }

    fn reach(&mut self, block: Hash, fault: Fault, stage: Stage, at_ns: i64, place: Place) -> Use {
        let Some(life) = self.known(block, fault) else { return IN_ERROR };
        used_if(life.reach(stage, at_ns, place))
    }

    fn forge(
        &mut self,
        at_ns: i64,
        place: Place,
        block: Hash,
        (slot, block_no, parent): (u64, u64, Option<Hash>),
    ) -> Use {
        if let Some(&known) = self.by_block.get(&block) {
            let life = &mut self.lives[known as usize];
            let same = (life.slot, life.block_no, life.parent) == (Some(slot), Some(block_no), Some(parent));
            life.role = match life.role {
                Role::Forger if same => return REPETITION,
                Role::Forger => Role::Error(Fault::ForgedTwice),
                Role::Observer => Role::Error(Fault::ForgedAfterNotice),
                error @ Role::Error(_) => error,
            };
            return IN_ERROR;
        }
        let mut life = Life::new(block, Role::Forger);
        (life.slot, life.block_no, life.parent) = (Some(slot), Some(block_no), Some(parent));
        let of_round = |(told_slot, told_ns): (u64, i64)| {
            // The published analysis takes whatever it saw last, also from a round before.
            if self.published || told_slot == slot { told_ns } else { NEVER }
        };
        life.loop_ns = self.last_loop.map(of_round);
        life.reach(Stage::Forged, at_ns, place);
        self.insert(life);
        Use::Used
    }

    fn notice(&mut self, at_ns: i64, place: Place, block: Hash, (slot, block_no, peer): (u64, u64, Peer<'_>)) -> Use {
        if let Some(&known) = self.by_block.get(&block) {
            return match self.lives[known as usize].role {
                Role::Forger => Use::Unused(Unused::OwnBlock),
                Role::Observer => REPETITION,
                Role::Error(_) => IN_ERROR,
            };
        }
        let mut life = Life::new(block, Role::Observer);
        (life.slot, life.block_no) = (Some(slot), Some(block_no));
        life.noticed_from = peer.remote.map(Box::from);
        life.reach(Stage::Noticed, at_ns, place);
        self.insert(life);
        Use::Used
    }

    fn request(&mut self, at_ns: i64, place: Place, head: Hash, (length, peer): (u64, Peer<'_>)) -> Use {
        let Some(life) = self.known(head, Fault::UnknownRequested) else { return IN_ERROR };
        if life.role == Role::Forger {
            life.role = Role::Error(Fault::RequestedByForger);
            return IN_ERROR;
        }
        life.ask(peer.remote.unwrap_or_default(), at_ns);
        let is_first = life.reach(Stage::Requested, at_ns, place);
        if is_first {
            life.request_length = Some(length);
        }
        used_if(is_first)
    }

    fn fetch(&mut self, at_ns: i64, place: Place, block: Hash, (size_bytes, peer): (Option<u64>, Peer<'_>)) -> Use {
        let Some(life) = self.known(block, Fault::UnknownFetched) else { return IN_ERROR };
        if life.role == Role::Forger {
            return Use::Unused(Unused::OwnBlock);
        }
        let is_first = life.reach(Stage::Fetched, at_ns, place);
        if is_first {
            life.fetched_from = peer.remote.map(Box::from);
            life.fetched_bytes = size_bytes;
            life.answer(peer.remote.unwrap_or_default());
        }
        used_if(is_first)
    }

    fn adopt(&mut self, at_ns: i64, place: Place, block: Hash, delta: u64, size_bytes: Option<u64>) -> Use {
        let Some(life) = self.known(block, Fault::UnknownAdopted) else { return IN_ERROR };
        let is_first = life.reach(Stage::Adopted, at_ns, place);
        if is_first {
            life.adopted_delta = Some(delta);
        }
        let tells_size = life.role == Role::Forger && life.size_bytes.is_none() && size_bytes.is_some();
        if tells_size {
            life.size_bytes = size_bytes;
        }
        used_if(is_first || tells_size)
    }

    fn switch(&mut self, at_ns: i64, place: Place, block: Hash, delta: u64) -> Use {
        let Some(&known) = self.by_block.get(&block) else {
            self.switched_unknown += 1;
            return Use::Unused(Unused::UnknownSwitch);
        };
        let life = &mut self.lives[known as usize];
        if matches!(life.role, Role::Error(_)) {
            return IN_ERROR;
        }
        let is_first = life.reach(Stage::Switched, at_ns, place);
        if is_first {
            life.switched_delta = Some(delta);
        }
        if self.published { Use::Unused(Unused::NotPublished) } else { used_if(is_first) }
    }

    pub fn summary(&self) -> LivesSummary {
        let mut summary = LivesSummary {
            entries: self.lives.len() as u64,
            switched_unknown: self.switched_unknown,
            ..LivesSummary::default()
        };
        for life in &self.lives {
            match life.role {
                Role::Forger => summary.forged += 1,
                Role::Observer => {}
                Role::Error(fault) => {
                    summary.errors += 1;
                    *summary.errors_by.entry(fault.words()).or_default() += 1;
                    continue;
                }
            }
            summary.switched_adoptions += u64::from(life.stages[Stage::Switched as usize].is_some());
        }
        summary
    }

    /// Write one row per block, by number, then hash; blocks whose number no line told come last.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut order: Vec<&Life> = self.lives.iter().collect();
        order.sort_unstable_by_key(|life| (life.block_no.is_none(), life.block_no, life.block));
        let mut table = Table::create(path, &fields(), GROUP_ROWS)?;
        for life in order {
            write_row(&mut table, life)?;
        }
        table.finish()
    }
}

fn write_row(table: &mut Table, life: &Life) -> Result<()> {
    table.text(BLOCK, hex(&life.block));
    table.text(ROLE, Text::from(life.role.name()));
    if let Role::Error(fault) = life.role {
        table.text(ROLE + 1, Text::from(fault.words()));
    }
    if let Some(parent) = life.parent {
        table.text(PARENT, parent.map_or_else(|| Text::from(NO_PARENT), |parent| hex(&parent)));
    }
    let numbers = [
        (BLOCK + 1, life.block_no),
        (BLOCK + 2, life.slot),
        (PARENT + 1, life.size_bytes),
        (PARENT + 2, life.request_length),
        (PARENT + 3, life.adopted_delta),
        (PARENT + 4, life.switched_delta),
    ];
    for (column, number) in numbers {
        if let Some(number) = number {
            table.integer(column, i64::try_from(number).unwrap_or(i64::MAX));
        }
    }
    for (column, &at_ns) in life.loop_ns.iter().enumerate().filter(|&(_, &at_ns)| at_ns != NEVER) {
        table.integer(FIRST_TIME + column, at_ns);
    }
    for (stage, reached) in life.stages.iter().enumerate() {
        let Some(Reached { at_ns, place }) = *reached else { continue };
        table.integer(FIRST_STAGE + stage, at_ns);
        table.small(FIRST_PLACE + 2 * stage, place.file as i32);
        table.integer(FIRST_PLACE + 2 * stage + 1, place.line as i64);
    }
    for (column, number) in [life.fetched_bytes.and_then(|bytes| i64::try_from(bytes).ok()), life.answered_request_ns]
        .into_iter()
        .enumerate()
    {
        if let Some(number) = number {
            table.integer(FIRST_FETCH + column, number);
        }
    }
    for (column, peer) in [&life.fetched_from, &life.noticed_from].into_iter().enumerate() {
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
