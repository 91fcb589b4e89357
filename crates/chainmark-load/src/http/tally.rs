//! What one thread counts, and how the counts of all become one.

use super::classes::{Classes, KINDS, Kind};
use super::error::HttpError;
use super::histogram::Recorder;
use super::plan::{Load, Plan};
use super::series::{Second, Series};
use crate::clock::{NS_PER_S, thread_cpu_ns};
use crate::run_queue::RunQueue;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Class of a record whose request was never sent; 0 is correct, followed by the kinds of failures.
const UNSENT: u8 = KINDS.len() as u8 + 1;

/// The outcome of the requests of a phase: `due = ok + failed + unsent`, `sent = ok + failed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    pub due: u64,
    /// Handed to a connection.
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    /// Due, but never handed to a connection.
    pub unsent: u64,
}

impl RequestCounts {
    fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.ok += other.ok;
        self.failed += other.failed;
        self.unsent += other.unsent;
    }
}

/// One row per measured request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Nanoseconds of the step, after [`super::HttpResult::started_ns`].
    pub due_ns: Vec<i64>,
    /// From the due time to the end; -1 if unsent.
    pub latency_ns: Vec<i64>,
    /// From the sending to the end; -1 if unsent.
    pub service_ns: Vec<i64>,
    /// The request's place in the order.
    pub request: Vec<u32>,
    /// A place in [`record_classes`].
    pub class: Vec<u8>,
}

type RecordRow = (i64, u32, i64, i64, u8);

impl Records {
    fn push(&mut self, (due_ns, request, latency_ns, service_ns, class): RecordRow) {
        self.due_ns.push(due_ns);
        self.latency_ns.push(latency_ns);
        self.service_ns.push(service_ns);
        self.request.push(request);
        self.class.push(class);
    }

    fn row(&self, row: usize) -> RecordRow {
        (self.due_ns[row], self.request[row], self.latency_ns[row], self.service_ns[row], self.class[row])
    }

    /// By due time; the order is total, so that it does not depend on which thread had what.
    fn merged(parts: &[Self]) -> Self {
        let rows = parts.iter().flat_map(|part| (0..part.due_ns.len()).map(|row| part.row(row)));
        let mut rows: Vec<RecordRow> = rows.collect();
        rows.sort_unstable();
        let mut merged = Self::default();
        rows.into_iter().for_each(|row| merged.push(row));
        merged
    }
}

/// The outcome of a part's requests in the window; correct responses' latencies.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PartTally {
    pub counts: RequestCounts,
    pub failed: [u64; KINDS.len()],
    pub latency: Recorder,
}

impl PartTally {
    fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.latency.merge(&other.latency);
        for (sum, count) in self.failed.iter_mut().zip(other.failed) {
            *sum += count;
        }
    }
}

/// How a request ended, in nanoseconds of the step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub request: u32,
    pub part: usize,
    pub phase: usize,
    pub due_ns: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    /// When the first byte of a response was seen.
    pub first_byte_ns: Option<i64>,
    /// Of a complete response.
    pub status: Option<u16>,
}

impl Ended {
    /// What was seen before the request was sent, or after it ended, was seen late or of an earlier one.
    pub fn with_answer(self, first_byte_ns: Option<i64>, status: Option<u16>) -> Self {
        let first_byte_ns = first_byte_ns.map(|time_ns| time_ns.clamp(self.start_ns, self.end_ns.max(self.start_ns)));
        Self { first_byte_ns, status, ..self }
    }
}

/// One of the slowest measured requests of a step, in nanoseconds of the step. They are ordered by their latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowRequest {
    pub latency_ns: i64,
    pub due_ns: i64,
    /// The request's place in the order.
    pub request: u32,
    pub sent_ns: i64,
    /// When the first byte of a response was seen; with HTTP/2, its head.
    pub first_byte_ns: Option<i64>,
    pub end_ns: i64,
    /// Of a complete response.
    pub status: Option<u16>,
    /// A place in [`record_classes`].
    pub class: u8,
}

/// The slowest requests so far, up to the maximum number.
struct Slowest {
    most: usize,
    requests: BinaryHeap<Reverse<SlowRequest>>,
}

impl Slowest {
    fn new(most: usize) -> Self {
        Self { most, requests: BinaryHeap::new() }
    }

