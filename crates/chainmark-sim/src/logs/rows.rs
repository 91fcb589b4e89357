//! A host's lines about unfinished slots and blocks, row by row until they are closed.

use std::collections::VecDeque;

use crate::logs::truth::{BlockRow, SlotRow};
use crate::trace::BlockNumber;

/// Rows about the slots that are not over yet.
#[derive(Debug, Default)]
pub struct SlotRows {
    first: u64,
    rows: VecDeque<Option<SlotRow>>,
}

impl SlotRows {
    pub fn insert(&mut self, row: SlotRow) {
        if self.rows.is_empty() {
            self.first = row.slot;
        }
        let place = (row.slot - self.first) as usize;
        self.rows.resize(place.max(self.rows.len()), None);
        self.rows.push_back(Some(row));
    }

    pub fn get(&mut self, slot: u64) -> Option<&mut SlotRow> {
        self.rows.get_mut(slot.checked_sub(self.first)? as usize)?.as_mut()
    }

    /// Remove the rows of the slots before one, in order.
    pub fn take_before(&mut self, slot: u64) -> Vec<SlotRow> {
        let count = slot.saturating_sub(self.first).min(self.rows.len() as u64);
        self.first += count;
        self.rows.drain(..count as usize).flatten().collect()
    }
}

/// Rows about the blocks that may still be received.
#[derive(Debug, Default)]
pub struct BlockRows {
    first: BlockNumber,
    rows: VecDeque<Option<Box<BlockRow>>>,
    /// Lines about blocks whose rows are closed.
    pub too_late: u64,
}

impl BlockRows {
    /// The first row will be that of block `first`.
    pub fn beginning_with(first: BlockNumber) -> Self {
        Self { first, ..Self::default() }
    }

    pub fn of(&mut self, block: BlockNumber) -> Option<&mut BlockRow> {
        let Some(place) = block.checked_sub(self.first) else {
            self.too_late += 1;
            return None;
        };
        let place = place as usize;
        if place >= self.rows.len() {
            self.rows.resize_with(place + 1, || None);
        }
        Some(self.rows[place].get_or_insert_default())
    }

    /// Close the row of the oldest block.
    pub fn take(&mut self, block: BlockNumber) -> Option<Box<BlockRow>> {
        debug_assert_eq!(block, self.first);
        self.first = block + 1;
        self.rows.pop_front().flatten()
    }
}
