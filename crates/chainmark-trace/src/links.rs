//! One host's lines about the chain itself: the height, the slot and the parent of each block.
//!
//! A block's own forging and headers report it first. That the forge loop builds on a block, and that the selected
//! chain is extended from one block to the next, confirms it, so that lost lines do not break the chain.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::columns::{Field, Kind, Table, Text};
use crate::error::Result;
use crate::event::{Fact, Hash, Point};

const GROUP_ROWS: usize = 8192;
/// What the node prints as the parent of the chain's first block.
pub const NO_PARENT: &str = "GenesisHash";

/// How a parent is known, the strongest evidence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// By the line of the forge.
    Forged,
    /// The forge loop of the same slot reported what it built on.
    ForgeLoop,
    /// The chain that ended in the parent was extended by the block.
    Extended,
    /// The tip of one round of the forge loop was the parent, that of the next the block.
    NextTip,
}

#[derive(Debug, Default)]
struct Link {
    block_no: Option<i64>,
    slot: Option<u64>,
    /// Inside, none is the chain's beginning.
    parent: Option<(Evidence, Option<Hash>)>,
    size_bytes: Option<u64>,
}

impl Link {
    fn is_on(&mut self, evidence: Evidence, parent: Option<Hash>) {
        if self.parent.is_none_or(|(known, _)| evidence < known) {
            self.parent = Some((evidence, parent));
        }
    }
}

/// Facts that the table of a host's links does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LinksSummary {
    pub blocks: u64,
    /// The lowest number of a tip that the forge loop found; -1 is the chain's beginning.
    pub lowest_tip: Option<i64>,
}

/// The links in one host's messages, from its events in the order of its files.
#[derive(Debug, Default)]
pub struct Links {
    by_block: FxHashMap<Hash, Link>,
    /// Slot, number and tip of the forge loop's last round.
    context: Option<(u64, i64, Option<Point>)>,
    /// Slot of the last round that built a block, and what on.
    built_on: Option<(u64, Hash)>,
    /// The end of the selected chain.
    selected: Option<Hash>,
    lowest_tip: Option<i64>,
}

impl Links {
    pub fn listen(&mut self, fact: &Fact<'_>) {
        match *fact {
            Fact::BlockContext { slot, block_no, tip } => self.context(slot, block_no, tip),
            Fact::Ticked { slot, prev: Some(prev) } => {
                self.point(prev);
                self.built_on = Some((slot, prev.block));
            }
            Fact::Forged { slot, block_no, block, parent } => {
                self.place(block, Some(slot), i64::try_from(block_no).ok()).is_on(Evidence::Forged, parent);
            }
            Fact::Noticed { slot, block_no, block, .. } => {
                self.place(block, Some(slot), i64::try_from(block_no).ok());
            }
            Fact::Added { block, .. } => {
                let before = self.selected.replace(block).filter(|before| *before != block);
                let link = self.by_block.entry(block).or_default();
                if before.is_some() {
                    link.is_on(Evidence::Extended, before);
                }
            }
            Fact::Switched { block, .. } => {
                self.selected = Some(block);
                self.by_block.entry(block).or_default();
            }
            Fact::SelfAdopted { slot, block, size_bytes } => self.self_adopted(slot, block, size_bytes),
            Fact::Fetched { block, .. } | Fact::Announced { block } | Fact::Sent { block } => {
                self.by_block.entry(block).or_default();
            }
            Fact::Requested { head, .. } => {
                self.by_block.entry(head).or_default();
            }
            _ => {}
        }
    }

    fn place(&mut self, block: Hash, slot: Option<u64>, block_no: Option<i64>) -> &mut Link {
        let link = self.by_block.entry(block).or_default();
        link.slot = link.slot.or(slot);
        link.block_no = link.block_no.or(block_no);
        link
    }

    fn point(&mut self, point: Point) {
        self.place(point.block, point.slot, None);
    }

    fn context(&mut self, slot: u64, block_no: i64, tip: Option<Point>) {
        self.lowest_tip = Some(self.lowest_tip.map_or(block_no, |lowest| lowest.min(block_no)));
        if let Some(tip) = tip {
            let before = self.context.filter(|&(_, before_no, _)| before_no + 1 == block_no);
            let before = before.and_then(|(_, _, before)| before).filter(|before| before.block != tip.block);
            let link = self.place(tip.block, tip.slot, Some(block_no).filter(|&number| number >= 0));
            if let Some(before) = before {
                link.is_on(Evidence::NextTip, Some(before.block));
            }
        }
        self.context = Some((slot, block_no, tip));
    }

    fn self_adopted(&mut self, slot: Option<u64>, block: Hash, size_bytes: u64) {
        let round = self.context.filter(|&(of, ..)| Some(of) == slot);
        let built_on = self.built_on.filter(|&(of, _)| Some(of) == slot).map(|(_, parent)| parent);
        let parent = built_on.or(round.and_then(|(_, _, tip)| tip).map(|tip| tip.block));
        let block_no = round.map(|(_, tip_no, _)| tip_no.saturating_add(1));
        let link = self.place(block, slot, block_no);
        link.size_bytes = link.size_bytes.or(Some(size_bytes));
        if let Some(parent) = parent.filter(|parent| *parent != block) {
            link.is_on(Evidence::ForgeLoop, Some(parent));
        }
        self.selected = Some(block);
    }

