//! What a host's lines say at a moment: which data each message carries, and from which thread it comes.

use crate::logs::data::{self, Announcement, Change, Ledger, MempoolSize, Pen};
use crate::logs::event::{Action, Event};
use crate::logs::fault::Kind;
use crate::logs::frame::{Frames, LinkThread, Thread};
use crate::logs::host::Host;
use crate::logs::message::Message;
use crate::logs::resources::Usage;
use crate::logs::shared::{FROM_FORGE, Shared};
use crate::trace::BlockNumber;

impl Host {
    /// Append the data of a message.
    pub fn data(
        &self,
        pen: &mut Pen,
        event: &Event,
        message: Message,
        clock_ns: i64,
        usage: Option<&Usage>,
        shared: &Shared,
    ) {
        use Message as M;
        match message {
            M::LoopStart
            | M::BlockContext
            | M::LedgerState
            | M::LedgerView
            | M::StateInfo
            | M::IsLeader
            | M::NotLeader
            | M::Ticked
            | M::Snapshot
            | M::Forged
            | M::AdoptedBlock
            | M::LedgerMetrics => self.forge_data(pen, event, message, shared),
            M::Resources => data::resources(pen, usage.unwrap_or(&Usage::default())),
            M::CanRequest
            | M::CannotRequest
            | M::Collected
            | M::Processed
            | M::AddedTx
            | M::RejectedTx
            | M::RemoveTxs => self.transaction_data(pen, event, message, shared),
            M::DownloadedHeader
            | M::ValidatedHeader
            | M::GaveToken
            | M::JumpingWaiting
            | M::JumpingInstruction
            | M::AddedFetch
            | M::AcknowledgedFetch
            | M::SendFetch
            | M::StartedBatch
            | M::CompletedFetch
            | M::CompletedBatch
            | M::AnnounceRising
            | M::AnnounceFalling
            | M::FoundIntersection
            | M::RolledBack
            | M::Stream
            | M::SendBlock => self.peer_data(pen, event, message, clock_ns, shared),
            _ => self.chain_data(pen, event, message, shared),
        }
    }

    fn forge_data(&self, pen: &mut Pen, event: &Event, message: Message, shared: &Shared) {
        let slot = event.value;
        let tip = shared.blocks.get(self.tip);
        let block = shared.blocks.get(event.block);
        let parent = shared.blocks.get(block.block.parent);
        let ledger = Ledger { tip, delegators: shared.order.workload.delegators };
        match message {
            Message::LoopStart => data::loop_start(pen, self.format, slot, &ledger),
            Message::BlockContext => data::block_context(pen, slot, tip),
            Message::LedgerState => data::slot_only(pen, "TraceLedgerState", slot),
            Message::LedgerView => data::slot_only(pen, "TraceLedgerView", slot),
            Message::StateInfo => data::state_info(pen),
            Message::IsLeader => data::slot_only(pen, "TraceNodeIsLeader", slot),
            Message::NotLeader => data::slot_only(pen, "TraceNodeNotLeader", slot),
            Message::Ticked => data::ticked(pen, slot, parent),
            Message::Snapshot => data::snapshot(pen, slot, parent),
            Message::Forged => data::forged(pen, block, parent),
            Message::AdoptedBlock => data::adopted_block(pen, block),
            _ => data::ledger_figures(pen, "LedgerMetrics", slot, &ledger),
        }
    }

