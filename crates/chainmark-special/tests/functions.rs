//! Against closed forms, and inverses against what they invert. The Python package's tests hold them against scipy.

use chainmark_special::{beta, density, gamma};

const SHAPES: [f64; 8] = [0.5, 1.0, 2.5, 30.0, 999.0, 1001.0, 1e6, 1e9];
const TAILS: [f64; 7] = [1e-100, 1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999];

#[track_caller]
fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-13 * expected.abs(), "{actual:e} is not {expected:e}");
}

#[test]
fn shapes_of_one_have_closed_forms() {
    for x in [1e-12, 0.01, 0.4, 0.7, 0.999] {
        let y = 1.0 - x;
        assert_near(beta::tails(3.0, 1.0, x, y).lower(), x * x * x);
        assert_near(beta::tails(1.0, 3.0, x, y).upper(), y * y * y);
        assert_near(beta::tails(0.5, 0.5, x, y).lower(), x.sqrt().asin() * 2.0 / std::f64::consts::PI);
        assert_near(gamma::tails(1.0, x).lower(), -(-x).exp_m1());
    }
    for x in [1e-3, 2.0, 40.0, 700.0] {
        assert_near(gamma::tails(1.0, x).upper(), (-x).exp());
        assert_near(gamma::tails(2.0, x).upper(), (1.0 + x) * (-x).exp());
    }
}

#[test]
fn the_functions_are_continuous_where_the_method_changes() {
    for z in [-5.0f64, -1.0, 0.0, 1.0, 5.0] {
        let x = 1000.0 + z * 1000.0f64.sqrt();
        // Q(a + 1, x) = Q(a, x) + x^a e^-x / Γ(a + 1); 999.5 is summed, 1000.5 integrated.
        let (a, step) = (999.5, (density::ln_gamma_kernel(999.5, x)).exp() / 999.5);
        assert_near(gamma::tails(a + 1.0, x).upper(), gamma::tails(a, x).upper() + step);
    }
}

#[test]
fn a_quantile_has_the_given_tail() {
    for a in SHAPES {
        for tail in TAILS {
            let x = gamma::quantile(a, tail, 1.0 - tail);
            assert!((gamma::tails(a, x).ln_lower() - tail.ln()).abs() < 1e-10 * a.sqrt(), "gamma {a} {tail}");
            for b in SHAPES {
                let (x, y) = beta::quantile(a, b, tail, 1.0 - tail);
                assert!(x + y > 0.999_999 && x + y < 1.000_001, "beta {a} {b} {tail}");
            }
        }
    }
}

#[test]
fn a_symmetrical_distribution_has_equal_tails() {
    for a in SHAPES {
        assert_near(beta::tails(a, a, 0.5, 0.5).lower(), 0.5);
        let (below, above) = (beta::quantile(a, a, 0.05, 0.95), beta::quantile(a, a, 0.95, 0.05));
        assert_near(below.0, above.1);
    }
}

#[test]
fn arguments_outside_the_domain_give_nan() {
    assert!(beta::tails(-1.0, 2.0, 0.5, 0.5).lower().is_nan());
    assert!(beta::tails(1.0, 2.0, f64::NAN, 0.5).upper().is_nan());
    assert!(gamma::tails(f64::NAN, 1.0).lower().is_nan());
    assert!(gamma::quantile(2.0, -0.1, 1.1).is_nan());
    assert!(beta::quantile(2.0, f64::INFINITY, 0.5, 0.5).0.is_nan());
}
