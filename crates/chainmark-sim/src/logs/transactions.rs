//! The stream of transactions: submission time, size, and block of each.
//!
//! Transactions are numbered. They are submitted at the offered rate as long as the mempools have room, which is for
//! the transactions of two blocks; blocks include them in order. So under a full load the mempools are full, and every
//! block makes room for the next ones.

use std::collections::VecDeque;

use chainmark_random::{GAMMA, mix};

use crate::logs::order::Workload;

const NS_PER_S: f64 = 1e9;
/// Mempools hold the transactions of this many blocks.
const BLOCKS_IN_MEMPOOL: u64 = 2;
/// A waiting generator sends its next transactions this fast when there is room again.
const BURST_GAP_NS: i64 = 4_000_000;
/// A block makes room when most hosts have adopted it.
const ROOM_AFTER_NS: i64 = 600_000_000;
/// A forger has a transaction for sure so long after its submission.
const SPREAD_NS: i64 = 1_000_000_000;

/// The submissions that hosts have not all received yet.
#[derive(Debug)]
pub struct Transactions {
    seed: u64,
    workload: Workload,
    gap_ns: f64,
    /// Number of the transaction at the front of `released_ns`.
    first: u64,
    released_ns: VecDeque<i64>,
    last_ns: i64,
    /// (when, up to which transaction) the chain made room, in the order of time.
    consumed: VecDeque<(i64, u64)>,
    consumed_now: u64,
}

impl Transactions {
    pub fn new(workload: &Workload, seed: u64) -> Self {
        Self {
            seed,
            workload: *workload,
            gap_ns: NS_PER_S / workload.tps,
            first: 0,
            released_ns: VecDeque::new(),
            last_ns: 0,
            consumed: VecDeque::new(),
            consumed_now: 0,
        }
    }

    /// Number after the last transaction that was submitted.
    pub fn end(&self) -> u64 {
        self.first + self.released_ns.len() as u64
    }

    /// Number after the last transaction that the chain made room with.
    pub fn consumed(&self) -> u64 {
        self.consumed_now
    }

    /// When a transaction was submitted; None if it was not yet. Transactions no longer in memory are known to every
    /// host.
    pub fn released_ns(&self, number: u64) -> Option<i64> {
        match number.checked_sub(self.first) {
            None => Some(i64::MIN),
            Some(place) => self.released_ns.get(place as usize).copied(),
        }
    }

    /// Plan all submissions up to a time. Blocks forged before it must be known.
    pub fn plan_until(&mut self, until_ns: i64) {
        let room = BLOCKS_IN_MEMPOOL * self.workload.block_transactions;
        if self.workload.tps <= 0.0 {
            return;
        }
        loop {
            let number = self.end();
            let due = self.workload.start_s * NS_PER_S + number as f64 * self.gap_ns;
            if due >= until_ns as f64 {
                return;
            }
            let mut at = (due as i64).max(self.last_ns + BURST_GAP_NS);
            while number >= self.consumed_now + room {
                let Some((time, end)) = self.consumed.pop_front() else { return };
                self.consumed_now = self.consumed_now.max(end);
                at = at.max(time);
            }
            if at >= until_ns {
                self.last_ns = at - BURST_GAP_NS;
                return;
            }
            self.last_ns = at;
            self.released_ns.push_back(at);
        }
    }

    /// The last transaction of a new block: its first follows those of its parent.
    pub fn take(&mut self, parent_end: u64, snapshot_ns: i64) -> u64 {
        self.plan_until(snapshot_ns);
        let known = self.released_ns.partition_point(|&at| at + SPREAD_NS <= snapshot_ns) as u64;
        let available = (self.first + known).max(parent_end);
        let end = available.min(parent_end + self.workload.block_transactions);
        self.consumed.push_back((snapshot_ns + ROOM_AFTER_NS, end));
        end
    }

    /// Forget the transactions before a number.
    pub fn forget(&mut self, number: u64) {
        let count = number.saturating_sub(self.first).min(self.released_ns.len() as u64);
        self.released_ns.drain(..count as usize);
        self.first += count;
    }

    /// Size in bytes.
    #[inline]
    pub fn bytes(&self, number: u64) -> u64 {
        u64::from(self.workload.transaction_bytes) + (mix(self.seed ^ number) & 3)
    }

    /// The first digits of its id, as bits.
    #[inline]
    pub fn id(&self, number: u64) -> u32 {
        (mix(mix(self.seed) ^ number.wrapping_mul(GAMMA)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(tps: f64, block_transactions: u64) -> Workload {
        Workload {
            tps,
            start_s: 0.0,
            transaction_bytes: 370,
            block_transactions,
            utxo_entries: 0,
            delegators: 0,
            mutator_percent: 5.0,
            allocation_mib_per_s: 20.0,
            heap_mib: 6000.0,
            live_mib: 3000.0,
        }
    }

    #[test]
    fn mempools_fill_up_and_blocks_free_space() {
        let mut transactions = Transactions::new(&workload(10.0, 50), 1);
        transactions.plan_until(60_000_000_000);
        assert_eq!(transactions.end(), 100, "two blocks' worth, although 600 were offered");
        let end = transactions.take(0, 60_000_000_000);
        assert_eq!(end, 50);
        transactions.plan_until(70_000_000_000);
        assert_eq!(transactions.end(), 150);
        let first_of_the_burst = transactions.released_ns(100).unwrap();
        assert_eq!(first_of_the_burst, 60_600_000_000);
    }

    #[test]
    fn below_saturation_the_offered_rate_is_sustained() {
        let mut transactions = Transactions::new(&workload(10.0, 500), 1);
        transactions.plan_until(60_000_000_000);
        assert_eq!(transactions.end(), 600);
        assert_eq!(transactions.released_ns(100), Some(10_000_000_000));
        assert_eq!(transactions.take(0, 30_500_000_000), 296, "what was submitted a second before the snapshot");
        assert_eq!(transactions.take(296, 30_500_000_000), 296, "nothing is left");
        transactions.forget(296);
        assert_eq!(transactions.released_ns(0), Some(i64::MIN));
        assert_eq!(transactions.released_ns(300), Some(30_000_000_000));
    }

    #[test]
    fn a_load_of_zero_is_valid() {
        let mut transactions = Transactions::new(&workload(0.0, 1), 1);
        transactions.plan_until(i64::MAX / 2);
        assert_eq!(transactions.end(), 0);
        assert_eq!(transactions.take(0, 5), 0);
    }
}
