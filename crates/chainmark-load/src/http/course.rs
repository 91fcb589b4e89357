//! A load that changes while it runs: its level at every time, and when how much of it is due.

use crate::clock::NS_PER_S;

/// Linear between its points, constant before the first and after the last one. Two points at one time are a jump.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    /// Nanoseconds of the step, and the level there.
    points: Vec<(f64, f64)>,
    /// Of a rate: how many requests are due up to each point.
    due: Vec<f64>,
}

impl Course {
    /// `points`: seconds after the warm-up, in order, and the level there; None without any.
    pub fn new(points: &[(f64, f64)], warm_up_ns: i64) -> Option<Self> {
        let &(_, first) = points.first()?;
        let of_step = |&(time_s, level): &(f64, f64)| (warm_up_ns as f64 + time_s * NS_PER_S as f64, level);
        let points: Vec<_> = std::iter::once((0.0, first)).chain(points.iter().map(of_step)).collect();
        let mut sum = 0.0;
        let between = points.windows(2).map(|pair| {
            sum += (pair[1].0 - pair[0].0) / NS_PER_S as f64 * f64::midpoint(pair[0].1, pair[1].1);
            sum
        });
        let due = std::iter::once(0.0).chain(between).collect();
        Some(Self { points, due })
    }

    /// The level at a time of the step; after a jump at that time.
    pub fn at(&self, time_ns: i64) -> f64 {
        let time_ns = time_ns as f64;
        let after = self.points.partition_point(|&(begin_ns, _)| begin_ns <= time_ns);
        let (begin_ns, level) = self.points[after.saturating_sub(1)];
        match self.points.get(after) {
            Some(&(end_ns, next)) => level + (next - level) * (time_ns - begin_ns).max(0.0) / (end_ns - begin_ns),
            None => level,
        }
    }

    /// The time at which this number of requests of a rate is due, in nanoseconds of the step.
    pub fn time_ns(&self, due: f64) -> f64 {
        let after = self.due.partition_point(|&before| before <= due).max(1);
        let (begin_ns, rate_per_s) = self.points[after - 1];
        let slope = match self.points.get(after) {
            Some(&(end_ns, next)) => (next - rate_per_s) / (end_ns - begin_ns) * NS_PER_S as f64,
            None => 0.0,
        };
        // The root of rate × t + slope × t² / 2 = left that has no difference of nearly equal numbers.
        let left = due - self.due[after - 1];
        let root = (rate_per_s * rate_per_s + 2.0 * slope * left).max(0.0).sqrt();
        begin_ns + 2.0 * left / (rate_per_s + root) * NS_PER_S as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = NS_PER_S as f64;

    fn course(points: &[(f64, f64)]) -> Course {
        Course::new(points, NS_PER_S).unwrap()
    }

    #[test]
    fn levels_are_linear_between_points_and_jump_where_two_share_a_time() {
        let spike = course(&[(2.0, 10.0), (2.0, 50.0), (4.0, 50.0), (6.0, 10.0)]);
        // The warm-up of a second comes before.
        let levels = [0.0, 2.9, 3.0, 5.0, 6.0, 7.0, 99.0].map(|time_s| spike.at((time_s * SECOND) as i64));
        assert_eq!(levels, [10.0, 10.0, 50.0, 50.0, 30.0, 10.0, 10.0]);
        assert_eq!(Course::new(&[], 0), None);
    }

    #[test]
    fn the_number_of_requests_due_in_a_ramp_is_its_area() {
        // 0 to 100 requests per second within 10 s, after a second at nothing: n are due at the root of n / 5.
        let ramp = course(&[(0.0, 1e-9), (10.0, 100.0)]);
        for due in [5.0, 20.0, 125.0, 499.0] {
            let expected_s = 1.0 + f64::sqrt(due / 5.0);
            assert!((ramp.time_ns(due) / SECOND - expected_s).abs() < 1e-6, "{due}");
        }
        // From then on a hundred per second.
        assert!((ramp.time_ns(700.0) / SECOND - 13.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_due_out_of_order_at_jumps_and_falls() {
        let spike = course(&[(1.0, 20.0), (1.0, 200.0), (2.0, 200.0), (2.0, 20.0), (3.0, 20.0), (5.0, 1.0)]);
        let times: Vec<f64> = (0..400).map(|due| spike.time_ns(f64::from(due))).collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        let within = |begin: f64, end: f64| times.iter().filter(|&&ns| (begin..end).contains(&(ns / SECOND))).count();
        assert_eq!((within(0.0, 2.0), within(2.0, 3.0), within(3.0, 4.0), within(4.0, 6.0)), (40, 200, 20, 21));
    }
}
