//! What all hosts print alike about a block: its hash and the texts that go with it.

use std::collections::VecDeque;

use chainmark_random::{GAMMA, mix};

use crate::logs::text::{exact_text, hex_digits, short_text};
use crate::trace::{Block, BlockNumber, GENESIS, common_ancestor};

/// As many blocks as the network itself remembers.
const RETAINED: usize = 4096;

/// A block as it is printed.
#[derive(Debug, Clone)]
pub struct BlockText {
    pub block: Block,
    pub hash: [u8; 64],
    /// The tie breaker: of two, the smaller text is the smaller number.
    pub vrf: [u8; 128],
    /// The number in nodes' messages: the first block is 0.
    pub block_no: u64,
    /// The transactions in it: from the end of its parent's to this number.
    pub transactions_end: u64,
    pub utxo_entries: u64,
    /// Blocks per slot over the last k blocks of the chain that ends here.
    pub density: f64,
    pub density_text: Box<str>,
    /// As the older versions print it: with the digits of single precision.
    pub density_short: Box<str>,
    /// The block that becomes immutable with this one.
    pub immutable: BlockNumber,
}

/// The blocks that are still printed.
#[derive(Debug)]
pub struct Blocks {
    security_parameter: u64,
    genesis: BlockText,
    /// Number of the block at the front.
    oldest: BlockNumber,
    /// A block that was begun but never finished leaves a hole.
    texts: VecDeque<Option<Box<BlockText>>>,
}

impl Blocks {
    pub fn new(security_parameter: u64, utxo_entries: u64) -> Self {
        let genesis = BlockText {
            block: Block::genesis(),
            hash: [b'0'; 64],
            vrf: [b'f'; 128],
            block_no: 0,
            transactions_end: 0,
            utxo_entries,
            density: 0.0,
            density_text: "0".into(),
            density_short: "0".into(),
            immutable: GENESIS,
        };
        Self { security_parameter, genesis, oldest: GENESIS + 1, texts: VecDeque::new() }
    }

    /// Remember a new block, with the end of its transactions.
    pub fn insert(&mut self, block: &Block, transactions_end: u64) {
        let parent = self.get(block.parent);
        let (density, immutable) = self.over_the_last_k(block);
        let text = BlockText {
            block: *block,
            hash: hex_text(block.key, &[]),
            vrf: hex_text(block.key ^ 0x5bd1_e995, &[block.vrf]),
            block_no: block.height - 1,
            transactions_end,
            utxo_entries: parent.utxo_entries + mix(block.key) % 3,
            density,
            density_text: exact_text(density).into(),
            density_short: short_text(density as f32).into(),
            immutable,
        };
        let place = (block.number - self.oldest) as usize;
        if place >= self.texts.len() {
            self.texts.resize_with(place + 1, || None);
        }
        self.texts[place] = Some(Box::new(text));
        while self.texts.len() > RETAINED {
            self.texts.pop_front();
            self.oldest += 1;
        }
    }

    /// A block; the genesis block replaces those no longer in memory.
    pub fn get(&self, number: BlockNumber) -> &BlockText {
        let place = number.checked_sub(self.oldest).map(|place| place as usize);
        place.and_then(|place| self.texts.get(place)?.as_deref()).unwrap_or(&self.genesis)
    }

    /// The number of the last block that was begun.
    pub fn newest(&self) -> BlockNumber {
        self.oldest + self.texts.len() as u32 - 1
    }

    pub fn remembers(&self, number: BlockNumber) -> bool {
        number >= self.oldest && self.texts.get((number - self.oldest) as usize).is_some_and(Option::is_some)
    }

    /// The last block that two chains share, as far as they are remembered.
    pub fn common_ancestor(&self, a: BlockNumber, b: BlockNumber) -> BlockNumber {
        common_ancestor(a, b, |number| self.remembers(number).then(|| self.get(number).block.parent))
    }

    /// Density as the nodes reckon it, and the block k before this one.
    ///
    /// The chain's first block does not count: its number is 0, and the reckoning starts at 1.
    fn over_the_last_k(&self, block: &Block) -> (f64, BlockNumber) {
        let (mut first, mut anchor) = (*block, block.parent);
        for _ in 1..self.security_parameter {
            if anchor == GENESIS || !self.remembers(anchor) {
                break;
            }
            first = self.get(anchor).block;
            anchor = first.parent;
        }
        let blocks = (block.height - 1).saturating_sub((first.height - 1).max(1));
        let slots = block.slot - first.slot;
        (if slots == 0 { 0.0 } else { blocks as f64 / slots as f64 }, anchor)
    }
}

/// Hexadecimal text that begins with `leading` and continues with digits derived from `key`.
pub fn hex_text<const N: usize>(key: u64, leading: &[u64]) -> [u8; N] {
    let mut text = [0; N];
    for (word, digits) in text.chunks_mut(16).enumerate() {
        let drawn = mix(key.wrapping_add((word as u64 + 1).wrapping_mul(GAMMA)));
        let bits = leading.get(word).copied().unwrap_or(drawn);
        digits.copy_from_slice(&hex_digits(bits)[..digits.len()]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u32, slot: u64, height: u64, parent: u32) -> Block {
        let key = mix(u64::from(number));
        let vrf = mix(key);
        Block { number, slot, height, parent, forger: 0, vrf, bytes: 1, key, fast: false, slow: false }
    }

    #[test]
    fn density_is_computed_as_in_a_real_log() {
        let mut blocks = Blocks::new(3, 0);
        let slots = [57, 100, 101, 127, 134, 149];
        let expected = [0.0, 0.0, 1.0 / 44.0, 2.0 / 27.0, 2.0 / 33.0, 2.0 / 22.0];
        for (i, (slot, density)) in slots.into_iter().zip(expected).enumerate() {
            let number = i as u32 + 1;
            blocks.insert(&block(number, slot, u64::from(number), number - 1), 0);
            assert_eq!(blocks.get(number).density, density, "block {i}");
            assert_eq!(blocks.get(number).immutable, number.saturating_sub(3));
        }
    }

    #[test]
    fn old_blocks_are_dropped_and_holes_are_harmless() {
        let mut blocks = Blocks::new(3, 0);
        blocks.insert(&block(1, 1, 1, 0), 0);
        for number in 3..10_000 {
            let parent = if number == 3 { 1 } else { number - 1 };
            blocks.insert(&block(number, u64::from(number), u64::from(number), parent), 0);
        }
        assert!(!blocks.remembers(2) && !blocks.remembers(5000) && blocks.remembers(9999));
        assert_eq!(blocks.common_ancestor(9999, 9990), 9990);
        assert!(blocks.texts.len() <= RETAINED);
    }

    #[test]
    fn tie_breakers_have_the_order_of_their_text() {
        let mut blocks = Blocks::new(3, 0);
        blocks.insert(&block(1, 5, 1, 0), 0);
        blocks.insert(&block(2, 5, 1, 0), 0);
        let (one, two) = (blocks.get(1), blocks.get(2));
        assert_eq!(one.block.vrf < two.block.vrf, one.vrf < two.vrf);
        assert_eq!(blocks.common_ancestor(1, 2), GENESIS);
    }
}
