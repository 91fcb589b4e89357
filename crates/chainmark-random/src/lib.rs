//! Random numbers by a fixed algorithm, so that a recorded seed gives the same load, delays and clusters with every
//! later release. Random crates may change theirs.

use std::f64::consts::TAU;

/// What SplitMix64's state grows by at every draw: 2⁶⁴ over the golden ratio, made odd.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator for one stream of one seed; streams of the same seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed) ^ mix(stream.wrapping_add(GAMMA)) }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Uniform in (0, 1]: never 0, so that its logarithm is finite.
    pub fn next_unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Normal values made from uniform ones by the method of Box and Muller (1958), which gives two at a time.
#[derive(Debug, Clone)]
pub struct Normal {
    uniform: SplitMix64,
    spare: Option<f64>,
}

impl Normal {
    /// Values of mean 0 and standard deviation 1 from a generator of their own.
    pub fn new(uniform: SplitMix64) -> Self {
        Self { uniform, spare: None }
    }

    /// The next value.
    pub fn next_value(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform.next_unit().ln()).sqrt();
        let (sine, cosine) = (TAU * self.uniform.next_unit()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    /// The generator of the uniform values, for draws in between.
    pub fn uniform(&mut self) -> &mut SplitMix64 {
        &mut self.uniform
    }
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_known_values() {
        let mut random = SplitMix64 { state: 1_234_567 };
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let firsts: std::collections::HashSet<u64> =
            (0..1000).map(|stream| SplitMix64::new(7, stream).next_u64()).collect();
        assert_eq!(firsts.len(), 1000);
    }

    #[test]
    fn normal_values_have_the_moments_and_the_tails_of_a_normal_distribution() {
        let mut random = Normal::new(SplitMix64::new(7, 3));
        let values: Vec<f64> = (0..200_000).map(|_| random.next_value()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        let beyond_two = values.iter().filter(|value| value.abs() > 2.0).count() as f64 / n;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.01, "{variance}");
        assert!((beyond_two - 0.0455).abs() < 0.002, "{beyond_two}");
    }
}
