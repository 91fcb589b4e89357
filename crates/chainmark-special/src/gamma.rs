//! The regularized incomplete gamma functions P(a, x) and Q(a, x), and their inverse.

use crate::density::{excess, ln_gamma_kernel};
use crate::fraction;
use crate::newton::{invert, rough_normal_quantile};
use crate::quadrature::area;
use crate::tails::Tails;

/// From here on the density is near enough to a normal one, and series and fraction need too many terms.
const SMOOTH_FROM: f64 = 1000.0;

/// P(a, x) and Q(a, x); a > 0, x >= 0.
pub fn tails(a: f64, x: f64) -> Tails {
    if !(a > 0.0 && x >= 0.0 && a.is_finite()) {
        return Tails::UNKNOWN;
    }
    if x == 0.0 {
        return Tails::NOTHING_BELOW;
    }
    if x.is_infinite() {
        return Tails::NOTHING_ABOVE;
    }
    let kernel = ln_gamma_kernel(a, x);
    if x < a {
        Tails::from_ln_lower(kernel + lower_over_kernel(a, x).ln())
    } else {
        Tails::from_ln_upper(kernel + upper_over_kernel(a, x).ln())
    }
}

/// P(a, x) over x^a e^-x / Γ(a), x < a.
fn lower_over_kernel(a: f64, x: f64) -> f64 {
    if a < SMOOTH_FROM {
        return series(a, x);
    }
    area((a - x - 1.0) / x, a.sqrt(), |s| (a - 1.0) * excess(-s / x)) / x
}

/// Q(a, x) over x^a e^-x / Γ(a), x >= a.
fn upper_over_kernel(a: f64, x: f64) -> f64 {
    if a < SMOOTH_FROM {
        return 1.0 / fraction_of(a, x);
    }
    area((x - a + 1.0) / x, a.sqrt(), |s| (a - 1.0) * excess(s / x)) / x
}

/// Source: NIST Digital Library of Mathematical Functions, 8.11.4.
fn series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (0.0, 1.0 / a, a);
    while term > f64::EPSILON / 8.0 * sum {
        sum += term;
        n += 1.0;
        term *= x / n;
    }
    sum
}

/// Source: NIST Digital Library of Mathematical Functions, 8.9.2, its even part.
fn fraction_of(a: f64, x: f64) -> f64 {
    fraction::evaluate(x + 1.0 - a, |k| (-k * (k - a), x + 2.0 * k + 1.0 - a))
}

/// The x at which P(a, x) is `lower` and Q(a, x) is `upper`: each is 1 minus the other, with full precision where it is
/// small.
pub fn quantile(a: f64, lower: f64, upper: f64) -> f64 {
    if !(a > 0.0 && lower >= 0.0 && upper >= 0.0 && a.is_finite()) {
        return f64::NAN;
    }
    if lower == 0.0 || upper == 0.0 {
        return if lower == 0.0 { 0.0 } else { f64::INFINITY };
    }
    if lower <= upper {
        return invert(start(a, rough_normal_quantile(lower)), lower.ln(), |x| {
            let ln_tail = tails(a, x).ln_lower();
            (ln_tail, (ln_gamma_kernel(a, x) - ln_tail).exp())
        });
    }
    invert(start(a, -rough_normal_quantile(upper)), upper.ln(), |x| {
        let ln_tail = tails(a, x).ln_upper();
        (ln_tail, -(ln_gamma_kernel(a, x) - ln_tail).exp())
    })
}

/// Source: Wilson and Hilferty, "The distribution of chi-square" (1931); a log-normal one where that is below 0.
fn start(a: f64, z: f64) -> f64 {
    let root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * a.sqrt());
    if root > 0.1 { a * root * root * root } else { a * (z / a.sqrt()).exp() }
}
