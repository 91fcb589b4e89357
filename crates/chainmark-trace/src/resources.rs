//! From a process's absolute counters to figures per sample: exact rates, or the integers of the published analysis.

use crate::event::Resources;

/// Figures of a sample, in the order of their columns.
pub const FIGURES: [&str; 15] = [
    "cpu_percent",
    "gc_percent",
    "mutator_percent",
    "major_gcs",
    "minor_gcs",
    "rss_mib",
    "heap_mib",
    "live_mib",
    "alloc_mib",
    "net_read_kib",
    "net_write_kib",
    "file_read_kib",
    "file_write_kib",
    "block_io_percent",
    "threads",
];
/// Those that belong to one sample alone: the published analysis uses 0 where it carries the others forward.
const PER_SAMPLE: [usize; 7] = [3, 4, 8, 9, 10, 11, 12];

/// A sample that is at least this late is not a misplaced line: the clock was set back.
const LATE_NS: i64 = 10_000_000_000;

/// NaN is "no value".
pub type Figures = [f64; FIGURES.len()];

pub const NO_FIGURES: Figures = [f64::NAN; FIGURES.len()];
const KIB: u64 = 1024;
const MIB: u64 = 1024 * 1024;

/// The last sample of a process, and what it came to.
#[derive(Debug, Clone)]
pub struct Accumulators {
    published: bool,
    last: Option<(i64, Resources)>,
    current: Figures,
    /// When counters fell: the process was restarted.
    pub restarts_ns: Vec<i64>,
}

impl Accumulators {
    pub fn new(published: bool) -> Self {
        Self { published, last: None, current: [0.0; FIGURES.len()], restarts_ns: Vec::new() }
    }

    /// Process a sample and return its figures.
    pub fn sample(&mut self, at_ns: i64, new: &Resources) -> Figures {
        if self.is_late(at_ns) {
            return exact(None, new);
        }
        let is_restart = self.last.is_some_and(|(last_ns, old)| at_ns > last_ns && has_fallen(&old, new));
        if is_restart {
            self.restarts_ns.push(at_ns);
        }
        self.current = if self.published {
            let (last_ns, old) = self.last.unwrap_or_default();
            published(at_ns.saturating_sub(last_ns), &old, new)
        } else {
            // A new process counts from zero.
            let old = self.last.map(|(last_ns, old)| (last_ns, if is_restart { Resources::default() } else { old }));
            exact(old.map(|(last_ns, old)| (at_ns.saturating_sub(last_ns), old)), new)
        };
        self.last = Some((at_ns, *new));
        self.current
    }

    /// Whether a sample was taken before the last reported one: its gauges count, and the next one contained the values
    /// of its counters.
    fn is_late(&self, at_ns: i64) -> bool {
        let behind_ns = self.last.map_or(0, |(last_ns, _)| last_ns.saturating_sub(at_ns));
        !self.published && (1..LATE_NS).contains(&behind_ns)
    }

    /// What a record without a sample of its own shows.
    pub fn carried(&self) -> Figures {
        if !self.published {
            return NO_FIGURES;
        }
        let mut figures = self.current;
        PER_SAMPLE.into_iter().for_each(|place| figures[place] = 0.0);
        figures
    }

    /// Whether a record without a sample of its own counts as one with resources. Those of the published analysis do
    /// from the second record on, for its accumulators begin at 0.
    pub fn has_carried(&self) -> bool {
        self.published || self.last.is_some()
    }
}

fn counters(sample: &Resources) -> [u64; 11] {
    [
        sample.cpu_centiseconds,
        sample.gc_centiseconds,
        sample.mutator_centiseconds,
        sample.major_collections,
        sample.minor_collections,
        sample.allocated_bytes,
        sample.net_read_bytes,
        sample.net_written_bytes,
        sample.file_read_bytes,
        sample.file_written_bytes,
        sample.block_io_centiseconds,
    ]
}

fn has_fallen(old: &Resources, new: &Resources) -> bool {
    counters(old).iter().zip(counters(new)).any(|(&old, new)| new < old)
}

