//! When transactions are due: fixed before the load starts, a function of the seed and the configuration only.
//!
//! Due times of all connections of one load differ from each other, so that no two payloads of a load are equal.

use chainmark_random::SplitMix64;

use crate::clock::NS_PER_S;
use crate::error::LoadError;

/// Total transactions per second up to which distinct due times are certain.
const MAX_TOTAL_RATE: u64 = 1_000_000;
/// Records that one load keeps: about 1.5 GB.
pub const MAX_OFFERED: u64 = 20_000_000;

/// The shape of the load over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleKind {
    /// Equal gaps, also over all connections together.
    Even,
    /// Exponential gaps.
    Poisson,
    /// Once per second all transactions of that second at once, like the original load tool.
    Burst,
}

impl ScheduleKind {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "even" => Some(Self::Even),
            "poisson" => Some(Self::Poisson),
            "burst" => Some(Self::Burst),
            _ => None,
        }
    }
}

/// A schedule for a number of connections.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    pub kind: ScheduleKind,
    pub connections: u32,
    /// Transactions per second.
    pub rate_per_connection: u32,
    pub duration_ns: i64,
    pub seed: u64,
}

impl Schedule {
    /// # Errors
    /// No connection, no rate, no duration, or more than one load can hold.
    pub fn check(&self) -> Result<(), LoadError> {
        let refuse = |name, value: String, condition| Err(LoadError::Argument { name, value, condition });
        let total_rate = u64::from(self.connections) * u64::from(self.rate_per_connection);
        if self.connections == 0 {
            return refuse("the number of targets", "0".into(), "at least 1");
        }
        if self.rate_per_connection == 0 {
            return refuse("rate_per_connection", "0".into(), "at least 1");
        }
        if total_rate > MAX_TOTAL_RATE {
            return refuse("the rate over all connections", total_rate.to_string(), "at most 1000000 per second");
        }
        if self.duration_ns <= 0 {
            let duration_s = self.duration_ns as f64 / NS_PER_S as f64;
            return refuse("duration_s", duration_s.to_string(), "positive");
        }
        let offered = u128::from(total_rate) * self.duration_ns as u128 / NS_PER_S as u128;
        if offered > u128::from(MAX_OFFERED) {
            return Err(LoadError::TooManyTransactions { offered, limit: MAX_OFFERED });
        }
        Ok(())
    }

    /// The due times of one connection in nanoseconds after the start, strictly ascending and below the duration.
    pub fn due_ns(&self, connection: u32) -> Vec<i64> {
        match self.kind {
            ScheduleKind::Even => self.even(connection),
            ScheduleKind::Poisson => self.poisson(connection),
            ScheduleKind::Burst => self.burst(connection),
        }
    }

    /// `floor(rate × duration)`: what each connection of an even or burst schedule offers.
    fn count(&self) -> i64 {
        (i128::from(self.rate_per_connection) * i128::from(self.duration_ns) / i128::from(NS_PER_S)) as i64
    }

    /// The connections are used in turn, so that the gaps of all together are equal too.
    fn even(&self, connection: u32) -> Vec<i64> {
        let total_rate = i128::from(self.connections) * i128::from(self.rate_per_connection);
        let due = |index: i64| {
            let turn = i128::from(index) * i128::from(self.connections) + i128::from(connection);
            (turn * i128::from(NS_PER_S) / total_rate) as i64
        };
        (0..self.count()).map(due).collect()
    }

    /// Rounded to the connection's own residue class, which keeps the due times of different connections apart.
    fn poisson(&self, connection: u32) -> Vec<i64> {
        let mut random = SplitMix64::new(self.seed, u64::from(connection));
        let mean_gap_ns = NS_PER_S as f64 / f64::from(self.rate_per_connection);
        let (step_ns, phase_ns) = (i64::from(self.connections), i64::from(connection));
        let mut time_ns = 0.0;
        let mut due: Vec<i64> = Vec::with_capacity(self.count() as usize);
        loop {
            time_ns += exponential_gap_ns(&mut random, mean_gap_ns);
            let rounded_ns = time_ns as i64 / step_ns * step_ns + phase_ns;
            let next_ns = due.last().map_or(rounded_ns, |&last_ns| rounded_ns.max(last_ns + step_ns));
            if next_ns >= self.duration_ns {
                return due;
            }
            due.push(next_ns);
        }
    }

    /// The batch of a second is due at its start; single nanoseconds only distinguish its transactions.
    fn burst(&self, connection: u32) -> Vec<i64> {
        let rate = i64::from(self.rate_per_connection);
        let due = |index: i64| {
            let place_ns = index % rate * i64::from(self.connections) + i64::from(connection);
            index / rate * NS_PER_S + place_ns
        };
        (0..self.count()).map(due).collect()
    }
}

