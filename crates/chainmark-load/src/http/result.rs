//! What a load has measured.

use super::classes::{ClassTold, KINDS};
use super::error::HttpError;
use super::histogram::Times;
use super::plan::Plan;
use super::series::Columns;
use super::tally::{Books, PartTally, Records, Whole};
use super::worker::{End, Shared};
use crate::clock::NS_PER_S;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// The result of one step.
#[derive(Debug, Clone, Serialize)]
pub struct HttpResult {
    pub books: Books,
    pub warm_up: Books,
    /// Wall nanoseconds since 1970 of the step's begin.
    pub started_ns: i64,
    /// How long the window really was: giving up and stopping shorten it.
    pub window_s: f64,
    /// "time", "gave up" or "stopped".
    pub ended: &'static str,
    /// Right answers of the window, from the due time in an open loop, from the start in a closed one.
    pub latency: Times,
    /// And failures, with the time until they failed.
    pub latency_all: Times,
    /// Right answers, from the sending.
    pub service: Times,
    /// Open loop: how late requests were sent though a connection was free. What a slow server makes requests wait is
    /// not the generator's fault, and not in here.
    pub lag: Times,
    /// How late a thread looked at its clock, which it does every 10 ms: in both loops.
    pub wake: Times,
    pub classes: Vec<ClassTold>,
    pub warm_up_classes: Vec<ClassTold>,
    pub series: Columns,
    pub connections: Connections,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub cpu_s: f64,
    /// From the step's begin to the end of its last thread.
    pub wall_s: f64,
    pub threads: usize,
    /// "HTTP/1.1" or "HTTP/2".
    pub protocol: &'static str,
    /// What the server calls itself in the head of an answer.
    pub server: Option<String>,
    /// The window's requests by the order's parts, where it has several.
    pub parts: Vec<PartTold>,
    #[serde(skip)]
    pub records: Option<Records>,
    pub records_left_out: u64,
}

/// What became of the requests of one part of a mix.
#[derive(Debug, Clone, Serialize)]
pub struct PartTold {
    pub books: Books,
    /// Right answers.
    pub latency: Times,
    /// By kind; only those that were met.
    pub errors: BTreeMap<&'static str, u64>,
}

impl PartTold {
    fn new(part: &PartTally) -> Self {
        let errors = KINDS.iter().zip(part.failed).filter(|(_, count)| *count > 0);
        let errors = errors.map(|(kind, count)| (kind.name(), count)).collect();
        Self { books: part.books, latency: part.latency.summarise(), errors }
    }
}

/// How the connections fared.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Connections {
    pub opened: u64,
    /// Attempts, each address counted.
    pub failed: u64,
    /// Ended by the server while they rested between requests, as the next request showed.
    pub idle_closed: u64,
    /// HTTP/2: ended by the server between requests as it had announced (`GOAWAY` without an error).
    pub told_to_go: u64,
    /// Requests that were sent once more for either.
    pub repeated: u64,
}

impl HttpResult {
    pub(super) fn new(plan: &Plan, shared: &Shared, started_ns: i64, whole: Whole) -> Result<Self, HttpError> {
        let mut series = shared.common.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.close();
        let (latency, latency_all) = (whole.latency.summarise(), whole.latency_all.summarise());
        whole.check(latency.n, latency_all.n)?;
        let seconds = |time_ns: i64| time_ns.max(0) as f64 / NS_PER_S as f64;
        Ok(Self {
            books: whole.books[1],
            warm_up: whole.books[0],
            started_ns,
            window_s: seconds(shared.end_ns() - plan.warm_up_ns),
            ended: match shared.why_ended() {
                End::Time => "time",
                End::GaveUp => "gave up",
                End::Stopped => "stopped",
            },
            latency,
            latency_all,
            service: whole.service.summarise(),
            lag: whole.lag.summarise(),
            wake: whole.wake.summarise(),
            classes: whole.classes.told(1),
            warm_up_classes: whole.classes.told(0),
            series: series.columns(),
            connections: Connections {
                opened: whole.counts.opened,
                failed: whole.counts.failed,
                idle_closed: whole.counts.idle_closed,
                told_to_go: whole.counts.told_to_go,
                repeated: whole.counts.repeated,
            },
            bytes_in: whole.counts.bytes_in,
            bytes_out: whole.counts.bytes_out,
            cpu_s: seconds(whole.cpu_ns),
            wall_s: seconds(whole.end_ns),
            threads: plan.threads,
            protocol: plan.protocol.name(),
            server: whole.server,
            parts: if plan.mix.size() > 1 { whole.parts.iter().map(PartTold::new).collect() } else { Vec::new() },
            records: (plan.max_records > 0).then_some(whole.records),
            records_left_out: if plan.max_records > 0 { whole.records_left_out } else { 0 },
        })
    }
}
