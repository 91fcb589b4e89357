//! The messages that hosts write, with their names in the newer and the older logging system.

/// One message. The order is that of `MESSAGES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Message {
    LoopStart,
    BlockContext,
    LedgerState,
    LedgerView,
    StateInfo,
    IsLeader,
    NotLeader,
    Ticked,
    Snapshot,
    Forged,
    AdoptedBlock,
    LedgerMetrics,
    Resources,
    DownloadedHeader,
    ValidatedHeader,
    GaveToken,
    JumpingWaiting,
    JumpingInstruction,
    AddedFetch,
    AcknowledgedFetch,
    SendFetch,
    StartedBatch,
    CompletedFetch,
    CompletedBatch,
    QueueRising,
    QueueFalling,
    StarvationEnded,
    StarvationBegan,
    Popped,
    Popping,
    VolatileRising,
    VolatileFalling,
    AlreadyInVolatile,
    LimitOnEagerness,
    TryAdd,
    TrySwitch,
    StoreOnly,
    TentativeRising,
    TentativeFalling,
    TentativeOutdated,
    ChangingSelection,
    AddedToChain,
    SwitchedToFork,
    CopiedToImmutable,
    ScheduledCollection,
    PerformedCollection,
    TookSnapshotRising,
    TookSnapshotFalling,
    AnnounceRising,
    AnnounceFalling,
    Stream,
    SendBlock,
    CanRequest,
    CannotRequest,
    Collected,
    Processed,
    AddedTx,
    RejectedTx,
    RemoveTxs,
    FoundIntersection,
    RolledBack,
    NewFollower,
}

