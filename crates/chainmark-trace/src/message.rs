//! The messages that the analysis reads, by their names in nodes of all versions.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// The name of a message; empty if it has none.
struct Names {
    message: Message,
    /// Namespace of the present tracing system.
    present: &'static str,
    /// Namespace of its first versions.
    first: &'static str,
    /// `kind` of the system before it.
    legacy: &'static str,
}

macro_rules! messages {
    ($($variant:ident: $present:expr, $first:expr, $legacy:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Message { $($variant,)* }

        impl Message {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }

        const NAMES: &[Names] =
            &[$(Names { message: Message::$variant, present: $present, first: $first, legacy: $legacy },)*];
    };
}

messages! {
    Resources: "Resources", "Resources", "Resources";
    LoopStart: "Forge.Loop.StartLeadershipCheck", "Forge.Loop.StartLeadershipCheckPlus", "TraceStartLeadershipCheck";
    BlockContext: "Forge.Loop.BlockContext", "Forge.BlockContext", "TraceBlockContext";
    LedgerState: "Forge.Loop.LedgerState", "Forge.LedgerState", "TraceLedgerState";
    LedgerView: "Forge.Loop.LedgerView", "Forge.LedgerView", "TraceLedgerView";
    Leads: "Forge.Loop.NodeIsLeader", "Forge.NodeIsLeader", "TraceNodeIsLeader";
    LeadsNot: "Forge.Loop.NodeNotLeader", "Forge.NodeNotLeader", "TraceNodeNotLeader";
    Ticked: "Forge.Loop.TickedLedgerState", "Forge.TickedLedgerState", "TraceForgeTickedLedgerState";
    MempoolSnapshot: "Forge.Loop.MempoolSnapshot", "Forge.MempoolSnapshot", "TraceForgingMempoolSnapshot";
    Forged: "Forge.Loop.ForgedBlock", "Forge.ForgedBlock", "TraceForgedBlock";
    Noticed: "ChainSync.Client.DownloadedHeader", "ChainSyncClient.ChainSyncClientEvent.DownloadedHeader",
        "ChainSyncClientEvent.TraceDownloadedHeader";
    Requested: "BlockFetch.Client.SendFetchRequest", "BlockFetchClient.SendFetchRequest", "SendFetchRequest";
    Fetched: "BlockFetch.Client.CompletedBlockFetch", "BlockFetchClient.CompletedBlockFetch", "CompletedBlockFetch";
    AnnouncedLegacy: "", "", "ChainSyncServerEvent.TraceChainSyncServerRead.AddBlock";
    Announced: "ChainSync.ServerHeader.Update", "ChainSyncServerEvent.TraceChainSyncServerUpdate",
        "ChainSyncServerEvent.TraceChainSyncServerReadBlocked.AddBlock";
    Sent: "BlockFetch.Server.SendBlock", "BlockFetchServer.SendBlock", "TraceBlockFetchServerSendBlock";
    Added: "ChainDB.AddBlockEvent.AddedToCurrentChain", "ChainDB.AddBlockEvent.AddedToCurrentChain",
        "TraceAddBlockEvent.AddedToCurrentChain";
    Adopted: "Forge.Loop.AdoptedBlock", "Forge.AdoptedBlock", "TraceAdoptedBlock";
    LedgerSnapshot: "ChainDB.LedgerEvent.TookSnapshot", "TraceLedgerEvent.TookSnapshot",
        "TraceSnapshotEvent.TookSnapshot";
    LedgerMetrics: "LedgerMetrics", "LedgerMetrics", "LedgerMetrics";
    Acknowledged: "TraceBenchTxSubServAck", "TraceBenchTxSubServAck", "TraceBenchTxSubServAck";
    Collected: "TxSubmission.TxInbound.Collected", "TraceTxSubmissionCollected", "TraceTxSubmissionCollected";
    Processed: "TxSubmission.TxInbound.Processed", "TraceTxSubmissionProcessed", "TraceTxSubmissionProcessed";
    MempoolAdded: "Mempool.AddedTx", "Mempool.AddedTx", "TraceMempoolAddedTx";
    MempoolRemoved: "Mempool.RemoveTxs", "Mempool.RemoveTxs", "TraceMempoolRemoveTxs";
    MempoolRejected: "Mempool.RejectedTx", "Mempool.RejectedTx", "TraceMempoolRejectedTx";
    GeneratorSummary: "Benchmark.BenchTxSubSummary", "TraceBenchTxSubSummary", "TraceBenchTxSubSummary";
    // The published analysis does not know the following two; none of its names is one of theirs.
    Switched: "ChainDB.AddBlockEvent.SwitchedToAFork", "ChainDB.AddBlockEvent.SwitchedToAFork",
        "TraceAddBlockEvent.SwitchedToAFork";
    LedgerSnapshotRenamed: "ChainDB.LedgerEvent.Snapshot.TookSnapshot", "", "";
}

impl Message {
    /// The name under which the message is counted: its present namespace.
    pub fn name(self) -> &'static str {
        match self {
            // One message for the counts, except for the old nodes' name of the hash.
            Self::AnnouncedLegacy => Self::Announced.name(),
            _ => NAMES[self as usize].present,
        }
    }

    /// The message of a line, by its namespace and `kind`; the present names go first, the oldest last.
    pub fn find(ns: &[u8], kind: &[u8]) -> Option<Self> {
        let matching = |wanted: &[u8], name: fn(&Names) -> &'static str| {
            let names = NAMES.iter().find(|names| !name(names).is_empty() && name(names).as_bytes() == wanted);
            names.map(|names| names.message)
        };
        let short_kind = kind.strip_prefix(b"Cardano.Node.").unwrap_or(kind);
        matching(ns, |names| names.present)
            .or_else(|| matching(ns, |names| names.first))
            .or_else(|| matching(short_kind, |names| names.first))
            .or_else(|| matching(kind, |names| names.legacy))
            // The oldest nodes have two kinds for one message.
            .or_else(|| (kind == b"ResourceStats").then_some(Self::Resources))
    }
}

