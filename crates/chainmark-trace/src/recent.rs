//! Messages without a slot or a block that were reported before, with the same time and content.

use rustc_hash::FxHashSet;

use crate::event::{Event, Fact};

/// Messages of a generation; two generations are remembered.
const REMEMBERED: usize = 1 << 15;
/// Messages that are looked through, and moved, one by one.
const NEAR: usize = 64;
/// Times that are multiples of this may be rounded: several messages have the same one.
const ROUNDED_NS: i64 = 1_000_000;

type Message = (i64, u64);

/// The last messages of a host. What comes in order is not looked up.
#[derive(Debug, Default)]
pub struct Recent {
    newer: Generation,
    older: Generation,
    latest_ns: Option<i64>,
}

/// Messages, each once. Lines of several threads are written almost in order, so that nearly all messages belong near
/// the end of a sorted row; a table would cost more than all other processing of such a message.
#[derive(Debug, Default)]
struct Generation {
    row: Vec<Message>,
    late: FxHashSet<Message>,
}

impl Generation {
    fn len(&self) -> usize {
        self.row.len() + self.late.len()
    }

    /// Number of entries of the row that are not after the message; None if that is far from its end.
    fn place(&self, message: &Message) -> Option<usize> {
        let later = self.row.iter().rev().take(NEAR).take_while(|reported| *reported > message).count();
        (later < NEAR).then(|| self.row.len() - later)
    }

    fn contains(&self, message: &Message) -> bool {
        let in_row = match self.place(message) {
            Some(place) => self.row[..place].last() == Some(message),
            None => self.row.binary_search(message).is_ok(),
        };
        in_row || (!self.late.is_empty() && self.late.contains(message))
    }

    /// Adds a message that it does not hold.
    fn insert(&mut self, message: Message) {
        match self.place(&message) {
            Some(place) => self.row.insert(place, message),
            None => {
                self.late.insert(message);
            }
        }
    }

    fn clear(&mut self) {
        self.row.clear();
        self.late.clear();
    }
}

impl Recent {
    /// Whether this message was reported before; it is remembered.
    pub fn is_repeated(&mut self, event: &Event<'_>) -> bool {
        let at_ns = event.at_ns;
        let Some(content) = content_hash(&event.fact).filter(|_| at_ns % ROUNDED_NS != 0) else { return false };
        let message = (at_ns, content);
        let may_be_old = self.latest_ns.is_some_and(|latest_ns| at_ns <= latest_ns);
        if may_be_old && (self.newer.contains(&message) || self.older.contains(&message)) {
            return true;
        }
        if self.newer.len() == REMEMBERED {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
        self.newer.insert(message);
        self.latest_ns = self.latest_ns.max(Some(at_ns));
        false
    }
}

/// A hash of a message's content; None for a slot's round or a block.
fn content_hash(fact: &Fact<'_>) -> Option<u64> {
    let (kind, count) = match *fact {
        Fact::TransactionsCollected { count } => (1, count),
        Fact::TransactionsProcessed { accepted, rejected } => (2, accepted.rotate_left(24) ^ rejected as u64),
        Fact::TransactionRejected => (3, 0),
        Fact::LedgerSnapshot { renamed } => (4, u64::from(renamed)),
        Fact::MempoolSize { transactions } => (5, transactions),
        Fact::LedgerMetrics { slot, .. } => (6, slot),
        _ => return None,
    };
    Some(kind << 56 ^ count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repeated(messages: &[(i64, u64)]) -> Vec<bool> {
        let mut recent = Recent::default();
        let event = |&(at_ns, count)| Event { at_ns, fact: Fact::TransactionsCollected { count } };
        messages.iter().map(|message| recent.is_repeated(&event(message))).collect()
    }

    #[test]
    fn the_same_message_with_the_same_time_is_a_repetition_however_late() {
        assert_eq!(repeated(&[(1, 7), (1, 7), (2, 7), (1, 7), (1, 8)]), [false, true, false, true, false]);
        let mut many: Vec<(i64, u64)> = (0..REMEMBERED as i64).map(|at| (2 * at + 1, 1)).collect();
        many.push((1, 1));
        assert_eq!(repeated(&many).pop(), Some(true));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_message_is_a_repetition_in_any_order_if_it_was_reported(
            messages in prop::collection::vec((1_i64..200, 0_u64..3), 0..600),
        ) {
            let mut reported = FxHashSet::default();
            let expected: Vec<bool> = messages.iter().map(|message| !reported.insert(*message)).collect();
            prop_assert_eq!(repeated(&messages), expected);
        }
    }

    #[test]
    fn a_rounded_time_does_not_make_a_repetition() {
        assert_eq!(repeated(&[(10_000_000, 1), (10_000_000, 1)]), [false, false]);
    }
}
