//! One host's logs, read once: its slot records, the timelines of its blocks, its record of the chain and, on request,
//! every event, as Parquet.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::accounting::HostCounts;
use crate::block_timelines::{BlockCounts, BlockTimelines};
use crate::control::Control;
use crate::error::{ReadError, Result};
use crate::event::{Event, Fact, Place};
use crate::events_out::EventTable;
use crate::links::{Links, LinksSummary};
use crate::reader::{Division, read_ranges};
use crate::rounds::Rounds;
use crate::time_filter::TimeFilter;
use crate::timeline::{Clock, GROUP_ROWS, Timeline, TimelineSummary};
use crate::usage::{Unused, Usage, Use};

/// After a silence of this many slots, and at least this many seconds, other lines must confirm a line's time.
const QUIET_SLOTS: i64 = 10;
const QUIET_NS: i64 = 10_000_000_000;
/// No clock is so wrong, nor any host so late, that a slot's round begins this long before the slot.
const EARLIEST_ROUND_NS: i64 = 3_600_000_000_000;

/// The input, the clock and rules, and the output.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRequest {
    pub host: String,
    pub files: Vec<PathBuf>,
    /// What other machines found in the ranges of a file, in order; other files are read here.
    #[serde(default)]
    pub findings: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// How many threads its files are divided among.
    #[serde(default = "one_thread")]
    pub threads: usize,
    /// Whether to follow the published analysis including its errors.
    pub published_rules: bool,
    pub system_start_ns: i64,
    pub slot_length_s: f64,
    pub epoch_slots: i64,
    pub security_parameter: i64,
    pub active_slots_coefficient: f64,
    pub slots_out: Option<PathBuf>,
    /// Rows of a group of the table of slots: fewer where many hosts are put together at a time.
    #[serde(default = "default_group_rows")]
    pub slots_group_rows: NonZeroUsize,
    pub block_timelines_out: Option<PathBuf>,
    pub links_out: Option<PathBuf>,
    /// The tables of slots and of block timelines by the published analysis's rules as well, if the first ones are not.
    pub published_slots_out: Option<PathBuf>,
    pub published_block_timelines_out: Option<PathBuf>,
    pub events_out: Option<PathBuf>,
}

fn one_thread() -> usize {
    1
}

fn default_group_rows() -> NonZeroUsize {
    NonZeroUsize::new(GROUP_ROWS).unwrap_or(NonZeroUsize::MIN)
}

/// An order that cannot be followed.
#[derive(Debug, Error)]
#[error("the order for the host {host} is impossible: {name} is {value}, and must be {condition}")]
pub struct RequestError {
    host: String,
    name: &'static str,
    value: String,
    condition: &'static str,
}

impl RequestError {
    pub fn hint(&self) -> &'static str {
        "these figures come from the genesis file; check that it is the one the cluster ran with"
    }
}

impl HostRequest {
    /// # Errors
    /// A figure of the chain is one that no chain has.
    pub fn clock(&self) -> std::result::Result<Clock, RequestError> {
        let refuse = |name, value: String, condition| RequestError { host: self.host.clone(), name, value, condition };
        let slot_length_ns = (self.slot_length_s * 1e9).round();
        if !(1.0..=1e18).contains(&slot_length_ns) {
            return Err(refuse("slot_length_s", self.slot_length_s.to_string(), "a positive number of seconds"));
        }
        for (name, value) in [("epoch_slots", self.epoch_slots), ("security_parameter", self.security_parameter)] {
            if value < 1 {
                return Err(refuse(name, value.to_string(), "positive"));
            }
        }
        if !self.active_slots_coefficient.is_finite() {
            let value = self.active_slots_coefficient.to_string();
            return Err(refuse("active_slots_coefficient", value, "a number"));
        }
        Ok(Clock {
            system_start_ns: self.system_start_ns,
            slot_length_ns: slot_length_ns as i64,
            epoch_slots: self.epoch_slots,
            security_parameter: self.security_parameter,
            active_slots_coefficient: self.active_slots_coefficient,
        })
    }
}

/// Steps in time up to this need no confirmation.
fn quiet_ns(clock: Clock) -> i64 {
    QUIET_NS.max(clock.slot_length_ns.saturating_mul(QUIET_SLOTS))
}

/// Facts about a host that its tables do not contain.
#[derive(Debug, Serialize)]
pub struct HostSummary {
    pub host: String,
    pub line_counts: HostCounts,
    /// What became of the decoded messages.
    pub usage: Usage,
    pub timeline: TimelineSummary,
    pub block_counts: BlockCounts,
    pub links: LinksSummary,
    /// Least, median and greatest time from a slot's start to its loop start, over the loop starts that are used; where
    /// none is, over all.
    pub loop_offsets_s: Option<[f64; 3]>,
    /// Stored bytes of all files.
    pub bytes: u64,
}

