//! What all hosts share while they plan and write.

use crate::chain::ChainRun;
use crate::logs::blocks::Blocks;
use crate::logs::order::LogRequest;
use crate::logs::transactions::Transactions;
use crate::random::Draws;

/// Denotes the forge loop in place of a peer.
pub const FROM_FORGE: u16 = u16::MAX;

/// What all hosts share while they plan and write.
pub struct Shared<'a> {
    pub order: &'a LogRequest,
    pub run: &'a ChainRun,
    pub blocks: &'a Blocks,
    pub transactions: &'a Transactions,
    /// Keys of the pools, by host.
    pub issuers: &'a [[u8; 56]],
}

impl Shared<'_> {
    /// When the slot of a time starts, as a number.
    pub fn slot_of(&self, at_ns: i64) -> u64 {
        (at_ns.max(0) as f64 / 1e9 / self.order.chain.slot_length_s) as u64
    }

    pub fn draws(&self, salt: u64, of: u64) -> Draws {
        Draws::new(self.order.scenario.seed ^ salt, of)
    }
}