    fn add(&mut self, ended: &Ended, class: u8) {
        let latency_ns = ended.end_ns - ended.due_ns;
        if self.requests.len() == self.most {
            // Most requests are as quick as others.
            let Some(quickest) = self.requests.peek() else { return };
            if latency_ns <= quickest.0.latency_ns {
                return;
            }
            self.requests.pop();
        }
        let Ended { request, due_ns, start_ns: sent_ns, end_ns, first_byte_ns, status, .. } = *ended;
        let slow = SlowRequest { latency_ns, due_ns, request, sent_ns, first_byte_ns, end_ns, status, class };
        self.requests.push(Reverse(slow));
    }
}

/// The slowest of all, the slowest first.
pub(super) fn slowest_of(mut requests: Vec<SlowRequest>, most: usize) -> Vec<SlowRequest> {
    requests.sort_unstable_by_key(|&slow| Reverse(slow));
    requests.truncate(most);
    requests
}

/// What the threads of a load share about their counts.
#[derive(Debug)]
pub(super) struct Common {
    pub series: Mutex<Series>,
    pub records_left: AtomicI64,
}

/// The counts of one thread.
pub(super) struct Tally {
    common: Arc<Common>,
    is_open: bool,
    slow_ns: i64,
    /// Of the warm-up, of the window.
    pub request_counts: [RequestCounts; 2],
    pub classes: Classes,
    parts: Vec<PartTally>,
    failed_latency: Recorder,
    service: Recorder,
    lag: Recorder,
    wake: Recorder,
    records: Records,
    records_left_out: u64,
    slowest: Slowest,
    second: Second,
    second_number: usize,
    /// When the current second is over.
    pub second_end_ns: i64,
    second_cpu_ns: i64,
    second_bytes_in: u64,
    run_queue: RunQueue,
    second_waited_ns: Option<i64>,
    /// Sums over the series, to check it.
    series_sums: [u64; 3],
    begin_cpu_ns: i64,
}

impl Tally {
    /// Of the calling thread.
    pub fn new(plan: &Plan, common: Arc<Common>) -> Self {
        let cpu_ns = thread_cpu_ns();
        let run_queue = RunQueue::of_this_thread();
        Self {
            common,
            is_open: matches!(plan.load, Load::Open { .. }),
            slow_ns: plan.give_up.as_ref().map_or(i64::MAX, |give_up| give_up.slow_ns),
            request_counts: [RequestCounts::default(); 2],
            classes: Classes::default(),
            parts: vec![PartTally::default(); plan.mix.size()],
            failed_latency: Recorder::default(),
            service: Recorder::default(),
            lag: Recorder::default(),
            wake: Recorder::default(),
            records: Records::default(),
            records_left_out: 0,
            slowest: Slowest::new(plan.max_slowest),
            second: Second::default(),
            second_number: 0,
            second_end_ns: NS_PER_S,
            second_cpu_ns: cpu_ns,
            second_bytes_in: 0,
            second_waited_ns: run_queue.waited_ns(),
            run_queue,
            series_sums: [0; 3],
            begin_cpu_ns: cpu_ns,
        }
    }

    pub fn started(&mut self, phase: usize, part: usize) {
        self.request_counts[phase].due += 1;
        self.request_counts[phase].sent += 1;
        if phase == 1 {
            self.parts[part].counts.due += 1;
            self.parts[part].counts.sent += 1;
        }
        self.second.started += 1;
    }

    pub fn lag(&mut self, phase: usize, lag_ns: i64) {
        self.second.lag(lag_ns);
        if phase == 1 {
            self.lag.record(lag_ns);
        }
    }

    pub fn woken(&mut self, phase: usize, late_ns: i64) {
        self.second.woken(late_ns);
        if phase == 1 {
            self.wake.record(late_ns);
        }
    }

    pub fn ok(&mut self, ended: &Ended) {
        self.request_counts[ended.phase].ok += 1;
        self.second.ok += 1;
        let latency_ns = ended.end_ns - ended.due_ns;
        self.second.latency(latency_ns);
        self.second.slow += u64::from(latency_ns > self.slow_ns);
        if ended.phase == 1 {
            let part = &mut self.parts[ended.part];
            part.counts.ok += 1;
            part.latency.record(latency_ns);
            // In a closed loop it is the latency.
            if self.is_open {
                self.service.record(ended.end_ns - ended.start_ns);
            }
            self.record(ended, 0);
        }
    }

