//! The events at a host: those of the network, and the resulting lines, in chronological order.

use crate::logs::message::Message;
use crate::trace::{Block, BlockNumber, LoopTimes, Observer, Selection};

/// One event of the network at one host.
#[derive(Debug, Clone, Copy)]
pub enum Heard {
    Forged { block: BlockNumber, times: LoopTimes },
    Header { at_ns: i64, peer: u32, block: BlockNumber },
    Requested { at_ns: i64, peer: u32, block: BlockNumber, length: u32 },
    Sent { at_ns: i64, peer: u32, block: BlockNumber },
    Fetched { at_ns: i64, peer: u32, block: BlockNumber, first: bool },
    Announced { at_ns: i64, peer: u32, block: BlockNumber, rollback: Option<BlockNumber> },
    Selected { at_ns: i64, block: BlockNumber, selection: Selection },
}

/// What a host does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Say(Message),
    /// The line of that number (`value`) of its start, its end, its peer governor.
    Start,
    End,
    Governor,
    /// A core is busy for a while; `value` is the reason.
    Busy,
    RollBackRising,
    RollBackFalling,
    NonBlockingRising,
    NonBlockingFalling,
}

/// One action of a host. The meaning of `value` depends on the action: a slot, a count, a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub at_ns: i64,
    pub value: u64,
    pub block: BlockNumber,
    pub link: u16,
    pub action: Action,
}

/// Listens to the network: records what every host received, and the blocks, until the hosts write them.
pub struct Listener<'a, F: FnMut(&Block, &LoopTimes)> {
    pub inboxes: &'a mut [Vec<Heard>],
    /// Called for every new block, before any host receives it.
    pub forged: F,
}

impl<F: FnMut(&Block, &LoopTimes)> Listener<'_, F> {
    fn tell(&mut self, host: u32, heard: Heard) {
        self.inboxes[host as usize].push(heard);
    }
}

impl<F: FnMut(&Block, &LoopTimes)> Observer for Listener<'_, F> {
    fn forged(&mut self, block: &Block, times: &LoopTimes) {
        (self.forged)(block, times);
        self.tell(block.forger, Heard::Forged { block: block.number, times: *times });
    }

    fn header(&mut self, time_ns: u64, host: u32, peer: u32, block: &Block) {
        self.tell(host, Heard::Header { at_ns: time_ns as i64, peer, block: block.number });
    }

    fn requested(&mut self, time_ns: u64, host: u32, peer: u32, head: &Block, length: u32) {
        self.tell(host, Heard::Requested { at_ns: time_ns as i64, peer, block: head.number, length });
    }

    fn sent(&mut self, time_ns: u64, peer: u32, host: u32, block: &Block) {
        self.tell(peer, Heard::Sent { at_ns: time_ns as i64, peer: host, block: block.number });
    }

    fn fetched(&mut self, time_ns: u64, host: u32, peer: u32, block: &Block, first: bool) {
        self.tell(host, Heard::Fetched { at_ns: time_ns as i64, peer, block: block.number, first });
    }

    fn announced(&mut self, time_ns: u64, host: u32, peer: u32, block: &Block, rollback: Option<&Block>) {
        let rollback = rollback.map(|ancestor| ancestor.number);
        self.tell(host, Heard::Announced { at_ns: time_ns as i64, peer, block: block.number, rollback });
    }

    fn selected(&mut self, time_ns: u64, host: u32, block: &Block, selection: Selection) {
        self.tell(host, Heard::Selected { at_ns: time_ns as i64, block: block.number, selection });
    }
}