/// How to process the lines of one namespace and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Decode(Message),
    Ignore,
    /// Ignored by the analysis, but it contains facts about the node itself.
    Note(Note),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    Version,
    Startup,
}

impl Route {
    fn find(ns: &[u8], kind: &[u8]) -> Self {
        match Message::find(ns, kind) {
            Some(message) => Self::Decode(message),
            None if ns == b"Version.NodeVersion" => Self::Note(Note::Version),
            None if ns.starts_with(b"Startup.") => Self::Note(Note::Startup),
            None => Self::Ignore,
        }
    }
}

struct Known {
    hash: u64,
    ns: Box<[u8]>,
    kind: Box<[u8]>,
    route: Route,
    ignored: u64,
}

/// The namespaces and kinds that were seen, and how often each was ignored.
pub struct Routes {
    known: Vec<Known>,
    /// Open addressing: index into `known` plus one, by hash.
    slots: Box<[u16; Self::SLOTS]>,
    /// Ignored lines beyond the maximum number of pairs.
    other: u64,
}

/// A line's place in `Routes`.
#[derive(Debug, Clone, Copy)]
pub struct Routed {
    pub route: Route,
    /// The index of its name among the seen ones; None if there were too many.
    pub known: Option<u16>,
}

impl Default for Routes {
    fn default() -> Self {
        Self { known: Vec::new(), slots: Box::new([0; Self::SLOTS]), other: 0 }
    }
}

impl Routes {
    const SLOTS: usize = 8_192;
    /// Maximum number of distinct pairs.
    const MAX_KNOWN: usize = 2_000;
    /// Longer names than this are not kept.
    const MAX_NAME: usize = 512;

