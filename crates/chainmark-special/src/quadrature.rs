//! Tails of nearly normal densities: the area beyond a point, at a cost that does not grow with the parameters.

/// Positive nodes and their weights of the Gauss-Legendre rule of 12 points on (-1, 1).
const NODES: [(f64, f64); 6] = [
    (0.1252334085114689, 0.24914704581340277),
    (0.3678314989981802, 0.2334925365383548),
    (0.5873179542866175, 0.20316742672306592),
    (0.7699026741943047, 0.16007832854334622),
    (0.9041172563704749, 0.10693932599531843),
    (0.9815606342467192, 0.04717533638651183),
];
/// In lengths over which the integrand falls by 1/e or its exponent bends by 1/2: 12 points make no error in a panel.
const PANEL: f64 = 2.0;
const NEGLIGIBLE: f64 = 1e-18;
const PANELS_MAX: i32 = 1000;

/// The integral of exp(-decay s - bend(s)) over s > 0.
///
/// Args: `deviation` is the standard deviation of the density; `bend` is convex, 0 with its slope at 0.
pub fn area(decay: f64, deviation: f64, bend: impl Fn(f64) -> f64) -> f64 {
    let half = 0.5 * PANEL / (1.0 / deviation + decay.max(0.0));
    let value = |s: f64| (-decay * s - bend(s)).exp();
    let mut sum = 0.0;
    for panel in 0..PANELS_MAX {
        let middle = f64::from(2 * panel + 1) * half;
        let part: f64 = NODES
            .iter()
            .map(|(node, weight)| weight * (value(middle - half * node) + value(middle + half * node)))
            .sum();
        sum += part;
        if part < NEGLIGIBLE * sum {
            break;
        }
    }
    half * sum
}
