//! What became of the decoded messages: used, or not used for a named reason.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{ReadError, Result};

/// Why a decoded message enters no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unused {
    BeforeStart,
    SlotNotBegun,
    SlotBeforeFirst,
    LongJump,
    ImplausibleTime,
    SlotAheadOfTime,
    Repetition,
    OwnBlock,
    UnknownSwitch,
    BlockInError,
    NotPublished,
    NoMetric,
}

impl Unused {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::BeforeStart => "before the network's start",
            Self::SlotNotBegun => "slot not begun",
            Self::SlotBeforeFirst => "slot before the host's first",
            Self::LongJump => "more than a million slots ahead",
            Self::ImplausibleTime => "implausible time",
            Self::SlotAheadOfTime => "slot ahead of its line",
            Self::Repetition => "repetition",
            Self::OwnBlock => "own block offered by a peer",
            Self::UnknownSwitch => "switch to an unknown block",
            Self::BlockInError => "block in error",
            Self::NotPublished => "not read by the published rules",
            Self::NoMetric => "read for no metric",
        }
    }
}

/// What one message was good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Used,
    Unused(Unused),
}

/// Every decoded message of a host in one class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    pub used: u64,
    pub unused: BTreeMap<&'static str, u64>,
}

impl Usage {
    #[inline]
    pub fn count(&mut self, use_: Use) {
        match use_ {
            Use::Used => self.used += 1,
            Use::Unused(why) => *self.unused.entry(why.reason()).or_default() += 1,
        }
    }

    /// Messages that could not be used on arrival are used, since a later line contained what they lacked.
    pub fn recover(&mut self, why: Unused, count: u64) {
        let Some(unused) = self.unused.get_mut(why.reason()).filter(|unused| count > 0 && **unused >= count) else {
            return;
        };
        *unused -= count;
        self.used += count;
        self.unused.retain(|_, count| *count > 0);
    }

    /// Whether these are all messages that the decoder counted.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self, decoded: u64) -> Result<()> {
        let parts = self.used + self.unused.values().sum::<u64>();
        if parts == decoded {
            return Ok(());
        }
        Err(ReadError::Sums { what: "decoded messages by their use", whole: decoded, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_no_class_or_two_classes_is_detected() {
        let mut usage = Usage::default();
        usage.count(Use::Used);
        usage.count(Use::Unused(Unused::Repetition));
        usage.count(Use::Unused(Unused::Repetition));
        assert_eq!((usage.used, usage.unused["repetition"]), (1, 2));
        usage.check(3).unwrap();
        for decoded in [2, 4] {
            let error = usage.check(decoded).unwrap_err().to_string();
            assert!(error.starts_with("the decoded messages by their use do not add up"), "{error}");
        }
    }
}
