//! What happened in each second of a load.

use super::classes::{KINDS, Kind};
use crate::clock::NS_PER_S;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Two digits are enough for a chart, and keep a second's data small.
type SmallHistogram = hdrhistogram::Histogram<u32>;

fn small() -> SmallHistogram {
    SmallHistogram::new_with_bounds(1_000, 120 * NS_PER_S as u64, 2).expect("the bounds are possible")
}

/// As bytes, which are small where most is 0.
mod bytes {
    use super::{Deserialize, Deserializer, Serialize, Serializer, SmallHistogram, V2Serializer, small};
    use serde::de::Error;

    pub fn serialize<W: serde::Serializer>(histogram: &SmallHistogram, writing: W) -> Result<W::Ok, W::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).expect("a vector takes any number of bytes");
        bytes.serialize(writing)
    }

    pub fn deserialize<'de, R: serde::Deserializer<'de>>(reading: R) -> Result<SmallHistogram, R::Error> {
        let bytes = Vec::<u8>::deserialize(reading)?;
        let read: SmallHistogram = Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(Error::custom)?;
        let mut histogram = small();
        histogram.add(&read).map_err(Error::custom)?;
        Ok(histogram)
    }
}

/// One second of one thread, or of all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Second {
    pub started: u64,
    pub ok: u64,
    /// Correct responses that took longer than the step's limit.
    pub slow: u64,
    pub bytes_in: u64,
    pub cpu_ns: i64,
    /// At the second's end.
    pub in_flight: u64,
    pub queued: u64,
    failed: [u64; KINDS.len()],
    /// Time in the run queue since the previous second; not available from every kernel.
    pub waited_ns: i64,
    pub waits_unknown: bool,
    #[serde(with = "bytes")]
    latency: SmallHistogram,
    #[serde(with = "bytes")]
    lag: SmallHistogram,
    #[serde(with = "bytes")]
    wake: SmallHistogram,
    max_ns: u64,
}

impl Default for Second {
    fn default() -> Self {
        Self {
            started: 0,
            ok: 0,
            slow: 0,
            bytes_in: 0,
            cpu_ns: 0,
            in_flight: 0,
            queued: 0,
            failed: [0; KINDS.len()],
            waited_ns: 0,
            waits_unknown: false,
            latency: small(),
            lag: small(),
            wake: small(),
            max_ns: 0,
        }
    }
}