    fn peer_data(&self, pen: &mut Pen, event: &Event, message: Message, clock_ns: i64, shared: &Shared) {
        let block = shared.blocks.get(event.block);
        let Some(link) = self.links.get(event.link as usize) else { return };
        let connection = &link.connection[..];
        match message {
            Message::DownloadedHeader => data::downloaded_header(pen, self.format, block, connection),
            Message::ValidatedHeader => data::validated_header(pen, block, connection),
            Message::GaveToken => data::gave_token(pen, block, connection),
            Message::JumpingWaiting => data::jumping_waiting(pen, connection),
            Message::JumpingInstruction => data::jumping_instruction(pen, connection),
            Message::FoundIntersection => data::peer_only(pen, "FoundIntersection", connection),
            Message::RolledBack => data::rolled_back(pen, self.format, shared.blocks.get(self.tip), connection),
            Message::AddedFetch => data::peer_only(pen, "AddedFetchRequest", connection),
            Message::AcknowledgedFetch => data::peer_only(pen, "AcknowledgedFetchRequest", connection),
            Message::SendFetch => {
                data::send_fetch(pen, self.format, block, event.value, connection, link.one_way_s);
            }
            Message::StartedBatch => data::peer_only(pen, "StartedFetchBatch", connection),
            Message::CompletedFetch => {
                let delay_ns = clock_ns - shared.order.slot_start_ns(block.block.slot);
                data::completed_fetch(pen, block, delay_ns, connection);
            }
            Message::CompletedBatch => data::peer_only(pen, "CompletedFetchBatch", connection),
            Message::Stream => data::stream(pen, self.format, block),
            Message::SendBlock => data::send_block(pen, self.format, block, connection),
            edge => {
                let rising = edge == Message::AnnounceRising;
                let (rolls_back, blocking) = match event.action {
                    Action::RollBackRising | Action::RollBackFalling => (true, true),
                    Action::NonBlockingRising | Action::NonBlockingFalling => (false, false),
                    _ => (false, true),
                };
                let explicit = !rising && self.damage.holding(Kind::FallingEdges, event.at_ns).is_some();
                let announced = Announcement {
                    block: if rolls_back { shared.blocks.get(event.value as BlockNumber) } else { block },
                    rolls_back,
                    blocking,
                    rising: if rising { Some(true) } else { explicit.then_some(false) },
                    tip: shared.blocks.get(self.tip),
                };
                data::announcement(pen, self.format, &announced, connection);
            }
        }
    }

    fn chain_data(&self, pen: &mut Pen, event: &Event, message: Message, shared: &Shared) {
        let blocks = shared.blocks;
        let (format, tip) = (self.format, blocks.get(self.tip));
        let block = blocks.get(event.block);
        let real_point = |pen: &mut Pen, modern: &str, legacy: &str| {
            data::real_point_only(pen, format, block, modern, legacy);
        };
        match message {
            Message::QueueRising => data::queue(pen, format, block, true),
            Message::QueueFalling => data::queue(pen, format, block, false),
            Message::StarvationEnded => data::starvation_ended(pen, block),
            Message::StarvationBegan => data::starvation_began(pen),
            Message::Popped => {
                real_point(pen, "TraceAddBlockEvent.PoppedBlockFromQueue", "TraceAddBlockEvent.PoppedBlockFromQueue")
            }
            Message::Popping => drop(pen.text("\"kind\":\"PoppingFromQueue\"")),
            Message::NewFollower => drop(pen.text("\"kind\":\"NewFollower\"")),
            Message::VolatileRising => data::volatile(pen, format, block, true),
            Message::VolatileFalling => data::volatile(pen, format, block, false),
            Message::AlreadyInVolatile => {
                real_point(pen, "IgnoreBlockAlreadyInVolatileDB", "TraceAddBlockEvent.IgnoreBlockAlreadyInVolatileDB")
            }
            Message::LimitOnEagerness => data::limit_on_eagerness(pen, blocks.get(tip.immutable), tip),
            Message::TryAdd => {
                real_point(pen, "TryAddToCurrentChain", "TraceAddBlockEvent.TryAddToCurrentChain");
            }
            Message::TrySwitch => {
                real_point(pen, "TraceAddBlockEvent.TrySwitchToAFork", "TraceAddBlockEvent.TrySwitchToAFork");
            }
            Message::StoreOnly => real_point(pen, "StoreButDontChange", "TraceAddBlockEvent.StoreButDontChange"),
            Message::TentativeRising => data::tentative(pen, format, block, true),
            Message::TentativeFalling => data::tentative(pen, format, block, false),
            Message::TentativeOutdated => data::tentative_outdated(pen, format, block),
            Message::ChangingSelection => data::changing_selection(pen, block),
            Message::AddedToChain | Message::SwitchedToFork => {
                let change = Change {
                    new: block,
                    new_issuer: &shared.issuers[block.block.forger as usize],
                    old: tip,
                    old_issuer: &shared.issuers[tip.block.forger as usize],
                    switched: message == Message::SwitchedToFork,
                };
                data::selection(pen, format, &change);
            }
            Message::CopiedToImmutable => data::copied_to_immutable(pen, format, blocks.get(block.immutable)),
            Message::ScheduledCollection => data::collection(pen, "ScheduledGC", blocks.get(block.immutable)),
            Message::PerformedCollection => data::collection(pen, "PerformedGC", blocks.get(block.immutable)),
            Message::TookSnapshotRising => data::took_snapshot(pen, format, blocks.get(tip.immutable), None),
            _ => data::took_snapshot(pen, format, blocks.get(tip.immutable), Some(event.value as i64)),
        }
    }