/// Read one host's logs and write its tables. Those of an earlier reading are replaced only by whole ones.
///
/// # Errors
/// A file cannot be read or written, or the reading was cancelled.
pub fn decode_host(order: &HostRequest, clock: Clock, control: &Control) -> Result<HostSummary> {
    let mut folds = Folds::new(order, clock)?;
    let division = Division::new(order.threads);
    let listen = &mut |event: &Event<'_>, place| folds.listen(event, place, control);
    let counts = read_ranges(&order.files, &order.findings, division, control, listen);
    if let Some(failure) = folds.failure {
        return Err(failure);
    }
    let mut counts = counts?;
    folds.end();
    counts.correct_ends(quiet_ns(clock));
    folds.analysis.range.correct(&mut counts);
    folds.analysis.usage.check(counts.decoded)?;
    if let Some(events) = folds.events {
        events.finish()?;
    }
    let analysis = folds.analysis;
    let group_rows = order.slots_group_rows.get();
    analysis.tables.write(order.block_timelines_out.as_deref(), order.slots_out.as_deref(), group_rows, control)?;
    if let Some(tables) = &analysis.published {
        let (block_timelines, slots) =
            (order.published_block_timelines_out.as_deref(), order.published_slots_out.as_deref());
        tables.write(block_timelines, slots, group_rows, control)?;
    }
    write_unless_cancelled(order.links_out.as_deref(), control, |path| analysis.links.write(path))?;
    let bytes = counts.files.iter().map(|file| file.stored_bytes).sum();
    Ok(HostSummary {
        host: order.host.clone(),
        line_counts: counts,
        usage: analysis.usage,
        timeline: analysis.tables.timeline.summary(),
        block_counts: analysis.tables.block_timelines.summary(),
        links: analysis.links.summary(),
        loop_offsets_s: least_median_greatest(analysis.used_offsets_ns)
            .or_else(|| least_median_greatest(analysis.unused_offsets_ns)),
        bytes,
    })
}

fn write_unless_cancelled(
    path: Option<&Path>,
    control: &Control,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    if control.is_cancelled() {
        return Err(ReadError::Cancelled);
    }
    path.map_or(Ok(()), write)
}

struct Folds {
    filter: TimeFilter,
    analysis: Analysis,
    events: Option<EventTable>,
    failure: Option<ReadError>,
}

/// The result of one set of rules for a host's events.
struct Tables {
    timeline: Timeline,
    block_timelines: BlockTimelines,
}

impl Tables {
    fn new(clock: Clock, published: bool) -> Self {
        Self { timeline: Timeline::new(clock, published), block_timelines: BlockTimelines::new(published) }
    }

    fn listen(&mut self, event: &Event<'_>, place: Place) -> Use {
        let of_slot = self.timeline.listen(event);
        // What a line is about decides: a repeated forge is no second one.
        self.block_timelines.listen(event, place).or(of_slot).unwrap_or(Use::Unused(Unused::NoMetric))
    }

    fn write(
        &self,
        block_timelines: Option<&Path>,
        slots: Option<&Path>,
        group_rows: usize,
        control: &Control,
    ) -> Result<()> {
        write_unless_cancelled(block_timelines, control, |path| self.block_timelines.write(path))?;
        write_unless_cancelled(slots, control, |path| self.timeline.write(path, group_rows))
    }
}

/// The results from the events. Only the tables depend on the rules.
struct Analysis {
    clock: Clock,
    tables: Tables,
    published: Option<Tables>,
    links: Links,
    usage: Usage,
    range: Range,
    rounds: Rounds,
    used_offsets_ns: Vec<i64>,
    unused_offsets_ns: Vec<i64>,
}

/// The bounds of the accepted times, and those of the rejected ones.
#[derive(Default)]
struct Range {
    believed_ns: Option<(i64, i64)>,
    disbelieved_ns: Option<(i64, i64)>,
}

impl Range {
    fn count(&mut self, at_ns: i64, is_believed: bool) {
        let range = if is_believed { &mut self.believed_ns } else { &mut self.disbelieved_ns };
        range.get_or_insert((at_ns, at_ns)).1 = at_ns;
    }

    /// A log neither begins nor ends with a line whose time is rejected.
    fn correct(&self, counts: &mut HostCounts) {
        let (Some(believed), Some(disbelieved)) = (self.believed_ns, self.disbelieved_ns) else { return };
        if counts.first_ns == Some(disbelieved.0) {
            counts.first_ns = Some(believed.0);
        }
        if counts.last_ns == Some(disbelieved.1) {
            counts.last_ns = Some(believed.1);
        }
    }
}

impl Folds {
    fn new(order: &HostRequest, clock: Clock) -> Result<Self> {
        let twice = order.published_slots_out.is_some() || order.published_block_timelines_out.is_some();
        Ok(Self {
            filter: TimeFilter::new(quiet_ns(clock)),
            analysis: Analysis {
                clock,
                tables: Tables::new(clock, order.published_rules),
                published: twice.then(|| Tables::new(clock, true)),
                links: Links::default(),
                usage: Usage::default(),
                range: Range::default(),
                rounds: Rounds::new(quiet_ns(clock)),
                used_offsets_ns: Vec::new(),
                unused_offsets_ns: Vec::new(),
            },
            events: order.events_out.as_deref().map(EventTable::create).transpose()?,
            failure: None,
        })
    }

