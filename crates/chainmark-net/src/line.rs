//! One direction between two ports: when a packet that enters now comes out.

use chainmark_random::{Normal, SplitMix64};

use crate::error::NetError;

const NS_PER_S: f64 = 1e9;
const BITS_PER_BYTE: f64 = 8.0;
/// The maximum delay: an hour. A longer one is a mistake in units.
const DELAY_MAX_NS: u64 = 3_600_000_000_000;

/// What a line does to packets.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LineSettings {
    /// One-way delay in nanoseconds.
    pub delay_ns: u64,
    /// Standard deviation of the delay as a share of it; a delay is never below 0.
    pub jitter_share: f64,
    /// Probability that a packet is lost, from 0 to 1.
    pub loss: f64,
    /// Bits per second; None for as fast as the machine.
    pub bandwidth_bps: Option<u64>,
}

impl LineSettings {
    /// Check the figures.
    ///
    /// # Errors
    /// [`NetError::Argument`] names the invalid one.
    pub fn check(&self) -> Result<(), NetError> {
        let refused = |name, value: String, condition| Err(NetError::Argument { name, value, condition });
        if self.delay_ns > DELAY_MAX_NS {
            return refused("delay_ns", self.delay_ns.to_string(), "at most an hour");
        }
        if !(0.0..=1.0).contains(&self.jitter_share) {
            return refused("jitter_share", self.jitter_share.to_string(), "from 0 to 1");
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return refused("loss", self.loss.to_string(), "from 0 to 1");
        }
        if self.bandwidth_bps == Some(0) {
            return refused("bandwidth_bps", "0".to_owned(), "at least 1");
        }
        Ok(())
    }

    /// Whether a packet is delivered when it enters.
    pub fn is_direct(&self) -> bool {
        self.delay_ns == 0 && self.loss == 0.0 && self.bandwidth_bps.is_none()
    }
}

/// The state of one line: its settings, its random numbers and when the last packet leaves it.
#[derive(Debug, Clone)]
pub struct Line {
    settings: LineSettings,
    random: Normal,
    last_due_ns: u64,
}

impl Line {
    /// `stream` distinguishes the lines of one seed.
    pub fn new(settings: LineSettings, seed: u64, stream: u64) -> Self {
        Self { settings, random: Normal::new(SplitMix64::new(seed, stream)), last_due_ns: 0 }
    }

    /// When a packet of `bytes` that enters at `now_ns` leaves, or None if it is lost.
    ///
    /// A packet leaves no earlier than the previous one plus its own time on the wire, so none overtakes another, and
    /// the line never carries more than its bandwidth. Without a bandwidth the time on the wire is 0.
    pub fn enter(&mut self, now_ns: u64, bytes: usize) -> Option<u64> {
        if self.settings.loss > 0.0 && self.random.uniform().next_unit() <= self.settings.loss {
            return None;
        }
        let arrival_ns = now_ns + self.delay_ns();
        let due_ns = arrival_ns.max(self.last_due_ns) + self.wire_ns(bytes);
        self.last_due_ns = due_ns;
        Some(due_ns)
    }

    /// Forget the packets that were on the line: it is free from now on.
    pub fn clear(&mut self) {
        self.last_due_ns = 0;
    }

    /// The delay of one packet: normal around the intended one, at least 0.
    fn delay_ns(&mut self) -> u64 {
        let LineSettings { delay_ns, jitter_share, .. } = self.settings;
        if jitter_share == 0.0 {
            return delay_ns;
        }
        // A float below 0 becomes 0.
        (delay_ns as f64 * (1.0 + jitter_share * self.random.next_value())) as u64
    }

