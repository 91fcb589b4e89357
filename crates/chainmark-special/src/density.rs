//! The parts of a density's logarithm, without cancellation.

use std::f64::consts::TAU;

const TERMS: i32 = 20;
const ASYMPTOTIC_FROM: f64 = 10.0;
/// Of Stirling's series in 1/a, 1/a³, …: B₂ₖ / (2k (2k - 1)).
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
    -3617.0 / 122_400.0,
];

/// u - ln(1 + u), u > -1.
///
/// With r = u / (2 + u), ln(1 + u) is 2 artanh(r), whose first term is computed from u exactly: r u.
pub fn excess(u: f64) -> f64 {
    if u.abs() > 0.5 {
        return u - u.ln_1p();
    }
    let r = u / (2.0 + u);
    let square = r * r;
    let series = (0..TERMS).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 3));
    r * (u - 2.0 * square * series)
}

/// What Stirling's formula lacks: ln Γ(a) - (a - 1/2) ln a + a - ln(2π)/2, a > 0.
///
/// Source: NIST Digital Library of Mathematical Functions, 5.11.1, and the recurrence of Γ below 10.
pub fn stirling_error(a: f64) -> f64 {
    let (mut a, mut error) = (a, 0.0);
    while a < ASYMPTOTIC_FROM {
        error += (a + 0.5) * (1.0 / a).ln_1p() - 1.0;
        a += 1.0;
    }
    let square = 1.0 / (a * a);
    error + STIRLING.iter().rev().fold(0.0, |sum, term| sum * square + term) / a
}

/// ln of share^count × (what it must be to be likeliest): -count × excess, from the share's deviation.
///
/// `deviation` is (share / likeliest share - 1) × count; `share_over_likeliest` is used where it is far from 1.
fn misfit(count: f64, deviation: f64, share_over_likeliest: f64) -> f64 {
    let u = deviation / count;
    if u.abs() > 0.5 { deviation - count * share_over_likeliest.ln() } else { count * excess(u) }
}

/// (a + b) x - a: the distance of x above the mean, from the smaller one of x and y = 1 - x, as that is exact.
pub fn beta_deviation(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let sum = a + b;
    let lost = if a >= b { b - (sum - a) } else { a - (sum - b) };
    if x <= 0.5 { x.mul_add(sum, -a) + x * lost } else { -(y.mul_add(sum, -b) + y * lost) }
}

/// ln of x^a y^b / B(a, b), y = 1 - x, 0 < x < 1.
///
/// Source: Loader (2000), with the deviations of DiDonato and Morris, "Significant digit computation of the incomplete
/// beta function ratios" (1992), equation 5.
pub fn ln_beta_kernel(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let deviation = beta_deviation(a, b, x, y);
    let sum = a + b;
    let misfits = misfit(a, deviation, x * (sum / a)) + misfit(b, -deviation, y * (sum / b));
    0.5 * (a / sum * b / TAU).ln() + (stirling_error(sum) - stirling_error(a) - stirling_error(b)) - misfits
}

/// ln of x^a e^-x / Γ(a), x > 0.
///
/// Source: Loader (2000).
pub fn ln_gamma_kernel(a: f64, x: f64) -> f64 {
    0.5 * (a / TAU).ln() - stirling_error(a) - misfit(a, x - a, x / a)
}