    pub fn failed(&mut self, ended: &Ended, class: u32) {
        let kind = self.classes.kind(class);
        self.classes.count(class, ended.phase, ended.end_ns);
        self.request_counts[ended.phase].failed += 1;
        self.second.failed(kind);
        let latency_ns = ended.end_ns - ended.due_ns;
        self.second.latency(latency_ns);
        if ended.phase == 1 {
            self.failed_latency.record(latency_ns);
            let part = &mut self.parts[ended.part];
            part.counts.failed += 1;
            part.failed[kind as usize] += 1;
            self.record(ended, kind as u8 + 1);
        }
    }

    pub fn unsent(&mut self, request: u32, part: usize, phase: usize, due_ns: i64) {
        self.request_counts[phase].due += 1;
        self.request_counts[phase].unsent += 1;
        if phase == 1 {
            self.parts[part].counts.due += 1;
            self.parts[part].counts.unsent += 1;
        }
        if phase == 1 && self.may_record() {
            self.records.push((due_ns, request, -1, -1, UNSENT));
        }
    }

    fn record(&mut self, ended: &Ended, class: u8) {
        self.slowest.add(ended, class);
        if self.may_record() {
            let (latency_ns, service_ns) = (ended.end_ns - ended.due_ns, ended.end_ns - ended.start_ns);
            self.records.push((ended.due_ns, ended.request, latency_ns, service_ns, class));
        }
    }

    fn may_record(&mut self) -> bool {
        // Read first: without records, threads must not share a cache line that is written.
        let may = self.common.records_left.load(Relaxed) > 0 && self.common.records_left.fetch_sub(1, Relaxed) > 0;
        self.records_left_out += u64::from(!may);
        may
    }

    /// Hands in all seconds that are over at `now_ns`, or the begun one, too.
    pub fn hand_in(&mut self, now_ns: i64, state: Gauges, with_begun: bool) {
        while now_ns >= self.second_end_ns || with_begun && now_ns > self.second_end_ns - NS_PER_S {
            let cpu_ns = thread_cpu_ns();
            self.second.cpu_ns = cpu_ns - self.second_cpu_ns;
            self.second.bytes_in = state.bytes_in - self.second_bytes_in;
            (self.second.in_flight, self.second.queued) = (state.in_flight, state.queued);
            (self.second_cpu_ns, self.second_bytes_in) = (cpu_ns, state.bytes_in);
            let waited_ns = self.run_queue.waited_ns();
            let waits = waited_ns.zip(self.second_waited_ns).map(|(now_ns, before_ns)| now_ns - before_ns);
            (self.second.waited_ns, self.second.waits_unknown) = (waits.unwrap_or(0), waits.is_none());
            self.second_waited_ns = waited_ns;
            self.series_sums[0] += self.second.started;
            self.series_sums[1] += self.second.ok;
            self.series_sums[2] += self.second.all_failed();
            let mut series = self.common.series.lock().unwrap_or_else(PoisonError::into_inner);
            series.add(self.second_number, &self.second);
            drop(series);
            self.second.clear();
            self.second_number += 1;
            self.second_end_ns += NS_PER_S;
        }
    }

    pub fn finish(self, counts: super::io::IoCounts, end_ns: i64) -> Part {
        let cpu_ns = thread_cpu_ns() - self.begin_cpu_ns;
        Part { tally: self, counts, end_ns, cpu_ns, server: None }
    }
}

/// The state at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gauges {
    pub in_flight: u64,
    pub queued: u64,
    pub bytes_in: u64,
}

/// What a thread has to show at its end.
pub(super) struct Part {
    pub tally: Tally,
    pub counts: super::io::IoCounts,
    pub end_ns: i64,
    pub cpu_ns: i64,
    /// What the server calls itself.
    pub server: Option<String>,
}

/// The sums over threads, or over generators.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Whole {
    pub request_counts: [RequestCounts; 2],
    pub classes: Classes,
    pub parts: Vec<PartTally>,
    pub latency: Recorder,
    pub latency_all: Recorder,
    pub service: Recorder,
    pub lag: Recorder,
    pub wake: Recorder,
    pub records: Records,
    pub records_left_out: u64,
    pub slowest: Vec<SlowRequest>,
    pub counts: super::io::IoCounts,
    pub end_ns: i64,
    pub cpu_ns: i64,
    pub server: Option<String>,
    series_sums: [u64; 3],
}

