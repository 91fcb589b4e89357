//! Inverse functions.

const STEPS_MAX: u32 = 200;
/// Of a tail's logarithm, after which the next step is smaller than rounding: Newton's error is squared.
const CLOSE: f64 = 1e-8;

/// The point, on a scale of logarithms, at which a tail's logarithm is `wanted`, by Newton's method.
///
/// The logarithm of a tail of a log-concave density is concave: from any start, Newton's method does not overshoot
/// after its first step.
///
/// Args: `at` returns the tail's logarithm and its slope at a positive value; `start` and the result are such values.
pub fn invert(start: f64, wanted: f64, at: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut value = start;
    for _ in 0..STEPS_MAX {
        let (ln_tail, slope) = at(value);
        let miss = ln_tail - wanted;
        value *= (-miss / slope).exp();
        if miss.abs() <= CLOSE {
            return value;
        }
    }
    f64::NAN
}

/// A quantile of the normal distribution to 5e-4, which is enough to start from; 0 < tail <= 1/2.
///
/// Source: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.2.23, here with its sign.
pub fn rough_normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = (0.010_328 * t + 0.802_853) * t + 2.515_517;
    let below = ((0.001_308 * t + 0.189_269) * t + 1.432_788) * t + 1.0;
    above / below - t
}
