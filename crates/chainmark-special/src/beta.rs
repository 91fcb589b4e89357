//! The regularized incomplete beta function I_x(a, b) and its inverse.

use crate::density::{beta_deviation, excess, ln_beta_kernel};
use crate::fraction;
use crate::newton::{invert, rough_normal_quantile};
use crate::quadrature::area;
use crate::tails::Tails;

/// From here on the density is near enough to a normal one, and the fraction needs too many terms.
const SMOOTH_FROM: f64 = 1000.0;

/// I_x(a, b) and its complement; a > 0, b > 0, and y is 1 - x, with full precision where it is small.
pub fn tails(a: f64, b: f64, x: f64, y: f64) -> Tails {
    if !(a > 0.0 && b > 0.0 && x >= 0.0 && y >= 0.0 && (a + b).is_finite()) {
        return Tails::UNKNOWN;
    }
    if x == 0.0 {
        return Tails::NOTHING_BELOW;
    }
    if y == 0.0 {
        return Tails::NOTHING_ABOVE;
    }
    let kernel = ln_beta_kernel(a, b, x, y);
    if (a + 1.0) * y > (b + 1.0) * x {
        Tails::from_ln_lower(kernel + lower_over_kernel(a, b, x, y).ln())
    } else {
        Tails::from_ln_upper(kernel + lower_over_kernel(b, a, y, x).ln())
    }
}

/// The lower tail over x^a y^b / B(a, b), for an x not far above the mean.
fn lower_over_kernel(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if a.min(b) < SMOOTH_FROM {
        return 1.0 / fraction_of(a, b, x, y);
    }
    let decay = (x - y - beta_deviation(a, b, x, y)) / (x * y);
    let deviation = (a / (a + b) * (b / (a + b)) / (a + b)).sqrt();
    area(decay, deviation, |s| (a - 1.0) * excess(-s / x) + (b - 1.0) * excess(s / y)) / (x * y)
}

/// Source: DiDonato and Morris, "Significant digit computation of the incomplete beta function ratios" (1992),
/// section 4: the even part of the usual fraction, whose terms do not cancel each other where b is much larger than a.
fn fraction_of(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let below_mean = -beta_deviation(a, b, x, y);
    let denominator = |m: f64| {
        let first = if m > 0.0 { m + m * (b - m) * x / (a + 2.0 * m - 1.0) } else { 0.0 };
        first + (a + m) / (a + 2.0 * m + 1.0) * (below_mean + 1.0 + m * (1.0 + y))
    };
    fraction::evaluate(denominator(0.0), |m| {
        let root = x / (a + 2.0 * m - 1.0);
        ((a + m - 1.0) * root * ((a + b + m - 1.0) * root) * m * (b - m), denominator(m))
    })
}

/// The x at which I_x(a, b) is `lower`, and 1 - x; `upper` is 1 - lower, with full precision where it is small.
pub fn quantile(a: f64, b: f64, lower: f64, upper: f64) -> (f64, f64) {
    if !(a > 0.0 && b > 0.0 && lower >= 0.0 && upper >= 0.0 && (a + b).is_finite()) {
        return (f64::NAN, f64::NAN);
    }
    if lower > upper {
        let (y, x) = quantile(b, a, upper, lower);
        return (x, y);
    }
    if lower == 0.0 {
        return (0.0, 1.0);
    }
    let start = a / b * (rough_normal_quantile(lower) * (1.0 / a + 1.0 / b).sqrt()).exp();
    let odds = invert(start, lower.ln(), |odds| {
        let (x, y) = shares(odds);
        let ln_tail = tails(a, b, x, y).ln_lower();
        (ln_tail, (ln_beta_kernel(a, b, x, y) - ln_tail).exp())
    });
    shares(odds)
}

fn shares(odds: f64) -> (f64, f64) {
    (odds / (1.0 + odds), 1.0 / (1.0 + odds))
}
