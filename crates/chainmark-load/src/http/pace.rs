//! When requests are due in an open loop: lazily, so that a queue of millions needs no memory.

use std::sync::Arc;

use chainmark_random::SplitMix64;

use super::course::Course;
use super::order::Drawing;
use super::plan::Mix;
use crate::clock::NS_PER_S;
use crate::schedule::{ScheduleKind, exponential_gap_ns};

/// Streams of the seed; recorded seeds depend on the numbers.
const GAPS: u64 = 0x4854_5450_0001;
const DRAWS: u64 = 0x4854_5450_0002;
const THOUGHTS: u64 = 0x4854_5450_0003;

/// The due times of one thread, in order. All threads of all generators together keep one schedule, whatever their
/// number: each has every n-th request of it ([`super::plan::Plan::stride`]).
#[derive(Debug, Clone)]
pub(super) struct Pace {
    kind: ScheduleKind,
    mean_gap_ns: f64,
    /// The course of the rate: gaps are then counted in requests, and this maps a count to its due time.
    course: Option<Arc<Course>>,
    random: SplitMix64,
    stride: u64,
    number: u64,
    /// All gaps so far.
    sum: f64,
    time_ns: f64,
}

impl Pace {
    /// `rate_per_s` is used if there is no course.
    pub fn new(
        course: Option<Arc<Course>>,
        kind: ScheduleKind,
        rate_per_s: f64,
        seed: u64,
        first: u64,
        stride: u64,
    ) -> Self {
        let random = SplitMix64::new(seed, GAPS);
        let mean_gap_ns = if course.is_some() { 1.0 } else { NS_PER_S as f64 / rate_per_s };
        let mut pace = Self { kind, mean_gap_ns, course, random, stride, number: 0, sum: 0.0, time_ns: 0.0 };
        if kind == ScheduleKind::Poisson {
            pace.sum = exponential_gap_ns(&mut pace.random, mean_gap_ns);
        }
        pace.forward(first);
        pace
    }

    /// The number of the next request among those of all threads.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// When the next request is due, in nanoseconds of the step.
    pub fn due_ns(&self) -> i64 {
        self.time_ns as i64
    }

    pub fn advance(&mut self) {
        self.forward(self.stride);
    }

    fn forward(&mut self, count: u64) {
        self.number += count;
        self.sum = match self.kind {
            // From the number, not by adding up, so that the rate is exact for ever.
            ScheduleKind::Even | ScheduleKind::Burst => self.number as f64 * self.mean_gap_ns,
            ScheduleKind::Poisson => {
                (0..count).fold(self.sum, |sum, _| sum + exponential_gap_ns(&mut self.random, self.mean_gap_ns))
            }
        };
        self.time_ns = self.course.as_ref().map_or(self.sum, |course| course.time_ns(self.sum));
    }

    /// Advances to the first request that is due at `time_ns` or later; returns the number of earlier ones.
    pub fn skip_until(&mut self, time_ns: i64) -> u64 {
        let mut skipped = 0;
        while self.due_ns() < time_ns {
            self.advance();
            skipped += 1;
        }
        skipped
    }
}

/// Which request of a mix the one with this number is. A part is drawn by the seed, whatever the order within it.
pub(super) fn draw(drawing: Drawing, seed: u64, number: u64, mix: &Mix) -> usize {
    let mut random = SplitMix64::new(seed ^ DRAWS, number);
    let (begin, count) = mix.alone().map_or_else(|| mix.drawn(random.next_u64()), |count| (0, count));
    begin
        + match drawing {
            Drawing::Sequence => (number % count as u64) as usize,
            Drawing::Random => ((u128::from(random.next_u64()) * count as u128) >> 64) as usize,
        }
}

/// How long the clients of a thread, a number of its own among those of all generators, think.
#[derive(Debug, Clone)]
pub(super) struct Thinking {
    random: SplitMix64,
    mean_ns: f64,
}

impl Thinking {
    pub fn new(mean_ns: f64, seed: u64, thread: u64) -> Self {
        Self { random: SplitMix64::new(seed ^ THOUGHTS, thread), mean_ns }
    }