    fn listen(&mut self, event: &Event<'_>, place: Place, control: &Control) {
        let analysis = &mut self.analysis;
        self.filter.take(event, place, &mut |event, place, is_believed| analysis.listen(event, place, is_believed));
        let Some(events) = self.events.as_mut().filter(|_| self.failure.is_none()) else { return };
        if let Err(failure) = events.listen(event, place) {
            // What was read cannot be kept; nothing more needs to be.
            self.failure = Some(failure);
            control.cancel();
        }
    }

    fn end(&mut self) {
        let analysis = &mut self.analysis;
        self.filter.end(&mut |event, place, is_believed| analysis.listen(event, place, is_believed));
        analysis.usage.recover(Unused::BlockInError, analysis.tables.block_timelines.recovered());
        analysis.usage.recover(Unused::SlotNotBegun, analysis.tables.timeline.recovered());
    }
}

impl Analysis {
    fn listen(&mut self, event: &Event<'_>, place: Place, is_believed: bool) {
        self.range.count(event.at_ns, is_believed);
        // Parent links do not depend on the time.
        self.links.listen(&event.fact);
        let use_ = if is_believed { self.fold(event, place) } else { Use::Unused(Unused::ImplausibleTime) };
        self.usage.count(use_);
    }

    fn fold(&mut self, event: &Event<'_>, place: Place) -> Use {
        if let Fact::LoopStart { slot, .. } = event.fact {
            let slot = i64::try_from(slot).unwrap_or(i64::MAX);
            let offset_ns = event.at_ns.saturating_sub(self.clock.slot_start_ns(slot));
            if offset_ns < -EARLIEST_ROUND_NS || !self.rounds.believe(offset_ns) {
                self.unused_offsets_ns.push(offset_ns);
                return Use::Unused(Unused::SlotAheadOfTime);
            }
            self.used_offsets_ns.push(offset_ns);
        }
        if let Some(tables) = &mut self.published {
            tables.listen(event, place);
        }
        self.tables.listen(event, place)
    }
}

fn least_median_greatest(mut times_ns: Vec<i64>) -> Option<[f64; 3]> {
    times_ns.sort_unstable();
    let seconds = |ns: i64| ns as f64 / 1e9;
    let (least, greatest) = (seconds(*times_ns.first()?), seconds(*times_ns.last()?));
    let middle = times_ns.len() / 2;
    let median = match times_ns.len() % 2 {
        0 => (seconds(times_ns[middle - 1]) + seconds(times_ns[middle])) / 2.0,
        _ => seconds(times_ns[middle]),
    };
    Some([least, median, greatest])
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut HostRequest);

    fn order(change: impl FnOnce(&mut HostRequest)) -> HostRequest {
        let mut order = HostRequest {
            host: "node-7".to_owned(),
            files: Vec::new(),
            findings: BTreeMap::new(),
            threads: 1,
            published_rules: false,
            system_start_ns: 0,
            slot_length_s: 1.0,
            epoch_slots: 100,
            security_parameter: 3,
            active_slots_coefficient: 0.05,
            slots_out: None,
            slots_group_rows: default_group_rows(),
            block_timelines_out: None,
            links_out: None,
            published_slots_out: None,
            published_block_timelines_out: None,
            events_out: None,
        };
        change(&mut order);
        order
    }

    #[test]
    fn an_impossible_request_is_refused_with_the_field() {
        let refused: [(&str, Change); 6] = [
            ("slot_length_s is 0,", |order| order.slot_length_s = 0.0),
            ("slot_length_s is -1,", |order| order.slot_length_s = -1.0),
            ("slot_length_s is NaN,", |order| order.slot_length_s = f64::NAN),
            ("epoch_slots is 0,", |order| order.epoch_slots = 0),
            ("security_parameter is -2,", |order| order.security_parameter = -2),
            ("active_slots_coefficient is inf,", |order| order.active_slots_coefficient = f64::INFINITY),
        ];
        for (expected, change) in refused {
            let error = order(change).clock().unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("node-7"), "{error}");
        }
        assert_eq!(order(|order| order.slot_length_s = 0.2).clock().unwrap().slot_length_ns, 200_000_000);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(least_median_greatest(vec![]), None);
        assert_eq!(least_median_greatest(vec![3_000_000_000]), Some([3.0, 3.0, 3.0]));
        let times = vec![4_000_000_000, -1_000_000_000, 2_000_000_000, 1_000_000_000];
        assert_eq!(least_median_greatest(times), Some([-1.0, 1.5, 4.0]));
    }
}