/// Rates are known from a log's second sample on, and only if time advanced; gauges always.
fn exact(last: Option<(i64, Resources)>, new: &Resources) -> Figures {
    let last = last.filter(|&(passed_ns, _)| passed_ns > 0);
    let counted = counters(new);
    // Where time went on no counter has fallen below the old one: that of a new process is 0.
    let grown = |place: usize| last.map_or(f64::NAN, |(_, old)| (counted[place] - counters(&old)[place]) as f64);
    let passed_s = last.map_or(f64::NAN, |(passed_ns, _)| passed_ns as f64 / 1e9);
    let percent = |place: usize| grown(place) / passed_s;
    let rate = |place: usize, unit: u64| grown(place) / unit as f64 / passed_s;
    let gauge = |bytes: u64| bytes as f64 / MIB as f64;
    [
        percent(0),
        percent(1),
        percent(2),
        grown(3),
        grown(4),
        gauge(new.rss_bytes),
        gauge(new.heap_bytes),
        gauge(new.live_bytes),
        rate(5, MIB),
        rate(6, KIB),
        rate(7, KIB),
        rate(8, KIB),
        rate(9, KIB),
        percent(10),
        new.threads as f64,
    ]
}

/// Whole per cents rounded up in single precision, whole MiB and KiB rounded down, nothing divided by the time but the
/// per cents; a falling counter wraps.
fn published(passed_ns: i64, old: &Resources, new: &Resources) -> Figures {
    let passed_s = (passed_ns as f64 / 1e9) as f32;
    let gauge = |bytes: u64| (bytes / MIB) as f64;
    let (old, counted) = (counters(old), counters(new));
    let grown = |place: usize| counted[place].wrapping_sub(old[place]);
    let percent = |place: usize| {
        let percent = grown(place).wrapping_mul(100) as f32 / (passed_s * 100.0);
        if passed_ns > 0 { f64::from(percent.ceil()) } else { 0.0 }
    };
    [
        percent(0),
        percent(1),
        percent(2),
        grown(3) as f64,
        grown(4) as f64,
        gauge(new.rss_bytes),
        gauge(new.heap_bytes),
        gauge(new.live_bytes),
        (grown(5) / MIB) as f64,
        (grown(6) / KIB) as f64,
        (grown(7) / KIB) as f64,
        (grown(8) / KIB) as f64,
        (grown(9) / KIB) as f64,
        percent(10),
        new.threads as f64,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;
    const START_NS: i64 = 1_700_000_000 * SECOND_NS;

    fn figure(figures: &Figures, name: &str) -> f64 {
        figures[FIGURES.iter().position(|&figure| figure == name).unwrap()]
    }

    fn known(figures: &Figures) -> Vec<&str> {
        FIGURES.iter().zip(figures).filter(|(_, value)| !value.is_nan()).map(|(name, _)| *name).collect()
    }

    fn at_rest() -> Resources {
        Resources {
            cpu_centiseconds: 184_211,
            gc_centiseconds: 11_020,
            mutator_centiseconds: 172_650,
            major_collections: 81,
            minor_collections: 45_120,
            allocated_bytes: 1_418_123_456_789,
            live_bytes: 4_074_983_424,
            heap_bytes: 9_095_000_000,
            rss_bytes: 9_159_000_064,
            file_written_bytes: 123_456_789,
            threads: 2,
            ..Resources::default()
        }
    }

    fn a_second_later() -> Resources {
        Resources {
            cpu_centiseconds: 184_211 + 12,
            gc_centiseconds: 11_021,
            mutator_centiseconds: 172_661,
            major_collections: 82,
            minor_collections: 45_123,
            allocated_bytes: 1_418_123_456_789 + 5 * MIB + 1,
            file_written_bytes: 123_456_789 + 3 * KIB - 1,
            ..at_rest()
        }
    }

    #[test]
    fn the_first_sample_gives_only_gauges() {
        let figures = Accumulators::new(false).sample(START_NS, &at_rest());
        assert_eq!(known(&figures), ["rss_mib", "heap_mib", "live_mib", "threads"]);
        assert_eq!(figure(&figures, "rss_mib"), 9_159_000_064.0 / 1_048_576.0);
    }

    #[test]
    fn rates_are_exact_differences_divided_by_the_sampling_interval() {
        let mut accumulators = Accumulators::new(false);
        accumulators.sample(START_NS, &at_rest());
        let figures = accumulators.sample(START_NS + SECOND_NS + 3_000_000, &a_second_later());
        assert_eq!(figure(&figures, "cpu_percent"), 12.0 / 1.003);
        assert_eq!(figure(&figures, "major_gcs"), 1.0);
        assert_eq!(figure(&figures, "minor_gcs"), 3.0);
        assert_eq!(figure(&figures, "alloc_mib"), (5.0 + 1.0 / 1_048_576.0) / 1.003);
        assert_eq!(figure(&figures, "file_write_kib"), (3.0 - 1.0 / 1024.0) / 1.003);
        assert_eq!(figure(&figures, "net_read_kib"), 0.0);
    }

    #[test]
    fn a_restarted_process_counts_from_zero() {
        let mut accumulators = Accumulators::new(false);
        accumulators.sample(START_NS, &at_rest());
        let restart_ns = START_NS + 2 * SECOND_NS;
        let figures =
            accumulators.sample(restart_ns, &Resources { cpu_centiseconds: 40, threads: 9, ..Resources::default() });
        assert_eq!(figure(&figures, "cpu_percent"), 20.0);
        assert_eq!(accumulators.restarts_ns, [restart_ns]);
        let figures = accumulators
            .sample(restart_ns + SECOND_NS, &Resources { cpu_centiseconds: 47, threads: 9, ..Resources::default() });
        assert_eq!(figure(&figures, "cpu_percent"), 7.0);
    }

    #[test]
    fn samples_that_do_not_advance_give_no_rates() {
        for passed_ns in [0, -SECOND_NS] {
            let mut accumulators = Accumulators::new(false);
            accumulators.sample(START_NS, &at_rest());
            let figures = accumulators.sample(START_NS + passed_ns, &a_second_later());
            assert_eq!(known(&figures), ["rss_mib", "heap_mib", "live_mib", "threads"]);
        }
    }

    #[test]
    fn published_figures_are_integers() {
        let mut accumulators = Accumulators::new(true);
        let first = accumulators.sample(START_NS, &at_rest());
        // 184,211 centiseconds in the 1.7 thousand million seconds since 1970; all bytes ever allocated.
        assert_eq!(figure(&first, "cpu_percent"), 1.0);
        assert_eq!(figure(&first, "alloc_mib"), 1_352_427.0);
        assert_eq!(figure(&first, "rss_mib"), 8_734.0);
        assert_eq!(figure(&first, "block_io_percent"), 0.0);
        let second = accumulators.sample(START_NS + SECOND_NS - 3_000_000, &a_second_later());
        // 12 / 0.997 = 12.04, up; 5 MiB and a byte, down.
        assert_eq!(figure(&second, "cpu_percent"), 13.0);
        assert_eq!(figure(&second, "alloc_mib"), 5.0);
        assert_eq!(figure(&second, "file_write_kib"), 2.0);
        assert_eq!(figure(&second, "minor_gcs"), 3.0);
    }

    #[test]
    fn published_counters_wrap_when_they_decrease() {
        let mut accumulators = Accumulators::new(true);
        accumulators.sample(START_NS, &at_rest());
        let figures = accumulators.sample(START_NS + SECOND_NS, &Resources { threads: 3, ..Resources::default() });
        assert_eq!(figure(&figures, "major_gcs"), 18_446_744_073_709_551_616.0);
        assert_eq!(figure(&figures, "alloc_mib"), 17_592_184_691_988.0);
        // (2^64 - 18,421,100) as a float is 2^64; over 100 it is the float nearest to 184,467,440,737,095,516.
        assert_eq!(figure(&figures, "cpu_percent"), 184_467_440_737_095_520_f32 as f64);
        assert_eq!(accumulators.restarts_ns, [START_NS + SECOND_NS]);
    }

    #[test]
    fn published_percentages_are_0_when_time_does_not_advance() {
        let mut accumulators = Accumulators::new(true);
        accumulators.sample(START_NS, &at_rest());
        let figures = accumulators.sample(START_NS, &a_second_later());
        assert_eq!(figure(&figures, "cpu_percent"), 0.0);
        assert_eq!(figure(&figures, "minor_gcs"), 3.0);
    }

    #[test]
    fn published_records_without_a_sample_repeat_gauges_and_percentages_but_no_deltas() {
        let mut accumulators = Accumulators::new(true);
        assert!(accumulators.has_carried());
        assert_eq!(accumulators.carried(), [0.0; FIGURES.len()]);
        accumulators.sample(START_NS, &at_rest());
        let sample = accumulators.sample(START_NS + SECOND_NS, &a_second_later());
        let carried = accumulators.carried();
        for (place, name) in FIGURES.iter().enumerate() {
            let is_delta = ["major_gcs", "minor_gcs", "alloc_mib"].contains(name) || name.ends_with("_kib");
            assert_eq!(carried[place], if is_delta { 0.0 } else { sample[place] }, "{name}");
        }
    }

    #[test]
    fn exact_records_without_a_sample_have_no_figures() {
        let mut accumulators = Accumulators::new(false);
        assert!(!accumulators.has_carried());
        accumulators.sample(START_NS, &at_rest());
        assert!(accumulators.carried().iter().all(|figure| figure.is_nan()));
        assert!(accumulators.has_carried());
    }
}