    pub fn next_ns(&mut self) -> i64 {
        exponential_gap_ns(&mut self.random, self.mean_ns) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::PartConfig;
    use super::*;

    fn times(kind: ScheduleKind, rate_per_s: f64, thread: u64, threads: u64, until_ns: i64) -> Vec<(u64, i64)> {
        let mut pace = Pace::new(None, kind, rate_per_s, 5, thread, threads);
        let mut times = Vec::new();
        while pace.due_ns() < until_ns {
            times.push((pace.number(), pace.due_ns()));
            pace.advance();
        }
        times
    }

    #[test]
    fn the_schedule_does_not_depend_on_the_number_of_threads() {
        for kind in [ScheduleKind::Even, ScheduleKind::Poisson] {
            let alone = times(kind, 997.0, 0, 1, 3 * NS_PER_S);
            let mut parts: Vec<_> = (0..3).flat_map(|thread| times(kind, 997.0, thread, 3, 3 * NS_PER_S)).collect();
            parts.sort_unstable();
            assert_eq!(parts, alone);
        }
    }

    #[test]
    fn low_and_high_rates_are_exact() {
        let halves = times(ScheduleKind::Even, 0.5, 0, 1, 10 * NS_PER_S);
        assert_eq!(halves, (0..5).map(|k| (k, k as i64 * 2 * NS_PER_S)).collect::<Vec<_>>());
        let fast = times(ScheduleKind::Even, 200_000.0, 0, 1, NS_PER_S);
        assert_eq!(fast.len(), 200_000);
        assert_eq!(fast[1].1, 5_000);
        // The standard deviation of the count is its root.
        let poisson = times(ScheduleKind::Poisson, 20_000.0, 0, 1, 10 * NS_PER_S);
        assert!((poisson.len() as f64 - 200_000.0).abs() < 4.0 * 200_000f64.sqrt(), "{}", poisson.len());
    }

    #[test]
    fn a_course_does_not_depend_on_the_number_of_threads_or_the_kind_of_schedule() {
        let points = [(1.0, 100.0), (3.0, 900.0), (3.0, 100.0)];
        let times = |kind, thread, threads| {
            let course = Course::new(&points, 0).map(Arc::new);
            let mut pace = Pace::new(course, kind, 1.0, 5, thread, threads);
            let mut times = Vec::new();
            while pace.due_ns() < 4 * NS_PER_S {
                times.push((pace.number(), pace.due_ns()));
                pace.advance();
            }
            times
        };
        for kind in [ScheduleKind::Even, ScheduleKind::Poisson] {
            let alone = times(kind, 0, 1);
            let mut parts: Vec<_> = (0..3).flat_map(|thread| times(kind, thread, 3)).collect();
            parts.sort_unstable();
            assert_eq!(parts, alone);
            for (begin, expected) in [(0, 100.0), (1, 300.0), (2, 700.0), (3, 100.0)] {
                let within = begin * NS_PER_S..(begin + 1) * NS_PER_S;
                let count = alone.iter().filter(|(_, due_ns)| within.contains(due_ns)).count() as f64;
                let noise = if kind == ScheduleKind::Poisson { 4.0 * f64::sqrt(expected) } else { 1.0 };
                assert!((count - expected).abs() <= noise, "{kind:?}: {count} in second {begin}");
            }
        }
    }

    #[test]
    fn skipping_counts_the_requests_due() {
        let mut pace = Pace::new(None, ScheduleKind::Even, 1000.0, 0, 0, 1);
        assert_eq!(pace.skip_until(NS_PER_S), 1000);
        assert_eq!(pace.due_ns(), NS_PER_S);
    }

    #[test]
    fn random_draws_are_uniform_and_reach_every_request() {
        let mut counts = [0u32; 7];
        let mix = Mix::new(&[], 7);
        for number in 0..70_000 {
            counts[draw(Drawing::Random, 3, number, &mix)] += 1;
        }
        // Chi-square with 6 degrees of freedom: 22.5 is its 99.9 % quantile.
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 22.5, "{counts:?}");
        assert_eq!(
            (0..4).map(|number| draw(Drawing::Sequence, 3, number, &Mix::new(&[], 3))).collect::<Vec<_>>(),
            [0, 1, 2, 0]
        );
    }

    #[test]
    fn parts_are_drawn_by_weight_and_reach_all_of_their_requests() {
        let part = |weight, requests| PartConfig { weight, requests };
        let mix = Mix::new(&[part(1.0, 2), part(6.0, 3), part(3.0, 1)], 6);
        for drawing in [Drawing::Random, Drawing::Sequence] {
            let mut counts = [0u32; 6];
            for number in 0..60_000 {
                counts[draw(drawing, 3, number, &mix)] += 1;
            }
            for (count, expected) in counts.into_iter().zip([3_000, 3_000, 12_000, 12_000, 12_000, 18_000]) {
                // Four standard deviations at most.
                assert!(count.abs_diff(expected) < 500, "{drawing:?}: {counts:?}");
            }
        }
    }
}
