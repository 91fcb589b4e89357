//! Which rounds of the forge loop belong to the slots that their lines name.
//!
//! A node counts slots by its own clock, so that a round's time is about as far from its slot's start as that of the
//! previous round, or later. A round whose slot is ahead of that is rejected, unless the following rounds confirm it.

/// Rounds in a row that say the same of the clock, so that it is believed.
const WITNESSES: u32 = 3;

pub struct Rounds {
    /// Differences up to this need no confirmation.
    limit_ns: i64,
    /// Distance of the last normal round from its slot's start; 0 also if it was late.
    usual_ns: Option<i64>,
    /// The same of the last deviating one, and the number of consecutive ones that agree.
    other_ns: i64,
    witnesses: u32,
}

impl Rounds {
    pub fn new(limit_ns: i64) -> Self {
        Self { limit_ns, usual_ns: None, other_ns: 0, witnesses: 0 }
    }

    /// Whether a round that began this long after its slot is accepted as a round of that slot.
    pub fn believe(&mut self, offset_ns: i64) -> bool {
        // A late round says nothing of the clock.
        let offset_ns = offset_ns.min(0);
        let usual_ns = *self.usual_ns.get_or_insert(offset_ns);
        if self.is_near(offset_ns, usual_ns) {
            self.witnesses = 0;
            self.usual_ns = Some(offset_ns);
            return true;
        }
        let goes_on = self.witnesses > 0 && self.is_near(offset_ns, self.other_ns);
        self.witnesses = if goes_on { self.witnesses + 1 } else { 1 };
        self.other_ns = offset_ns;
        if self.witnesses < WITNESSES {
            return offset_ns > usual_ns;
        }
        self.usual_ns = Some(offset_ns);
        true
    }

    fn is_near(&self, one_ns: i64, other_ns: i64) -> bool {
        one_ns.abs_diff(other_ns) <= self.limit_ns.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rounds of these that are not believed.
    fn disbelieved(offsets: &[i64]) -> Vec<usize> {
        let mut rounds = Rounds::new(10);
        (0..offsets.len()).filter(|&round| !rounds.believe(offsets[round])).collect()
    }

    #[test]
    fn a_slot_ahead_of_its_neighbouring_rounds_is_rejected() {
        assert_eq!(disbelieved(&[0, -9, 0, -11, 0, -3000, 1, -3000, -40, 0]), [3, 5, 7, 8]);
        assert_eq!(disbelieved(&[0, -3000, -3000, 0, 0]), [1, 2]);
    }

    #[test]
    fn late_rounds_and_their_successors_are_accepted() {
        assert_eq!(disbelieved(&[0, 70, 3000, 0, 90, 1]), []);
        assert_eq!(disbelieved(&[-60, -60, -20, -60, 5, -60, -60]), []);
    }

    #[test]
    fn a_wrong_clock_is_accepted_if_all_rounds_agree() {
        assert_eq!(disbelieved(&[-600, -601, -599]), []);
        let drifting: Vec<i64> = (0..100).map(|round| -5 * round).collect();
        assert_eq!(disbelieved(&drifting), []);
        // A wrong first one, and a clock that was set.
        assert_eq!(disbelieved(&[-600, 0, 0, 0, -600, 0]), [4]);
        assert_eq!(disbelieved(&[0, 0, -600, -601, -602, -600]), [2, 3]);
    }
}