impl From<Part> for Whole {
    fn from(part: Part) -> Self {
        let Part { tally, counts, end_ns, cpu_ns, server } = part;
        let mut latency = Recorder::default();
        tally.parts.iter().for_each(|part| latency.merge(&part.latency));
        let mut latency_all = tally.failed_latency;
        latency_all.merge(&latency);
        Self {
            request_counts: tally.request_counts,
            classes: tally.classes,
            parts: tally.parts,
            service: if tally.is_open { tally.service } else { latency.clone() },
            latency,
            latency_all,
            lag: tally.lag,
            wake: tally.wake,
            records: tally.records,
            records_left_out: tally.records_left_out,
            slowest: tally.slowest.requests.into_iter().map(|Reverse(slow)| slow).collect(),
            counts,
            end_ns,
            cpu_ns,
            server,
            series_sums: tally.series_sums,
        }
    }
}

impl Whole {
    pub fn merged(wholes: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self::default();
        let records: Vec<Records> = wholes.into_iter().map(|whole| merged.add(whole)).collect();
        merged.records = Records::merged(&records);
        merged
    }

    fn add(&mut self, other: Self) -> Records {
        self.server = self.server.take().or(other.server);
        for (sum, counts) in self.request_counts.iter_mut().zip(&other.request_counts) {
            sum.add(counts);
        }
        self.classes.merge(other.classes);
        self.parts.resize_with(self.parts.len().max(other.parts.len()), PartTally::default);
        for (sum, part) in self.parts.iter_mut().zip(&other.parts) {
            sum.merge(part);
        }
        self.latency.merge(&other.latency);
        self.latency_all.merge(&other.latency_all);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.wake.merge(&other.wake);
        self.records_left_out += other.records_left_out;
        self.slowest.extend(other.slowest);
        self.counts.add(other.counts);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.cpu_ns += other.cpu_ns;
        for (sum, others) in self.series_sums.iter_mut().zip(other.series_sums) {
            *sum += others;
        }
        other.records
    }

    /// Counts a request with unknown outcome: as failed, in the second in which it was due.
    pub fn lose(&mut self, ended: &Ended, class: u32, second: &mut Second) {
        let kind = self.classes.kind(class);
        let failed = RequestCounts { due: 1, sent: 1, failed: 1, ..RequestCounts::default() };
        let latency_ns = ended.end_ns - ended.due_ns;
        self.classes.count(class, ended.phase, ended.end_ns);
        self.request_counts[ended.phase].add(&failed);
        if ended.phase == 1 {
            self.latency_all.record(latency_ns);
            self.parts[ended.part].counts.add(&failed);
            self.parts[ended.part].failed[kind as usize] += 1;
            self.records_left_out += 1;
        }
        second.started += 1;
        second.failed(kind);
        second.latency(latency_ns);
        self.series_sums[0] += 1;
        self.series_sums[2] += 1;
    }

    /// # Errors
    /// A sum does not balance; checked in release builds, too: a result with wrong counts is invalid.
    pub fn check(&self, latency: u64, latency_all: u64) -> Result<(), HttpError> {
        for (phase, counts) in self.request_counts.iter().enumerate() {
            let name = ["warm-up", "window"][phase];
            equal(
                &format!("{name}: due, ok + failed + unsent"),
                counts.due,
                counts.ok + counts.failed + counts.unsent,
            )?;
            equal(&format!("{name}: sent, ok + failed"), counts.sent, counts.ok + counts.failed)?;
            equal(&format!("{name}: failed, all classes"), counts.failed, self.classes.total(phase))?;
        }
        let [warm_up, window] = &self.request_counts;
        let mut parts = RequestCounts::default();
        self.parts.iter().for_each(|part| parts.add(&part.counts));
        if !self.parts.is_empty() && parts != *window {
            return Err(HttpError::RequestCounts { what: format!("window, its parts: {window:?}, {parts:?}") });
        }
        equal("ok, latencies", window.ok, latency)?;
        equal("ok + failed, all latencies", window.ok + window.failed, latency_all)?;
        equal("due, records", window.due, self.records.due_ns.len() as u64 + self.records_left_out)?;
        let both = [warm_up.sent + window.sent, warm_up.ok + window.ok, warm_up.failed + window.failed];
        for (name, (seconds, count)) in ["sent", "ok", "failed"].iter().zip(self.series_sums.iter().zip(both)) {
            equal(&format!("{name}, its series"), *seconds, count)?;
        }
        Ok(())
    }
}

fn equal(what: &str, one: u64, other: u64) -> Result<(), HttpError> {
    if one == other { Ok(()) } else { Err(HttpError::RequestCounts { what: format!("{what}: {one}, {other}") }) }
}

