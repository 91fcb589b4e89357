//! Events in the order of their times; events of one time in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that will happen at a host to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<K> {
    pub time_ns: u64,
    pub host: u32,
    pub block: u32,
    pub kind: K,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64, u32);

#[derive(Debug)]
struct Entry<K> {
    key: Reverse<Key>,
    host: u32,
    block: u32,
    kind: K,
}

impl<K> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K> Eq for Entry<K> {}

impl<K> PartialOrd for Entry<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Entry<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A queue of events.
#[derive(Debug)]
pub struct EventQueue<K> {
    heap: BinaryHeap<Entry<K>>,
    planned: u32,
}

impl<K> Default for EventQueue<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}

impl<K> EventQueue<K> {
    pub fn push(&mut self, event: Event<K>) {
        // Wraps after 4 billion events; two of one time are never that far apart.
        self.planned = self.planned.wrapping_add(1);
        let key = Reverse(Key(event.time_ns, self.planned));
        self.heap.push(Entry { key, host: event.host, block: event.block, kind: event.kind });
    }

    pub fn pop(&mut self) -> Option<Event<K>> {
        self.heap.pop().map(|entry| Event {
            time_ns: entry.key.0.0,
            host: entry.host,
            block: entry.block,
            kind: entry.kind,
        })
    }

    pub fn next_time_ns(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.key.0.0)
    }
}
