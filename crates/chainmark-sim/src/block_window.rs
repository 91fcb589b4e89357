//! The blocks that a simulated network still remembers, and which of two chains a host prefers.

use crate::trace::{Block, BlockNumber, GENESIS, common_ancestor};

/// What one host knows of one block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    pub candidates: u64,
    pub noticed: bool,
    pub body: bool,
    pub in_flight: u32,
    pub deciding: bool,
    pub announced: bool,
    pub queued: bool,
}

/// Blocks that are still remembered, with what every host knows of them.
pub struct BlockWindow {
    hosts: usize,
    capacity: usize,
    blocks: Vec<Block>,
    known: Vec<Known>,
    pub newest: BlockNumber,
}

impl BlockWindow {
    pub fn new(hosts: usize, capacity: usize, genesis: Block) -> Self {
        let mut window = Self { hosts, capacity, blocks: Vec::new(), known: Vec::new(), newest: GENESIS };
        window.insert(genesis);
        window
    }

    pub fn insert(&mut self, block: Block) {
        self.newest = block.number;
        let place = block.number as usize % self.capacity;
        if place == self.blocks.len() {
            self.blocks.push(block);
            self.known.resize(self.blocks.len() * self.hosts, Known::default());
        } else {
            self.blocks[place] = block;
            self.known[place * self.hosts..(place + 1) * self.hosts].fill(Known::default());
        }
    }

    pub fn oldest(&self) -> BlockNumber {
        (self.newest + 1).saturating_sub(self.capacity as u32)
    }

    pub fn remembers(&self, number: BlockNumber) -> bool {
        number >= self.oldest() && number <= self.newest
    }

    pub fn block(&self, number: BlockNumber) -> &Block {
        &self.blocks[number as usize % self.capacity]
    }

    pub fn known(&self, number: BlockNumber, host: u32) -> &Known {
        &self.known[number as usize % self.capacity * self.hosts + host as usize]
    }

    pub fn known_mut(&mut self, number: BlockNumber, host: u32) -> &mut Known {
        &mut self.known[number as usize % self.capacity * self.hosts + host as usize]
    }

    /// Whether a host has the body; every host has those no longer in memory.
    pub fn has(&self, number: BlockNumber, host: u32) -> bool {
        number == GENESIS || !self.remembers(number) || self.known(number, host).body
    }

    /// Whether `ancestor` is on the chain that ends in `number`.
    pub fn descends(&self, number: BlockNumber, ancestor: BlockNumber) -> bool {
        self.common_ancestor(number, ancestor) == ancestor
    }

    /// The last block that two chains share, as far as they are remembered.
    pub fn common_ancestor(&self, a: BlockNumber, b: BlockNumber) -> BlockNumber {
        common_ancestor(a, b, |number| self.remembers(number).then(|| self.block(number).parent))
    }

    /// Whether the chain that ends in `new` is preferred to the one that ends in `old`.
    pub fn prefers(&self, new: BlockNumber, old: BlockNumber) -> bool {
        if !self.remembers(old) {
            return true; // left behind long ago
        }
        let (new, old) = (self.block(new), self.block(old));
        new.height > old.height || (new.height == old.height && new.vrf < old.vrf)
    }
}
