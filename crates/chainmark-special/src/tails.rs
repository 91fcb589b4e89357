//! Both tails of a distribution, the smaller one with full precision.

/// A tail by its logarithm, so that none underflows; the other is 1 minus it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tails {
    known: f64,
    is_lower: bool,
}

impl Tails {
    /// From the logarithm of the lower tail.
    pub fn from_ln_lower(known: f64) -> Self {
        Self { known, is_lower: true }
    }

    /// From the logarithm of the upper tail.
    pub fn from_ln_upper(known: f64) -> Self {
        Self { known, is_lower: false }
    }

    /// The tails below and above all values.
    pub const NOTHING_BELOW: Self = Self { known: f64::NEG_INFINITY, is_lower: true };
    pub const NOTHING_ABOVE: Self = Self { known: f64::NEG_INFINITY, is_lower: false };
    pub const UNKNOWN: Self = Self { known: f64::NAN, is_lower: true };

    /// The tails of the mirrored distribution.
    pub fn swapped(self) -> Self {
        Self { is_lower: !self.is_lower, ..self }
    }

    pub fn lower(self) -> f64 {
        if self.is_lower { self.known.exp() } else { -self.known.exp_m1() }
    }

    pub fn upper(self) -> f64 {
        self.swapped().lower()
    }

    pub fn ln_lower(self) -> f64 {
        if self.is_lower { self.known } else { (-self.known.exp()).ln_1p() }
    }

    pub fn ln_upper(self) -> f64 {
        self.swapped().ln_lower()
    }
}