    pub fn summary(&self) -> LinksSummary {
        LinksSummary { blocks: self.by_block.len() as u64, lowest_tip: self.lowest_tip }
    }

    /// Write one row per block, by its hash.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut order: Vec<(&Hash, &Link)> = self.by_block.iter().collect();
        order.sort_unstable_by_key(|(block, _)| **block);
        let mut table = Table::create(path, &fields(), GROUP_ROWS)?;
        for (block, link) in order {
            table.text(0, hex(block));
            let numbers = [link.block_no, link.slot.and_then(|slot| i64::try_from(slot).ok())];
            for (column, number) in (1..).zip(numbers) {
                if let Some(number) = number {
                    table.integer(column, number);
                }
            }
            if let Some((evidence, parent)) = &link.parent {
                table.text(3, parent.as_ref().map_or_else(|| Text::from(NO_PARENT), hex));
                table.small(4, *evidence as i32);
            }
            if let Some(size_bytes) = link.size_bytes.and_then(|size| i64::try_from(size).ok()) {
                table.integer(5, size_bytes);
            }
            table.end_row()?;
        }
        table.finish()
    }
}

fn hex(hash: &Hash) -> Text {
    Text::from(hash.to_string().into_bytes())
}

fn fields() -> Vec<Field> {
    vec![
        Field::required("block", Kind::Text),
        Field::optional("block_no", Kind::Integer),
        Field::optional("slot", Kind::Integer),
        Field::optional("parent", Kind::Text),
        Field::optional("parent_evidence", Kind::Small),
        Field::optional("size_bytes", Kind::Integer),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn block(number: u8) -> Hash {
        Hash([number; 32])
    }

    fn context(slot: u64, tip: u8) -> Fact<'static> {
        let point = Point { block: block(tip), slot: Some(slot - 1) };
        Fact::BlockContext { slot, block_no: i64::from(tip), tip: Some(point) }
    }

    fn added(number: u8) -> Fact<'static> {
        Fact::Added { block: block(number), delta: 1 }
    }

    /// The parent of a block, and its evidence.
    fn parent(facts: &[Fact<'_>], of: u8) -> Option<(Evidence, Option<Hash>)> {
        let mut links = Links::default();
        facts.iter().for_each(|fact| links.listen(fact));
        links.by_block[&block(of)].parent
    }

    #[test]
    fn the_most_reliable_line_gives_the_parent_in_any_order() {
        let forged = Fact::Forged { slot: 9, block_no: 5, block: block(5), parent: Some(block(4)) };
        let ticked = Fact::Ticked { slot: 9, prev: Some(Point { block: block(3), slot: None }) };
        let adopted = Fact::SelfAdopted { slot: Some(9), block: block(5), size_bytes: 7 };
        let all = [added(2), added(5), ticked, adopted, forged];
        assert_eq!(parent(&all, 5), Some((Evidence::Forged, Some(block(4)))));
        assert_eq!(parent(&[forged, added(2), added(5)], 5), Some((Evidence::Forged, Some(block(4)))));
        assert_eq!(parent(&all[..4], 5), Some((Evidence::ForgeLoop, Some(block(3)))));
        assert_eq!(parent(&all[..3], 5), Some((Evidence::Extended, Some(block(2)))));
        // What another round built on says nothing of this block.
        let other = Fact::SelfAdopted { slot: Some(8), block: block(5), size_bytes: 7 };
        assert_eq!(parent(&[ticked, other], 5), None);
    }

    #[test]
    fn a_chain_is_extended_from_where_it_was_switched_to() {
        let switched = Fact::Switched { block: block(8), delta: 1 };
        assert_eq!(parent(&[added(2), switched, added(9)], 9), Some((Evidence::Extended, Some(block(8)))));
        assert_eq!(parent(&[added(9)], 9), None);
        assert_eq!(parent(&[added(9), added(9)], 9), None);
    }

    #[test]
    fn a_tip_follows_the_previous_one_if_it_has_the_next_height() {
        assert_eq!(parent(&[context(10, 4), context(11, 5)], 5), Some((Evidence::NextTip, Some(block(4)))));
        assert_eq!(parent(&[context(10, 3), context(11, 5)], 5), None);
        assert_eq!(parent(&[context(10, 5), context(11, 5)], 5), None);
    }

    #[test]
    fn the_parent_of_the_first_block_is_the_start_of_the_chain() {
        let first = Fact::Forged { slot: 1, block_no: 0, block: block(1), parent: None };
        assert_eq!(parent(&[first], 1), Some((Evidence::Forged, None)));
        let mut links = Links::default();
        links.listen(&Fact::BlockContext { slot: 1, block_no: -1, tip: None });
        links.listen(&context(10, 4));
        assert_eq!(links.summary(), LinksSummary { blocks: 1, lowest_tip: Some(-1) });
    }
}
