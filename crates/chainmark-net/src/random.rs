//! Random numbers with a fixed algorithm, so that a recorded seed gives the same delays with every later release.

use std::f64::consts::TAU;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), and normal values made
/// from it by the method of Box and Muller (1958).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
    spare: Option<f64>,
}

impl Random {
    /// A generator for one stream of one seed; streams of the same seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed) ^ mix(stream.wrapping_add(0x9e37_79b9_7f4a_7c15)), spare: None }
    }

    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in (0, 1]: never 0, so that its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.unit().ln()).sqrt();
        let (sine, cosine) = (TAU * self.unit()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_so_that_a_recorded_seed_gives_the_same_delays_for_ever() {
        let mut random = Random { state: 1_234_567, spare: None };
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn normal_values_have_the_moments_and_the_tails_of_a_normal_distribution() {
        let mut random = Random::new(7, 3);
        let values: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        let beyond_two = values.iter().filter(|value| value.abs() > 2.0).count() as f64 / n;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.01, "{variance}");
        assert!((beyond_two - 0.0455).abs() < 0.002, "{beyond_two}");
    }
}