    /// The transmission time of a packet, in whole nanoseconds, rounded up.
    fn wire_ns(&self, bytes: usize) -> u64 {
        let Some(bandwidth_bps) = self.settings.bandwidth_bps else { return 0 };
        (bytes as f64 * BITS_PER_BYTE * NS_PER_S / bandwidth_bps as f64).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn line(settings: LineSettings) -> Line {
        Line::new(settings, 1, 0)
    }

    #[test]
    fn delays_have_the_intended_mean_and_spread_when_packets_are_far_apart() {
        let mut line = line(LineSettings { delay_ns: 50 * MS, jitter_share: 0.05, ..LineSettings::default() });
        let delays: Vec<f64> = (1..20_000u64)
            .map(|step| (line.enter(step * 1000 * MS, 100).unwrap() - step * 1000 * MS) as f64 / MS as f64)
            .collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / delays.len() as f64;
        assert!((mean - 50.0).abs() < 0.1, "{mean}");
        assert!((variance.sqrt() - 2.5).abs() < 0.1, "{variance}");
    }

    #[test]
    fn loss_drops_its_share_and_certain_loss_drops_everything() {
        let mut some = line(LineSettings { loss: 0.1, ..LineSettings::default() });
        let lost = (0..100_000).filter(|_| some.enter(0, 100).is_none()).count();
        assert!((9_500..10_500).contains(&lost), "{lost}");
        let mut all = line(LineSettings { loss: 1.0, ..LineSettings::default() });
        assert!((0..1000).all(|_| all.enter(0, 100).is_none()));
    }

    #[test]
    fn a_megabit_line_carries_a_megabit_per_second() {
        let mut line = line(LineSettings { delay_ns: MS, bandwidth_bps: Some(1_000_000), ..LineSettings::default() });
        let last = (0..100).map(|_| line.enter(0, 1250).unwrap()).last().unwrap();
        assert_eq!(last, MS + 1000 * MS);
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        let sane = LineSettings::default();
        for (settings, name) in [
            (LineSettings { delay_ns: u64::MAX, ..sane }, "delay_ns"),
            (LineSettings { jitter_share: f64::NAN, ..sane }, "jitter_share"),
            (LineSettings { loss: 1.5, ..sane }, "loss"),
            (LineSettings { bandwidth_bps: Some(0), ..sane }, "bandwidth_bps"),
        ] {
            assert!(settings.check().unwrap_err().to_string().starts_with(name));
        }
    }

    #[test]
    fn an_hour_is_the_longest_delay_and_shares_may_be_up_to_1() {
        let ends = LineSettings { delay_ns: DELAY_MAX_NS, jitter_share: 1.0, loss: 1.0, bandwidth_bps: Some(1) };
        assert!(ends.check().is_ok());
        assert!(LineSettings { delay_ns: DELAY_MAX_NS + 1, ..ends }.check().is_err());
    }

    #[test]
    fn a_line_that_was_cut_and_restored_is_idle() {
        let mut line = line(LineSettings { bandwidth_bps: Some(1_000_000), ..LineSettings::default() });
        let busy_ns = line.enter(0, 125_000).unwrap();
        assert_eq!(busy_ns, 1000 * MS);
        line.clear();
        assert_eq!(line.enter(MS, 1250), Some(11 * MS));
    }

    #[test]
    fn every_delay_uses_the_next_random_number_of_its_seed_if_there_is_no_loss() {
        // So that a run can be made again: a seed's high draws are long delays, its low ones short.
        let mut line = line(LineSettings { delay_ns: 50 * MS, jitter_share: 0.05, ..LineSettings::default() });
        let mut random = Normal::new(SplitMix64::new(1, 0));
        for step in 1..50 {
            let delay_ns = line.enter(step * 1000 * MS, 100).unwrap() - step * 1000 * MS;
            assert_eq!(delay_ns > 50 * MS, random.next_value() > 0.0);
        }
    }

    proptest! {
        #[test]
        fn no_packet_overtakes_another_leaves_early_or_exceeds_the_bandwidth(
            delay_ns in 0..200 * MS, jitter_share in 0.0..1.0f64,
            bandwidth_bps in proptest::option::of(1_000u64..1 << 40),
            packets in proptest::collection::vec((0..10 * MS, 20usize..1500), 1..200), seed in any::<u64>(),
        ) {
            let settings = LineSettings { delay_ns, jitter_share, loss: 0.0, bandwidth_bps };
            let mut line = Line::new(settings, seed, 0);
            let (mut now_ns, mut previous_ns) = (0, 0);
            for (gap_ns, bytes) in packets {
                now_ns += gap_ns;
                let due_ns = line.enter(now_ns, bytes).unwrap();
                let wire_ns = bandwidth_bps.map_or(0.0, |bps| bytes as f64 * 8e9 / bps as f64);
                prop_assert!(due_ns >= now_ns);
                prop_assert!((due_ns - previous_ns) as f64 >= wire_ns - 1e-3);
                if jitter_share == 0.0 {
                    prop_assert!(due_ns >= now_ns + delay_ns);
                }
                previous_ns = due_ns;
            }
        }

        #[test]
        fn without_jitter_and_limit_every_packet_takes_exactly_the_delay(
            delay_ns in 0..200 * MS, gaps in proptest::collection::vec(0..10 * MS, 1..100),
        ) {
            let mut line = line(LineSettings { delay_ns, ..LineSettings::default() });
            let mut now_ns = 0;
            for gap_ns in gaps {
                now_ns += gap_ns;
                prop_assert_eq!(line.enter(now_ns, 100), Some(now_ns + delay_ns));
            }
        }
    }
}
