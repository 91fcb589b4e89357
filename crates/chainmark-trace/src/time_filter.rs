//! Decides which lines' times are accepted.
//!
//! A line whose time is far from that of the previous line waits for the following lines. If they continue from there,
//! as after a gap or a restart, it is accepted; if they return to the earlier time, it is not.

use crate::event::{Event, OwnedEvent, Place};

/// Maximum number of messages that are checked for the confirmation of a jump: a node prints as many in a second.
const WITNESSES: usize = 32;

/// An event that waits.
struct Held {
    event: OwnedEvent,
    place: Place,
}

impl Held {
    fn new(event: &Event<'_>, place: Place) -> Self {
        Self { event: OwnedEvent::new(event), place }
    }
}

/// Decides for every event of a host, in line order, whether its time is accepted.
pub struct TimeFilter {
    /// Steps up to this need no confirmation.
    limit_ns: i64,
    last_ns: Option<i64>,
    held: Vec<Held>,
}

impl TimeFilter {
    pub fn new(limit_ns: i64) -> Self {
        Self { limit_ns, last_ns: None, held: Vec::new() }
    }

    /// Process the next event; `tell` receives the decided ones.
    #[inline]
    pub fn take(&mut self, event: &Event<'_>, place: Place, tell: &mut impl FnMut(&Event<'_>, Place, bool)) {
        if self.held.is_empty() && self.is_near(event.at_ns) {
            self.last_ns = Some(event.at_ns);
            tell(event, place, true);
        } else {
            self.weigh(event, place, tell);
        }
    }

    /// The log ends: a jump in a single line is rejected.
    pub fn end(&mut self, tell: &mut impl FnMut(&Event<'_>, Place, bool)) {
        let believed = self.held.len() > 1 || self.last_ns.is_none();
        self.release(believed, tell);
    }

    fn is_near(&self, at_ns: i64) -> bool {
        self.last_ns.is_some_and(|last_ns| at_ns.abs_diff(last_ns) <= self.limit_ns.unsigned_abs())
    }

    fn weigh(&mut self, event: &Event<'_>, place: Place, tell: &mut impl FnMut(&Event<'_>, Place, bool)) {
        let (at_ns, limit_ns) = (event.at_ns, self.limit_ns);
        let floor_ns = self.last_ns.map_or(i64::MIN, |last_ns| last_ns.saturating_sub(limit_ns));
        if at_ns >= floor_ns {
            // Time continued from the earlier one: it was neither at these times, nor after them.
            let ceiling_ns = at_ns.saturating_add(limit_ns);
            let is_outside = |held: &mut Held| held.event.at_ns > ceiling_ns || held.event.at_ns < floor_ns;
            for held in self.held.extract_if(.., is_outside) {
                tell(&held.event.event(), held.place, false);
            }
        }
        if self.is_near(at_ns) {
            self.release(true, tell);
            self.last_ns = Some(at_ns);
            return tell(event, place, true);
        }
        self.held.push(Held::new(event, place));
        if self.held.len() >= WITNESSES {
            self.release(true, tell);
        }
    }

    fn release(&mut self, believed: bool, tell: &mut impl FnMut(&Event<'_>, Place, bool)) {
        for held in self.held.drain(..) {
            tell(&held.event.event(), held.place, believed);
            if believed {
                self.last_ns = Some(held.event.at_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Fact;

    const LIMIT: i64 = 10;

    /// Of every line, in the order of decision: its number and whether its time is accepted.
    fn decided(times: &[i64]) -> Vec<(u64, bool)> {
        let mut filter = TimeFilter::new(LIMIT);
        let mut result = Vec::new();
        let mut tell = |_: &Event<'_>, place: Place, believed: bool| result.push((place.line, believed));
        for (line, &at_ns) in (0..).zip(times) {
            let event = Event { at_ns, fact: Fact::TransactionRejected };
            filter.take(&event, Place { file: 0, line }, &mut tell);
        }
        filter.end(&mut tell);
        result
    }

    fn disbelieved(times: &[i64]) -> Vec<u64> {
        let mut lines: Vec<u64> = decided(times).into_iter().filter(|one| !one.1).map(|one| one.0).collect();
        lines.sort_unstable();
        lines
    }

    fn with(jumps: &[(usize, i64)]) -> Vec<i64> {
        let mut times: Vec<i64> = (0..200).collect();
        jumps.iter().for_each(|&(line, by)| times[line] += by);
        times
    }

    #[test]
    fn a_line_far_from_both_its_neighbours_is_rejected() {
        for by in [86_400, 22, -22, -86_400] {
            assert_eq!(disbelieved(&with(&[(100, by)])), [100], "{by}");
        }
        assert_eq!(disbelieved(&with(&[(100, 9), (120, -9)])), []);
        assert_eq!(disbelieved(&with(&[(100, 86_400), (101, 90_000), (103, -70_000)])), [100, 101, 103]);
        // At once, and at the very end, where no line follows.
        assert_eq!(disbelieved(&with(&[(3, 86_400)])), [3]);
        assert_eq!(disbelieved(&with(&[(199, 86_400)])), [199]);
    }

    #[test]
    fn a_jump_confirmed_by_the_next_lines_is_accepted_in_order() {
        let mut gap: Vec<i64> = (0..100).collect();
        gap.extend(5_000..5_100);
        gap.extend(700..800);
        let result = decided(&gap);
        assert_eq!(result, (0..300).map(|line| (line, true)).collect::<Vec<_>>());
        // With a wrong line among those that confirm it.
        gap[103] += 86_400;
        gap[106] -= 86_400;
        assert_eq!(disbelieved(&gap), [103, 106]);
    }

    #[test]
    fn lines_that_are_always_far_apart_are_accepted() {
        let sparse: Vec<i64> = (0..100).map(|line| line * 1000).collect();
        assert_eq!(disbelieved(&sparse), []);
        assert_eq!(disbelieved(&sparse[..1]), []);
        assert_eq!(disbelieved(&sparse[..2]), []);
    }

    #[test]
    fn the_number_of_buffered_lines_is_limited() {
        let mut filter = TimeFilter::new(LIMIT);
        for line in 0..1000 {
            let at_ns = line as i64 * 1000;
            let event = Event { at_ns, fact: Fact::TransactionRejected };
            filter.take(&event, Place { file: 0, line }, &mut |_, _, _| {});
            assert!(filter.held.len() < WITNESSES);
        }
    }
}