/// The kinds of failures as records number them, right and unsent included.
pub fn record_classes() -> Vec<&'static str> {
    let kinds = KINDS.iter().map(|kind: &Kind| kind.name());
    std::iter::once("ok").chain(kinds).chain(std::iter::once("unsent")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::classes::Class;
    use super::*;

    type Change = fn(&mut Whole);

    /// In the warm-up one correct response; in the window seven, two failures and one that was never sent.
    fn sound() -> Whole {
        let mut whole = Whole::default();
        whole.request_counts[0] = RequestCounts { due: 1, sent: 1, ok: 1, failed: 0, unsent: 0 };
        whole.request_counts[1] = RequestCounts { due: 10, sent: 9, ok: 7, failed: 2, unsent: 1 };
        let class = whole.classes.number(Class::new(Kind::Timeout, None, String::new()));
        whole.classes.count(class, 1, 0);
        whole.classes.count(class, 1, 0);
        whole.records.push((0, 0, 1, 1, 0));
        whole.records_left_out = 9;
        whole.series_sums = [10, 8, 2];
        whole
    }

    #[test]
    fn each_sum_is_checked() {
        sound().check(7, 9).unwrap();
        let broken: [(&str, Change); 13] = [
            ("window: due", |whole| whole.request_counts[1].due += 1),
            ("window: due", |whole| whole.request_counts[1].unsent -= 1),
            ("window: due", |whole| whole.request_counts[1].ok += 1),
            ("window: sent", |whole| whole.request_counts[1].sent += 1),
            ("warm-up: due", |whole| whole.request_counts[0].due += 1),
            ("warm-up: sent", |whole| whole.request_counts[0].sent -= 1),
            ("window: failed, all classes", |whole| whole.classes = Classes::default()),
            ("warm-up: failed, all classes", |whole| whole.classes.count(0, 0, 0)),
            ("due, records", |whole| whole.records_left_out += 1),
            ("due, records", |whole| whole.records = Records::default()),
            ("sent, its series", |whole| whole.series_sums[0] -= 1),
            ("ok, its series", |whole| whole.series_sums[1] += 1),
            ("failed, its series", |whole| whole.series_sums[2] += 1),
        ];
        for (expected, change) in broken {
            let mut whole = sound();
            change(&mut whole);
            let error = whole.check(7, 9).unwrap_err().to_string();
            assert!(error.contains(&format!("do not add up: {expected}")), "{expected}: {error}");
        }
    }

    fn ended(due_ns: i64, end_ns: i64) -> Ended {
        let (request, part, phase, start_ns) = (due_ns as u32, 0, 1, due_ns + 1);
        Ended { request, part, phase, due_ns, start_ns, end_ns, first_byte_ns: None, status: None }
    }

    #[test]
    fn the_slowest_requests_of_all_threads_are_reported() {
        // Latencies of 0 to 99, in an order that has the slowest anywhere; two threads have every other one.
        let latencies = (0..100).map(|number| number * 37 % 100);
        let mut threads = [Slowest::new(7), Slowest::new(7)];
        for (number, latency_ns) in latencies.enumerate() {
            threads[number % 2].add(&ended(number as i64, number as i64 + latency_ns), 0);
        }
        let all = threads.into_iter().flat_map(|thread| thread.requests.into_iter().map(|Reverse(slow)| slow));
        let slowest = slowest_of(all.collect(), 7);
        let latencies: Vec<_> = slowest.iter().map(|slow| slow.latency_ns).collect();
        assert_eq!(latencies, [99, 98, 97, 96, 95, 94, 93]);
        assert!(
            slowest.iter().all(|slow| slow.end_ns - slow.due_ns == slow.latency_ns && slow.sent_ns == slow.due_ns + 1)
        );

        let mut none = Slowest::new(0);
        none.add(&ended(0, 5), 0);
        assert!(none.requests.is_empty());
    }

    #[test]
    fn the_first_byte_is_between_the_sending_and_the_end() {
        let first = |seen_ns| ended(10, 30).with_answer(Some(seen_ns), Some(200)).first_byte_ns;
        assert_eq!([first(5), first(20), first(40)], [Some(11), Some(20), Some(30)]);
        assert_eq!(ended(10, 30).with_answer(None, None).first_byte_ns, None);
    }

    #[test]
    fn a_missing_or_duplicate_latency_is_detected() {
        for (latency, latency_all) in [(6, 9), (8, 9), (7, 8), (7, 10)] {
            assert!(sound().check(latency, latency_all).is_err(), "{latency} {latency_all}");
        }
    }
}
