//! The events of a simulated network for its listener: those that a real host would write to its log.

/// Number of a block, in the order of forging; 0 is the genesis block.
pub type BlockNumber = u32;
pub const GENESIS: BlockNumber = 0;

/// Times are nanoseconds since the start of the network; this one is not reached.
pub const NEVER: u64 = u64::MAX;

/// A forged block. `height` is 1 for the first block after genesis; `vrf` decides between chains of one length: the
/// smaller wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub number: BlockNumber,
    pub slot: u64,
    pub height: u64,
    pub parent: BlockNumber,
    pub forger: u32,
    pub vrf: u64,
    pub bytes: u32,
    /// Key of all random draws that concern this block.
    pub key: u64,
    pub fast: bool,
    pub slow: bool,
}

impl Block {
    /// The block before the first one.
    pub fn genesis() -> Self {
        Self {
            number: GENESIS,
            slot: 0,
            height: 0,
            parent: GENESIS,
            forger: 0,
            vrf: u64::MAX,
            bytes: 0,
            key: 0,
            fast: false,
            slow: false,
        }
    }
}

/// The last block that two chains share; the earlier one if the path to it is no longer in memory.
///
/// Args: `parent_of` is None for a block that is no longer in memory. Parents have smaller numbers than their children.
pub fn common_ancestor(
    mut a: BlockNumber,
    mut b: BlockNumber,
    parent_of: impl Fn(BlockNumber) -> Option<BlockNumber>,
) -> BlockNumber {
    while a != b {
        let later = if a > b { &mut a } else { &mut b };
        let Some(parent) = parent_of(*later) else { return a.min(b) };
        *later = parent;
    }
    a
}

/// When one iteration of a forge loop reached its stages. Of a host that does not lead only the first five count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopTimes {
    pub started_ns: u64,
    pub block_context_ns: u64,
    pub ledger_state_ns: u64,
    pub ledger_view_ns: u64,
    pub leadership_ns: u64,
    pub ticked_ns: u64,
    pub snapshot_ns: u64,
    pub forged_ns: u64,
}

/// How a block became part of a host's chain, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// The chain grew by this block.
    Extended,
    /// The host left `from` for a chain that ends in this block.
    Switched { from: BlockNumber },
    /// The block was stored; the chain stayed.
    Stored,
}

/// A listener. Events of one host may be out of order by up to a few seconds; `time_ns` is when each happens.
///
/// All methods have an empty default, so that a listener implements only those it needs.
#[allow(unused_variables, reason = "the names of the parameters document them")]
pub trait Observer {
    /// A block was forged: `times` on the forger's loop.
    fn forged(&mut self, block: &Block, times: &LoopTimes) {}
    /// A header of `block` arrived at `host` from `peer`; one call for every upstream peer.
    fn header(&mut self, time_ns: u64, host: u32, peer: u32, block: &Block) {}
    /// `host` requested `length` bodies that end in `head` from `peer`.
    fn requested(&mut self, time_ns: u64, host: u32, peer: u32, head: &Block, length: u32) {}
    /// `peer` began to send the body to `host`. Reported at the request, so ahead of time.
    fn sent(&mut self, time_ns: u64, peer: u32, host: u32, block: &Block) {}
    /// The body is at `host`; `first` of possibly several copies.
    fn fetched(&mut self, time_ns: u64, host: u32, peer: u32, block: &Block, first: bool) {}
    /// `host` announces `block` to `peer`, which is downstream. `rollback` is the common ancestor if its chain changed.
    fn announced(&mut self, time_ns: u64, host: u32, peer: u32, block: &Block, rollback: Option<&Block>) {}
    /// `host` decided about `block` (as forger or follower), at the end of its validation.
    fn selected(&mut self, time_ns: u64, host: u32, block: &Block, selection: Selection) {}
    /// No earlier event will be reported.
    fn reached(&mut self, time_ns: u64) {}
}
