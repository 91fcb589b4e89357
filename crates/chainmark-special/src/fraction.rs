//! Continued fractions by the modified Lentz method.
//!
//! Source: Lentz, "Generating Bessel functions in Mie scattering calculations using continued fractions" (1976), as
//! modified by Thompson and Barnett, "Coulomb and Bessel functions of complex arguments and order" (1986).

const TERMS_MAX: u32 = 1_000_000;
const PRECISION: f64 = 1e-16;
const TINY: f64 = 1e-300;

fn nonzero(value: f64) -> f64 {
    if value.abs() < TINY { TINY } else { value }
}

/// first + n₁ / (d₁ + n₂ / (d₂ + …)), of which `term(k)` gives (nₖ, dₖ); NaN if it does not converge.
pub fn evaluate(first: f64, term: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut value = nonzero(first);
    let (mut above, mut below) = (value, 0.0);
    for k in 1..=TERMS_MAX {
        let (numerator, denominator) = term(f64::from(k));
        below = 1.0 / nonzero(denominator + numerator * below);
        above = nonzero(denominator + numerator / above);
        let factor = above * below;
        value *= factor;
        if (factor - 1.0).abs() <= PRECISION {
            return value;
        }
    }
    f64::NAN
}
