//! What a load has measured.

use super::classes::{ClassReport, KINDS};
use super::error::HttpError;
use super::histogram::Times;
use super::plan::Plan;
use super::series::{Columns, Series};
use super::tally::{PartTally, Records, RequestCounts, SlowRequest, Whole, slowest_of};
use super::worker::End;
use crate::clock::NS_PER_S;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of one step.
#[derive(Debug, Clone, Serialize)]
pub struct HttpResult {
    pub counts: RequestCounts,
    pub warm_up: RequestCounts,
    /// Wall nanoseconds since 1970 of the step's begin.
    pub started_ns: i64,
    /// How long the window really was: giving up and stopping shorten it.
    pub window_s: f64,
    /// "time", "gave up" or "stopped".
    pub ended: &'static str,
    /// Correct responses of the window, from the due time in an open loop, from the start in a closed one.
    pub latency: Times,
    /// And failures, with the time until they failed.
    pub latency_all: Times,
    /// Correct responses, from the sending.
    pub service: Times,
    /// Open loop: how late requests were sent though a connection was free. What a slow server makes requests wait is
    /// not the generator's fault, and not in here.
    pub lag: Times,
    /// How late a thread looked at its clock, which it does every 10 ms: in both loops.
    pub wake: Times,
    pub classes: Vec<ClassReport>,
    pub warm_up_classes: Vec<ClassReport>,
    pub series: Columns,
    pub connections: Connections,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub cpu_s: f64,
    /// From the step's begin to the end of its last thread.
    pub wall_s: f64,
    pub threads: usize,
    /// Those that made the load.
    pub generators: Vec<Generator>,
    /// "HTTP/1.1" or "HTTP/2".
    pub protocol: &'static str,
    /// The server's name in the head of a response.
    pub server: Option<String>,
    /// The window's requests by the order's parts, if there are several.
    pub parts: Vec<PartReport>,
    #[serde(skip)]
    pub records: Option<Records>,
    pub records_left_out: u64,
    /// The slowest measured requests, the slowest first.
    pub slowest: Vec<SlowRequest>,
}

/// One of the processes that made the load.
#[derive(Debug, Clone, Serialize)]
pub struct Generator {
    pub threads: usize,
    pub cpu_s: f64,
    pub wall_s: f64,
    /// Why nothing is known about its requests; "": it completed its share.
    pub lost: String,
}

/// The course of a step, besides its sums.
pub(super) struct Course {
    /// Wall nanoseconds since 1970 of the step's begin.
    pub started_ns: i64,
    /// Of the step: when nothing more was due or started.
    pub end_ns: i64,
    pub why: End,
    pub threads: usize,
}

impl Course {
    pub fn generator(&self, whole: &Whole) -> Generator {
        Generator {
            threads: self.threads,
            cpu_s: seconds(whole.cpu_ns),
            wall_s: seconds(whole.end_ns),
            lost: String::new(),
        }
    }
}

fn seconds(time_ns: i64) -> f64 {
    time_ns.max(0) as f64 / NS_PER_S as f64
}

/// What became of the requests of one part of a mix.
#[derive(Debug, Clone, Serialize)]
pub struct PartReport {
    pub counts: RequestCounts,
    /// Correct responses.
    pub latency: Times,
    /// By kind; only those that were met.
    pub errors: BTreeMap<&'static str, u64>,
}

impl PartReport {
    fn new(part: &PartTally) -> Self {
        let errors = KINDS.iter().zip(part.failed).filter(|(_, count)| *count > 0);
        let errors = errors.map(|(kind, count)| (kind.name(), count)).collect();
        Self { counts: part.counts, latency: part.latency.summarise(), errors }
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
    pub goaway_closed: u64,
    /// Requests that were sent again for either reason.
    pub repeated: u64,
}

impl HttpResult {
    /// # Errors
    /// The sums do not add up.
    pub(super) fn new(
        plan: &Plan,
        course: &Course,
        series: &Series,
        generators: Vec<Generator>,
        whole: Whole,
    ) -> Result<Self, HttpError> {
        let (latency, latency_all) = (whole.latency.summarise(), whole.latency_all.summarise());
        whole.check(latency.n, latency_all.n)?;
        Ok(Self {
            counts: whole.request_counts[1],
            warm_up: whole.request_counts[0],
            started_ns: course.started_ns,
            window_s: seconds(course.end_ns - plan.warm_up_ns),
            ended: match course.why {
                End::Time => "time",
                End::GaveUp => "gave up",
                End::Stopped => "stopped",
            },
            latency,
            latency_all,
            service: whole.service.summarise(),
            lag: whole.lag.summarise(),
            wake: whole.wake.summarise(),
            classes: whole.classes.reports(1),
            warm_up_classes: whole.classes.reports(0),
            series: series.columns(),
            connections: Connections {
                opened: whole.counts.opened,
                failed: whole.counts.failed,
                idle_closed: whole.counts.idle_closed,
                goaway_closed: whole.counts.goaway_closed,
                repeated: whole.counts.repeated,
            },
            bytes_in: whole.counts.bytes_in,
            bytes_out: whole.counts.bytes_out,
            cpu_s: seconds(whole.cpu_ns),
            wall_s: seconds(whole.end_ns),
            threads: course.threads,
            generators,
            protocol: plan.protocol.name(),
            server: whole.server,
            parts: if plan.mix.size() > 1 { whole.parts.iter().map(PartReport::new).collect() } else { Vec::new() },
            records: (plan.max_records > 0).then_some(whole.records),
            records_left_out: if plan.max_records > 0 { whole.records_left_out } else { 0 },
            slowest: slowest_of(whole.slowest, plan.max_slowest),
        })
    }
}