impl Second {
    pub fn latency(&mut self, latency_ns: i64) {
        let latency_ns = latency_ns.max(0) as u64;
        self.latency.saturating_record(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    pub fn lag(&mut self, lag_ns: i64) {
        self.lag.saturating_record(lag_ns.max(0) as u64);
    }

    pub fn woken(&mut self, late_ns: i64) {
        self.wake.saturating_record(late_ns.max(0) as u64);
    }

    pub fn failed(&mut self, kind: Kind) {
        self.failed[kind as usize] += 1;
    }

    /// Failures of all kinds.
    pub fn all_failed(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Forgets everything but the memory of its histograms.
    pub fn clear(&mut self) {
        let Self { started, ok, slow, bytes_in, cpu_ns, in_flight, queued, failed, max_ns, .. } = self;
        (*started, *ok, *slow, *bytes_in, *cpu_ns) = (0, 0, 0, 0, 0);
        (*in_flight, *queued, *failed, *max_ns) = (0, 0, [0; KINDS.len()], 0);
        (self.waited_ns, self.waits_unknown) = (0, false);
        for histogram in [&mut self.latency, &mut self.lag, &mut self.wake] {
            histogram.reset();
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.ok += other.ok;
        self.slow += other.slow;
        self.bytes_in += other.bytes_in;
        self.cpu_ns += other.cpu_ns;
        self.waited_ns += other.waited_ns;
        self.waits_unknown |= other.waits_unknown;
        self.in_flight += other.in_flight;
        self.queued += other.queued;
        for (mine, others) in self.failed.iter_mut().zip(other.failed) {
            *mine += others;
        }
        self.latency.add(&other.latency).expect("the bounds are the same");
        self.lag.add(&other.lag).expect("the bounds are the same");
        self.wake.add(&other.wake).expect("the bounds are the same");
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn row(&self) -> Row {
        let quantile = |histogram: &SmallHistogram, share| {
            (!histogram.is_empty()).then(|| histogram.value_at_quantile(share) as f64 / 1e9)
        };
        let max_s = self.max_ns as f64 / 1e9;
        Row {
            started: self.started,
            ok: self.ok,
            slow: self.slow,
            failed: self.failed,
            in_flight: self.in_flight,
            queued: self.queued,
            p50_s: quantile(&self.latency, 0.5).map(|time_s| time_s.min(max_s)),
            p99_s: quantile(&self.latency, 0.99).map(|time_s| time_s.min(max_s)),
            max_s: (!self.latency.is_empty()).then_some(max_s),
            bytes_in: self.bytes_in,
            cpu_s: self.cpu_ns as f64 / 1e9,
            lag_p99_s: quantile(&self.lag, 0.99),
            waited_s: (!self.waits_unknown).then_some(self.waited_ns as f64 / 1e9),
            wake_p99_s: quantile(&self.wake, 0.99),
        }
    }
}

/// A finished second: small enough to keep a day of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub started: u64,
    pub ok: u64,
    slow: u64,
    pub failed: [u64; KINDS.len()],
    in_flight: u64,
    queued: u64,
    pub p50_s: Option<f64>,
    pub p99_s: Option<f64>,
    max_s: Option<f64>,
    bytes_in: u64,
    cpu_s: f64,
    lag_p99_s: Option<f64>,
    waited_s: Option<f64>,
    wake_p99_s: Option<f64>,
}

/// The seconds of all threads.
#[derive(Debug)]
pub(super) struct Series {
    threads: usize,
    rows: Vec<Row>,
    /// The seconds as they are merged with those of other generators; None: there are no others.
    written: Option<Vec<String>>,
    /// Seconds that not all threads have passed, and how many have.
    open: BTreeMap<usize, (Second, usize)>,
}

impl Series {
    pub fn new(threads: usize) -> Self {
        Self { threads, rows: Vec::new(), written: None, open: BTreeMap::new() }
    }

    /// Of one of several generators.
    pub fn of_share(threads: usize) -> Self {
        Self { written: Some(Vec::new()), ..Self::new(threads) }
    }

    /// The seconds as [`Series::of_share`] keeps them.
    pub fn written(&self) -> &[String] {
        self.written.as_deref().unwrap_or_default()
    }

    /// A second of all threads.
    pub fn push(&mut self, second: &Second) {
        if let Some(written) = &mut self.written {
            written.push(serde_json::to_string(second).expect("numbers and lists can be written"));
        }
        self.rows.push(second.row());
    }

    /// Adds a thread's part of a second; each thread submits its seconds in order and without gaps.
    pub fn add(&mut self, second: usize, part: &Second) {
        let (whole, parts) = self.open.entry(second).or_default();
        whole.add(part);
        *parts += 1;
        if *parts == self.threads
            && let Some((whole, _)) = self.open.remove(&second)
        {
            self.push(&whole);
        }
    }

    /// Summarises what only some threads had: those that had nothing more to do ended earlier.
    pub fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        open.into_values().for_each(|(second, _)| self.push(&second));
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn columns(&self) -> Columns {
        let failed = |row: &Row| row.failed.iter().sum();
        let met = KINDS.into_iter().filter(|&kind| self.rows.iter().any(|row| row.failed[kind as usize] > 0));
        Columns {
            second: (0..self.rows.len()).collect(),
            started: self.column(|row| row.started),
            ok: self.column(|row| row.ok),
            slow: self.column(|row| row.slow),
            failed: self.column(failed),
            in_flight: self.column(|row| row.in_flight),
            queued: self.column(|row| row.queued),
            p50_s: self.column(|row| row.p50_s),
            p99_s: self.column(|row| row.p99_s),
            max_s: self.column(|row| row.max_s),
            bytes_in: self.column(|row| row.bytes_in),
            cpu_s: self.column(|row| row.cpu_s),
            lag_p99_s: self.column(|row| row.lag_p99_s),
            waited_s: self.column(|row| row.waited_s),
            wake_p99_s: self.column(|row| row.wake_p99_s),
            errors: met.map(|kind| (kind.name(), self.column(|row| row.failed[kind as usize]))).collect(),
        }
    }

    fn column<T>(&self, value: impl Fn(&Row) -> T) -> Vec<T> {
        self.rows.iter().map(value).collect()
    }
}

/// The series in a result: one value per second of the step, including warm-up and draining.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Columns {
    pub second: Vec<usize>,
    /// Requests that were handed to a connection.
    pub started: Vec<u64>,
    pub ok: Vec<u64>,
    /// Correct responses that took longer than the limit after which a step gives up; 0 without one.
    pub slow: Vec<u64>,
    pub failed: Vec<u64>,
    /// At the second's end.
    pub in_flight: Vec<u64>,
    /// Due, but not yet handed to a connection, at the second's end.
    pub queued: Vec<u64>,
    /// Latency of requests that ended in the second, failed or not; None if there were none.
    pub p50_s: Vec<Option<f64>>,
    pub p99_s: Vec<Option<f64>>,
    pub max_s: Vec<Option<f64>>,
    pub bytes_in: Vec<u64>,
    /// Of the generator's threads.
    pub cpu_s: Vec<f64>,
    pub lag_p99_s: Vec<Option<f64>>,
    /// Time for which the generator's threads waited for a CPU; None if the kernel does not report it.
    pub waited_s: Vec<Option<f64>>,
    pub wake_p99_s: Vec<Option<f64>>,
    pub errors: BTreeMap<&'static str, Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_unknown_to_one_thread_are_reported_as_unknown() {
        let mut series = Series::new(2);
        series.add(0, &Second { waited_ns: 250_000_000, ..Second::default() });
        series.add(0, &Second { waits_unknown: true, ..Second::default() });
        for _ in 0..2 {
            series.add(1, &Second { waited_ns: 250_000_000, ..Second::default() });
        }
        assert_eq!(series.columns().waited_s, [None, Some(0.5)]);
    }

    #[test]
    fn seconds_are_summed_over_threads_and_closed_early() {
        let mut series = Series::new(2);
        let mut part = Second { started: 3, ok: 2, slow: 1, ..Second::default() };
        part.latency(1_000_000);
        part.latency(3_000_000);
        part.failed(Kind::Timeout);
        series.add(0, &part);
        assert!(series.rows().is_empty(), "the other thread has not passed it");
        series.add(0, &part);
        series.add(1, &part);
        assert_eq!((series.rows().len(), series.open.len()), (1, 1));
        series.close();
        let columns = series.columns();
        assert_eq!((columns.started, columns.ok, columns.failed), (vec![6, 3], vec![4, 2], vec![2, 1]));
        assert_eq!(columns.slow, [2, 1]);
        assert_eq!(columns.errors, BTreeMap::from([("timeout", vec![2, 1])]));
        assert_eq!(columns.max_s, [Some(0.003); 2]);
        assert!((columns.p50_s[0].unwrap() - 0.001).abs() < 1e-5);
        assert_eq!(columns.lag_p99_s, [None, None]);
        assert_eq!(columns.waited_s, [Some(0.0), Some(0.0)]);
    }
}