    #[inline(always)]
    pub fn find(&mut self, ns: &[u8], kind: &[u8]) -> Routed {
        let mut hasher = FxHasher::default();
        hasher.write(ns);
        hasher.write(kind);
        let hash = hasher.finish();
        let mut slot = hash as usize % Self::SLOTS;
        while let Some(index) = self.slots[slot].checked_sub(1) {
            let known = &self.known[index as usize];
            if known.hash == hash && *known.ns == *ns && *known.kind == *kind {
                return Routed { route: known.route, known: Some(index) };
            }
            slot = (slot + 1) % Self::SLOTS;
        }
        self.learn(ns, kind, hash, slot)
    }

    #[cold]
    fn learn(&mut self, ns: &[u8], kind: &[u8], hash: u64, slot: usize) -> Routed {
        let route = Route::find(ns, kind);
        if self.known.len() >= Self::MAX_KNOWN || ns.len() + kind.len() > Self::MAX_NAME {
            return Routed { route, known: None };
        }
        let index = self.known.len() as u16;
        self.known.push(Known { hash, ns: ns.into(), kind: kind.into(), route, ignored: 0 });
        self.slots[slot] = index + 1;
        Routed { route, known: Some(index) }
    }

    /// Namespaces and kinds in the order in which they were first seen, without the first `count`.
    pub fn names_behind(&self, count: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.known[count..].iter().map(|known| (&*known.ns, &*known.kind))
    }

    #[inline(always)]
    pub fn count_ignored(&mut self, routed: Routed) {
        match routed.known {
            Some(index) => self.known[index as usize].ignored += 1,
            None => self.other += 1,
        }
    }

    /// Ignored lines as "namespace:kind" and their number.
    pub fn ignored(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let name =
            |known: &Known| format!("{}:{}", String::from_utf8_lossy(&known.ns), String::from_utf8_lossy(&known.kind));
        let known = self.known.iter().filter(|known| known.ignored > 0).map(move |known| (name(known), known.ignored));
        known.chain((self.other > 0).then(|| ("other".to_owned(), self.other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(ns: &str, kind: &str) -> Option<Message> {
        Message::find(ns.as_bytes(), kind.as_bytes())
    }

    #[test]
    fn old_and_new_names_are_recognised() {
        assert_eq!(find("Forge.Loop.BlockContext", "anything"), Some(Message::BlockContext));
        assert_eq!(find("Forge.Loop.StartLeadershipCheckPlus", ""), Some(Message::LoopStart));
        assert_eq!(find("cardano.node.Forge", "Cardano.Node.Forge.AdoptedBlock"), Some(Message::Adopted));
        assert_eq!(find("cardano.node.Forge", "TraceAdoptedBlock"), Some(Message::Adopted));
        assert_eq!(find("Forge.Loop.ForgeTickedLedgerState", "TraceForgeTickedLedgerState"), Some(Message::Ticked));
        assert_eq!(find("cardano.node.Forge", "Cardano.Node.TraceAdoptedBlock"), None);
        assert_eq!(
            find("ChainDB.LedgerEvent.Snapshot.TookSnapshot", "TookSnapshot"),
            Some(Message::LedgerSnapshotRenamed)
        );
        assert_eq!(find("ChainDB.LedgerEvent.Snapshot", "TookSnapshot"), None);
        assert_eq!(find("cardano.node.resources", "ResourceStats"), Some(Message::Resources));
        assert_eq!(find("", ""), None);
    }

    #[test]
    fn the_namespace_takes_precedence_over_the_kind() {
        assert_eq!(find("Forge.Loop.LedgerView", "TraceLedgerState"), Some(Message::LedgerView));
    }

    #[test]
    fn too_many_names_are_counted_together() {
        let mut routes = Routes::default();
        for number in 0..3_000 {
            let routed = routes.find(b"Some.Name", format!("kind{number}").as_bytes());
            routes.count_ignored(routed);
        }
        let counts: Vec<_> = routes.ignored().collect();
        assert_eq!(counts.len(), 2_001);
        assert_eq!(counts.last(), Some(&("other".to_owned(), 1_000)));
    }
}