/// The older system nests messages of the forge loop and prints others flat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Legacy {
    /// It does not have the message.
    None,
    Flat(&'static str),
    Nested(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct MessageInfo {
    pub message: Message,
    pub namespace: &'static str,
    pub severity: &'static str,
    pub legacy: Legacy,
}

const fn row(message: Message, namespace: &'static str, severity: &'static str, legacy: Legacy) -> MessageInfo {
    MessageInfo { message, namespace, severity, legacy }
}

const LEADERSHIP: Legacy = Legacy::Flat("LeadershipCheck");
const FORGE: Legacy = Legacy::Nested("Forge");
const SYNC_CLIENT: Legacy = Legacy::Flat("ChainSyncClient");
const SYNC_SERVER: Legacy = Legacy::Flat("ChainSyncHeaderServer");
const FETCH_CLIENT: Legacy = Legacy::Flat("BlockFetchClient");
const FETCH_SERVER: Legacy = Legacy::Flat("BlockFetchServer");
const CHAIN_DB: Legacy = Legacy::Flat("ChainDB");
const MEMPOOL: Legacy = Legacy::Flat("Mempool");
const INBOUND: Legacy = Legacy::Flat("TxInbound");

pub const MESSAGES: [MessageInfo; 62] = {
    use Message as M;
    [
        row(M::LoopStart, "Forge.Loop.StartLeadershipCheck", "Info", LEADERSHIP),
        row(M::BlockContext, "Forge.Loop.BlockContext", "Debug", FORGE),
        row(M::LedgerState, "Forge.Loop.LedgerState", "Debug", FORGE),
        row(M::LedgerView, "Forge.Loop.LedgerView", "Debug", FORGE),
        row(M::StateInfo, "Forge.StateInfo.StateInfo", "Info", Legacy::None),
        row(M::IsLeader, "Forge.Loop.NodeIsLeader", "Info", FORGE),
        row(M::NotLeader, "Forge.Loop.NodeNotLeader", "Info", FORGE),
        row(M::Ticked, "Forge.Loop.ForgeTickedLedgerState", "Debug", FORGE),
        row(M::Snapshot, "Forge.Loop.ForgingMempoolSnapshot", "Debug", FORGE),
        row(M::Forged, "Forge.Loop.ForgedBlock", "Info", FORGE),
        row(M::AdoptedBlock, "Forge.Loop.AdoptedBlock", "Info", FORGE),
        row(M::LedgerMetrics, "LedgerMetrics", "Info", Legacy::None),
        row(M::Resources, "Resources", "Info", Legacy::Flat("resources")),
        row(M::DownloadedHeader, "ChainSync.Client.DownloadedHeader", "Info", SYNC_CLIENT),
        row(M::ValidatedHeader, "ChainSync.Client.ValidatedHeader", "Debug", Legacy::None),
        row(M::GaveToken, "ChainSync.Client.GaveLoPToken", "Debug", Legacy::None),
        row(M::JumpingWaiting, "ChainSync.Client.JumpingWaitingForNextInstruction", "Debug", Legacy::None),
        row(M::JumpingInstruction, "ChainSync.Client.JumpingInstructionIs", "Debug", Legacy::None),
        row(M::AddedFetch, "BlockFetch.Client.AddedFetchRequest", "Info", FETCH_CLIENT),
        row(M::AcknowledgedFetch, "BlockFetch.Client.AcknowledgedFetchRequest", "Info", FETCH_CLIENT),
        row(M::SendFetch, "BlockFetch.Client.SendFetchRequest", "Info", FETCH_CLIENT),
        row(M::StartedBatch, "BlockFetch.Client.StartedFetchBatch", "Info", FETCH_CLIENT),
        row(M::CompletedFetch, "BlockFetch.Client.CompletedBlockFetch", "Info", FETCH_CLIENT),
        row(M::CompletedBatch, "BlockFetch.Client.CompletedFetchBatch", "Info", FETCH_CLIENT),
        row(M::QueueRising, "ChainDB.AddBlockEvent.AddedBlockToQueue", "Debug", CHAIN_DB),
        row(M::QueueFalling, "ChainDB.AddBlockEvent.AddedBlockToQueue", "Debug", CHAIN_DB),
        row(M::StarvationEnded, "ChainDB.ChainSelStarvationEvent", "Debug", Legacy::None),
        row(M::StarvationBegan, "ChainDB.ChainSelStarvationEvent", "Debug", Legacy::None),
        row(M::Popped, "ChainDB.AddBlockEvent.PoppedBlockFromQueue", "Debug", CHAIN_DB),
        row(M::Popping, "ChainDB.AddBlockEvent.PoppingFromQueue", "Debug", Legacy::None),
        row(M::VolatileRising, "ChainDB.AddBlockEvent.AddedBlockToVolatileDB", "Debug", CHAIN_DB),
        row(M::VolatileFalling, "ChainDB.AddBlockEvent.AddedBlockToVolatileDB", "Debug", CHAIN_DB),
        row(M::AlreadyInVolatile, "ChainDB.AddBlockEvent.IgnoreBlockAlreadyInVolatileDB", "Info", CHAIN_DB),
        row(M::LimitOnEagerness, "ChainDB.AddBlockEvent.ChainSelectionLoEDebug", "Debug", Legacy::None),
        row(M::TryAdd, "ChainDB.AddBlockEvent.TryAddToCurrentChain", "Debug", CHAIN_DB),
        row(M::TrySwitch, "ChainDB.AddBlockEvent.TrySwitchToAFork", "Info", CHAIN_DB),
        row(M::StoreOnly, "ChainDB.AddBlockEvent.StoreButDontChange", "Debug", CHAIN_DB),
        row(M::TentativeRising, "ChainDB.AddBlockEvent.PipeliningEvent.SetTentativeHeader", "Debug", CHAIN_DB),
        row(M::TentativeFalling, "ChainDB.AddBlockEvent.PipeliningEvent.SetTentativeHeader", "Debug", CHAIN_DB),
        row(M::TentativeOutdated, "ChainDB.AddBlockEvent.PipeliningEvent.OutdatedTentativeHeader", "Debug", CHAIN_DB),
        row(M::ChangingSelection, "ChainDB.AddBlockEvent.ChangingSelection", "Debug", CHAIN_DB),
        row(M::AddedToChain, "ChainDB.AddBlockEvent.AddedToCurrentChain", "Notice", CHAIN_DB),
        row(M::SwitchedToFork, "ChainDB.AddBlockEvent.SwitchedToAFork", "Notice", CHAIN_DB),
        row(M::CopiedToImmutable, "ChainDB.CopyToImmutableDBEvent.CopiedBlockToImmutableDB", "Debug", CHAIN_DB),
        row(M::ScheduledCollection, "ChainDB.GCEvent.ScheduledGC", "Debug", Legacy::None),
        row(M::PerformedCollection, "ChainDB.GCEvent.PerformedGC", "Debug", Legacy::None),
        row(M::TookSnapshotRising, "ChainDB.LedgerEvent.Snapshot.TookSnapshot", "Info", CHAIN_DB),
        row(M::TookSnapshotFalling, "ChainDB.LedgerEvent.Snapshot.TookSnapshot", "Info", Legacy::None),
        row(M::AnnounceRising, "ChainSync.ServerHeader.Update", "Info", SYNC_SERVER),
        row(M::AnnounceFalling, "ChainSync.ServerHeader.Update", "Debug", SYNC_SERVER),
        row(M::Stream, "ChainDB.IteratorEvent.StreamFromVolatileDB", "Debug", CHAIN_DB),
        row(M::SendBlock, "BlockFetch.Server.SendBlock", "Info", FETCH_SERVER),
        row(M::CanRequest, "TxSubmission.TxInbound.CanRequestMoreTxs", "Debug", INBOUND),
        row(M::CannotRequest, "TxSubmission.TxInbound.CannotRequestMoreTxs", "Debug", INBOUND),
        row(M::Collected, "TxSubmission.TxInbound.Collected", "Debug", INBOUND),
        row(M::Processed, "TxSubmission.TxInbound.Processed", "Debug", INBOUND),
        row(M::AddedTx, "Mempool.AddedTx", "Info", MEMPOOL),
        row(M::RejectedTx, "Mempool.RejectedTx", "Info", MEMPOOL),
        row(M::RemoveTxs, "Mempool.RemoveTxs", "Info", MEMPOOL),
        row(M::FoundIntersection, "ChainSync.Client.FoundIntersection", "Info", Legacy::None),
        row(M::RolledBack, "ChainSync.Client.RolledBack", "Notice", SYNC_CLIENT),
        row(M::NewFollower, "ChainDB.FollowerEvent.NewFollower", "Debug", Legacy::None),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_at_its_index() {
        for (place, info) in MESSAGES.iter().enumerate() {
            assert_eq!(info.message as usize, place);
        }
        assert_eq!(MESSAGES.len(), Message::NewFollower as usize + 1);
    }
}