    fn transaction_data(&self, pen: &mut Pen, event: &Event, message: Message, shared: &Shared) {
        let connection = self.links.get(event.link as usize).map_or(&[][..], |link| &link.connection);
        let transactions = shared.transactions;
        match message {
            Message::CanRequest => {
                data::request_count(pen, "TraceTxInboundCanRequestMoreTxs", event.value, connection);
            }
            Message::CannotRequest => {
                data::request_count(pen, "TraceTxInboundCannotRequestMoreTxs", event.value, connection);
            }
            Message::Collected => {
                data::request_count(pen, "TraceTxSubmissionCollected", event.value, connection);
            }
            Message::Processed => {
                data::processed(pen, self.accepted, self.collected as i64 - self.accepted as i64, connection);
            }
            Message::AddedTx => {
                let id = transactions.id(event.value);
                data::one_transaction(pen, "TraceMempoolAddedTx", self.mempool.size(), id);
            }
            Message::RejectedTx => {
                let id = transactions.id(event.value);
                data::one_transaction(pen, "TraceMempoolRejectedTx", self.mempool.size(), id);
            }
            _ => {
                let end = shared.blocks.get(event.block).transactions_end.min(self.mempool.high);
                let left = MempoolSize { transactions: self.mempool.high - end, bytes: self.mempool.bytes };
                let ids = (self.mempool.low..end).map(|number| transactions.id(number));
                data::removed(pen, self.format, left, ids);
            }
        }
    }
}

/// The thread that a message comes from.
pub fn thread(frames: &Frames, message: Message, link: u16) -> &[u8] {
    use Message as M;
    let of_peer = |thread| frames.link_thread(link, thread);
    match message {
        M::LedgerMetrics => frames.node_thread(Thread::LedgerMetrics),
        M::Resources => frames.node_thread(Thread::Resources),
        M::DownloadedHeader | M::ValidatedHeader | M::GaveToken | M::JumpingWaiting | M::JumpingInstruction => {
            of_peer(LinkThread::SyncClient)
        }
        M::AddedFetch => frames.node_thread(Thread::FetchDecision),
        M::AcknowledgedFetch | M::SendFetch => of_peer(LinkThread::FetchSend),
        M::QueueRising | M::QueueFalling if link == FROM_FORGE => frames.node_thread(Thread::Forge),
        M::StartedBatch | M::CompletedFetch | M::CompletedBatch | M::QueueRising | M::QueueFalling => {
            of_peer(LinkThread::FetchReceive)
        }
        M::FoundIntersection | M::RolledBack => of_peer(LinkThread::SyncClient),
        M::AnnounceRising | M::AnnounceFalling | M::NewFollower => of_peer(LinkThread::SyncServer),
        M::Stream | M::SendBlock => of_peer(LinkThread::FetchServer),
        M::CanRequest | M::CannotRequest | M::Collected | M::Processed | M::AddedTx | M::RejectedTx => {
            of_peer(LinkThread::Inbound)
        }
        M::RemoveTxs => frames.node_thread(Thread::Mempool),
        M::CopiedToImmutable | M::ScheduledCollection => frames.node_thread(Thread::Copy),
        M::PerformedCollection => frames.node_thread(Thread::Collect),
        M::TookSnapshotRising | M::TookSnapshotFalling => frames.node_thread(Thread::LedgerSnapshot),
        M::LoopStart
        | M::BlockContext
        | M::LedgerState
        | M::LedgerView
        | M::StateInfo
        | M::IsLeader
        | M::NotLeader
        | M::Ticked
        | M::Snapshot
        | M::Forged
        | M::AdoptedBlock => frames.node_thread(Thread::Forge),
        _ => frames.node_thread(Thread::AddBlock),
    }
}