/// The gap to the next arrival of a Poisson process.
pub(crate) fn exponential_gap_ns(random: &mut SplitMix64, mean_gap_ns: f64) -> f64 {
    -random.next_unit().ln() * mean_gap_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn schedule(kind: ScheduleKind, connections: u32, rate_per_connection: u32, duration_ns: i64) -> Schedule {
        Schedule { kind, connections, rate_per_connection, duration_ns, seed: 11 }
    }

    #[test]
    fn connections_of_an_even_schedule_take_turns() {
        let load = schedule(ScheduleKind::Even, 4, 250, 2 * NS_PER_S);
        let mut all: Vec<i64> = (0..4).flat_map(|connection| load.due_ns(connection)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..2000).map(|index| index * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn every_kind_has_the_name_that_profiles_use() {
        let kinds = ["even", "poisson", "burst", "none"].map(ScheduleKind::from_name);
        let expected = [ScheduleKind::Even, ScheduleKind::Poisson, ScheduleKind::Burst].map(Some);
        assert_eq!(kinds[..3], expected);
        assert_eq!(kinds[3], None);
    }

    #[test]
    fn a_burst_schedule_starts_at_once_and_repeats_every_second() {
        let load = schedule(ScheduleKind::Burst, 2, 3, 2 * NS_PER_S + NS_PER_S / 3 + 1);
        assert_eq!(load.due_ns(0), [0, 2, 4, NS_PER_S, NS_PER_S + 2, NS_PER_S + 4, 2 * NS_PER_S]);
        assert_eq!(load.due_ns(1)[0], 1);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let due = schedule(ScheduleKind::Poisson, 1, 1000, 100 * NS_PER_S).due_ns(0);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 100 000 gaps: the standard error of the mean is 0.3 %, that of the coefficient of variation about the same.
        assert!((mean - 1.0).abs() < 0.015, "mean gap {mean} ms");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "coefficient of variation {}", variance.sqrt() / mean);
    }

    #[test]
    fn poisson_times_depend_on_the_seed_alone() {
        let load = schedule(ScheduleKind::Poisson, 2, 100, NS_PER_S);
        assert_eq!(load.due_ns(1), load.due_ns(1));
        assert_ne!(load.due_ns(1), Schedule { seed: 12, ..load }.due_ns(1));
    }

    #[test]
    fn poisson_times_of_each_connection_are_its_own_and_have_its_rate() {
        let due = schedule(ScheduleKind::Poisson, 5, 100, 100 * NS_PER_S).due_ns(2);
        assert!(due.iter().all(|due_ns| due_ns % 5 == 2));
        // The standard error of the number is 1 %.
        assert!((due.len() as f64 / 10_000.0 - 1.0).abs() < 0.04, "{} due times", due.len());
    }

    #[test]
    fn a_refused_duration_is_stated_in_seconds() {
        let refused = LoadError::Argument { name: "duration_s", value: "-1.5".into(), condition: "positive" };
        assert_eq!(schedule(ScheduleKind::Even, 1, 1, -1_500_000_000).check(), Err(refused));
    }

    #[test]
    fn unusable_loads_are_rejected() {
        for (connections, rate, duration_ns) in
            [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, -1), (2, 500_001, 1), (20, 50_000, 21 * NS_PER_S)]
        {
            assert!(schedule(ScheduleKind::Even, connections, rate, duration_ns).check().is_err());
        }
        assert_eq!(schedule(ScheduleKind::Even, 20, 50_000, 20 * NS_PER_S).check(), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn due_times_ascend_within_the_duration_and_never_coincide(
            connections in 1u32..6, rate in 1u32..3000, duration_ns in 1i64..3 * NS_PER_S, seed: u64,
        ) {
            for kind in [ScheduleKind::Even, ScheduleKind::Poisson, ScheduleKind::Burst] {
                let load = Schedule { kind, connections, rate_per_connection: rate, duration_ns, seed };
                let all: Vec<Vec<i64>> = (0..connections).map(|connection| load.due_ns(connection)).collect();
                for due in &all {
                    prop_assert!(due.windows(2).all(|pair| pair[0] < pair[1]));
                    prop_assert!(due.iter().all(|&due_ns| due_ns >= 0));
                    if kind != ScheduleKind::Burst {
                        prop_assert!(due.iter().all(|&due_ns| due_ns < duration_ns));
                    }
                    if kind != ScheduleKind::Poisson {
                        prop_assert_eq!(due.len() as i128, i128::from(rate) * i128::from(duration_ns) / 1_000_000_000);
                    }
                }
                let distinct: HashSet<i64> = all.iter().flatten().copied().collect();
                prop_assert_eq!(distinct.len(), all.iter().map(Vec::len).sum::<usize>());
            }
        }
    }
}
