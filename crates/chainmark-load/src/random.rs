//! A small generator with a fixed algorithm, so that a recorded seed gives the same load with every later release.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator for one stream of one seed; streams of the same seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed) ^ mix(stream.wrapping_add(0x9e37_79b9_7f4a_7c15)) }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in (0, 1]: never 0, so that its logarithm is finite.
    pub fn next_unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
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
    fn known_values_so_that_a_recorded_seed_gives_the_same_load_for_ever() {
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
}
