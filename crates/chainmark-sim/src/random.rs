//! Random numbers without state: every draw is a function of (seed, block or slot, host, purpose).
//!
//! So a what-if keeps the draws of the base case, a new feature does not shift the old draws, and any number of threads
//! gives the same result.

use std::sync::OnceLock;

use chainmark_random::{GAMMA, mix};

/// The purpose of a draw. Repeated draws of one purpose at one host are distinguished by `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Purpose {
    Leader = 1,
    Vrf,
    Hash,
    Interval,
    Shuffle,
    FastBlock,
    SlowBlock,
    SlowForging,
    SlowAdoption,
    Straggler,
    StragglerLength,
    Forging,
    SelfAdoption,
    HeaderService,
    Request,
    ServerService,
    BodyService,
    Announcement,
    Adoption,
    LinkSpread,
    Graph,
    BlockSize,
    Fault,
    Clock,
    Resources,
    Ledger,
    Transactions,
    Noise,
}

/// Draws of one seed that belong to one block or slot.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// The draws of one seed and one block or slot.
    pub fn new(seed: u64, of: u64) -> Self {
        Self { key: mix(mix(seed ^ 0x6a09_e667_f3bc_c908) ^ of.wrapping_mul(GAMMA)) }
    }

    /// 64 random bits for one host and purpose; `index` counts draws of the same purpose.
    #[inline]
    pub fn bits(self, host: u32, purpose: Purpose, index: u32) -> u64 {
        let place = (u64::from(host) << 32) | u64::from(index);
        let salted = self.key ^ (purpose as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mix(mix(salted ^ place.wrapping_mul(0xa076_1d64_78bd_642f)).wrapping_add(salted))
    }

    /// Uniform in (0, 1).
    #[inline]
    pub fn unit(self, host: u32, purpose: Purpose, index: u32) -> f64 {
        unit_of(self.bits(host, purpose, index))
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(self, host: u32, purpose: Purpose, index: u32, p: f64) -> bool {
        p > 0.0 && self.unit(host, purpose, index) < p
    }

    /// Exponential with that mean.
    #[inline]
    pub fn exponential(self, host: u32, purpose: Purpose, index: u32, mean: f64) -> f64 {
        -mean * self.unit(host, purpose, index).ln()
    }

    /// Uniform among 0 … n − 1.
    #[inline]
    pub fn below(self, host: u32, purpose: Purpose, index: u32, n: u64) -> u64 {
        ((u128::from(self.bits(host, purpose, index)) * u128::from(n)) >> 64) as u64
    }
}

/// Uniform in (0, 1): never 0, so that its logarithm is finite, and never 1.
#[inline]
pub fn unit_of(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

const CELLS: usize = 4096;

/// Log-normal factors of mean 1 and a given coefficient of variation, drawn by inversion.
///
/// Between the quantiles of a table the factor is interpolated; in the outermost cells it is computed, so the tails
/// are those of the distribution.
#[derive(Debug, Clone)]
pub struct LogNormal {
    mu: f64,
    sigma: f64,
    quantiles: Vec<f64>,
}

impl LogNormal {
    /// Factors with coefficient of variation `cv` ≥ 0.
    pub fn new(cv: f64) -> Self {
        let variance = (1.0 + cv * cv).ln();
        let (mu, sigma) = (-variance / 2.0, variance.sqrt());
        let quantile = |z: &f64| (mu + sigma * z).exp();
        Self { mu, sigma, quantiles: normal_quantiles().iter().map(quantile).collect() }
    }

    /// The factor at 64 random bits.
    #[inline]
    pub fn factor(&self, bits: u64) -> f64 {
        let cell = (bits >> 52) as usize;
        if cell == 0 || cell == CELLS - 1 {
            return (self.mu + self.sigma * normal_quantile(unit_of(bits))).exp();
        }
        let within = (bits << 12 >> 12) as f64 / (1u64 << 52) as f64;
        let low = self.quantiles[cell];
        low + (self.quantiles[cell + 1] - low) * within
    }
}

fn normal_quantiles() -> &'static [f64] {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // The two outer borders are never read: those cells are computed.
        (0..=CELLS).map(|i| normal_quantile((i as f64 / CELLS as f64).clamp(1e-9, 1.0 - 1e-9))).collect()
    })
}

/// The standard normal quantile, |error| < 1.2e-9 (P. J. Acklam's rational approximation).
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |q: f64| horner(&C, q) / (horner(&D, q) * q + 1.0);
    if p < 0.02425 {
        tail((-2.0 * p.ln()).sqrt())
    } else if p > 1.0 - 0.02425 {
        -tail((-2.0 * (1.0 - p).ln()).sqrt())
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_only_on_their_key() {
        let draws = Draws::new(7, 42);
        assert_eq!(draws.bits(3, Purpose::Request, 0), Draws::new(7, 42).bits(3, Purpose::Request, 0));
        let mut seen = std::collections::HashSet::new();
        for of in 0..20 {
            for host in 0..20 {
                for index in 0..5 {
                    for purpose in [Purpose::Request, Purpose::Adoption] {
                        assert!(seen.insert(Draws::new(7, of).bits(host, purpose, index)));
                    }
                }
            }
        }
    }

    #[test]
    fn log_normal_factors_have_mean_one_and_their_coefficient_of_variation() {
        for cv in [0.1, 0.6, 0.7] {
            let (distribution, n) = (LogNormal::new(cv), 400_000);
            let factors: Vec<f64> =
                (0..n).map(|i| distribution.factor(Draws::new(1, i).bits(0, Purpose::BodyService, 0))).collect();
            let mean = factors.iter().sum::<f64>() / n as f64;
            let variance = factors.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            assert!((mean - 1.0).abs() < 5.0 * cv / (n as f64).sqrt(), "cv {cv}: mean {mean}");
            assert!((variance.sqrt() / cv - 1.0).abs() < 0.02, "cv {cv}: {}", variance.sqrt());
        }
    }

    #[test]
    fn the_normal_quantile_has_known_values() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.001, -3.090_232_306), (1e-9, -5.997_807_015)] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
        }
    }
}
