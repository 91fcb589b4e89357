//! Lines of a node's start, its end and its peer governor: they say little, but a reader must get past them.

use crate::logs::blocks::BlockText;
use crate::logs::data::Pen;
use crate::logs::frame::Thread;
use crate::logs::order::Format;
use crate::trace::GENESIS;

/// One line.
pub enum Canned {
    /// Text that is not JSON, without the newline.
    Text(String),
    Object {
        namespace: &'static str,
        legacy: &'static str,
        severity: &'static str,
        thread: Thread,
        data: String,
    },
}

fn object(
    namespace: &'static str,
    legacy: &'static str,
    severity: &'static str,
    thread: Thread,
    data: impl Into<String>,
) -> Canned {
    Canned::Object { namespace, legacy, severity, thread, data: data.into() }
}

/// What the lines of a start and an end depend on.
pub struct Context<'a> {
    pub format: Format,
    pub host: &'a str,
    pub address: &'a str,
    pub last_slot: u64,
    pub tip: &'a BlockText,
    pub immutable: &'a BlockText,
    pub peers: usize,
}

/// Microseconds after the start of the process at which its lines come.
pub const START_US: [u64; 28] = [
    0, 90, 180, 270, 300, 120_000, 124_000, 124_090, 124_104, 124_500, 124_900, 124_930, 125_260, 125_290, 125_440,
    4_100_000, 4_100_040, 4_100_130, 4_100_250, 4_100_300, 4_101_000, 4_101_260, 4_101_400, 4_101_430, 4_101_560,
    4_101_780, 4_101_840, 4_126_000,
];

fn start_kind(format: Format, event: &str, modern: &str) -> String {
    if format == Format::Legacy { format!("{event}.{modern}") } else { modern.to_owned() }
}

fn point(block: &BlockText) -> String {
    let mut out = Vec::new();
    Pen(&mut out).block_point(block);
    String::from_utf8_lossy(&out).into_owned()
}

/// The line of that number in a node's start.
pub fn start(number: usize, context: &Context) -> Option<Canned> {
    if number < 6 {
        return introduction(number, context);
    }
    if number < 20 {
        return Some(database(number, context));
    }
    (context.format != Format::Legacy).then(|| diffusion(number, context))
}

fn version(format: Format) -> (&'static str, &'static str) {
    match format {
        Format::Legacy => ("8.1.2", "8.10.7"),
        Format::V10_4 => ("10.4.1", "9.6.5"),
        Format::V10_5 => ("10.5.4", "9.6.5"),
        Format::V10_7 => ("10.7.1", "9.6.7"),
    }
}

fn introduction(number: usize, context: &Context) -> Option<Canned> {
    let (node, compiler) = version(context.format);
    if number == 0 {
        let text = format!(
            "Node configuration: NodeConfiguration {{ncSocketConfig = SocketConfig {{ncNodePortNumber = Last \
             {{getLast = Just 3001}}, ncSocketPath = Last {{getLast = Just \"node.socket\"}}}}, ncConfigFile = \
             \"config.json\", ncTopologyFile = \"topology.json\", ncShutdownConfig = ShutdownConfig {{scIPC = Nothing, \
             scOnSyncLimit = Just (ASlot (SlotNo {}))}}}}",
            context.last_slot
        );
        return Some(Canned::Text(text));
    }
    if context.format == Format::Legacy {
        return None;
    }
    Some(match number {
        1 => object(
            "Reflection.TracerInfo",
            "",
            "Notice",
            Thread::Main,
            "\"allTracers\":\" BlockFetch.Client BlockFetch.Server ChainDB ChainSync.Client ChainSync.ServerHeader \
             Forge.Loop Forge.StateInfo Mempool TxSubmission.TxInbound Version\",\"kind\":\"TracerMeta\",\
             \"noMetrics\":\"BlockFetch.Client ChainSync.Client\",\"silentTracers\":\"Net.Churn Net.Peers.List\"",
        ),
        2 => object(
            "Reflection.TracerConsistencyWarnings",
            "",
            "Error",
            Thread::Main,
            "\"errors\":\"[\\\"Config namespace error: Illegal namespace Mempool.LedgerFound\\\"]\",\
             \"kind\":\"TracerConsistencyWarnings\"",
        ),
        3 => object(
            "Reflection.TracerConfigInfo",
            "",
            "Notice",
            Thread::Main,
            format!(
                "\"conf\":{{\"TraceOptionForwarder\":{{\"connQueueSize\":64,\"disconnQueueSize\":128,\
                 \"maxReconnectDelay\":30,\"verbosity\":\"Minimum\"}},\"TraceOptionLedgerMetricsFrequency\":null,\
                 \"TraceOptionMetricsPrefix\":\"cardano.node.metrics.\",\"TraceOptionNodeName\":\"{}\",\
                 \"TraceOptionPeerFrequency\":2000,\"TraceOptionResourceFrequency\":1000,\"TraceOptions\":{{\
                 \"\":{{\"backends\":[\"Stdout MachineFormat\",\"EKGBackend\",\"Forwarder\"],\"detail\":\"DNormal\",\
                 \"severity\":\"Notice\"}},\"ChainDB\":{{\"severity\":\"Debug\"}},\"Forge.Loop\":{{\
                 \"severity\":\"Debug\"}}}}}}",
                context.host
            ),
        ),
        4 => object(
            "Version.NodeVersion",
            "",
            "Info",
            Thread::Main,
            format!(
                "\"applicationName\":\"cardano-node\",\"applicationVersion\":\"{node}\",\"architecture\":\"x86_64\",\
                 \"compilerName\":\"ghc\",\"compilerVersion\":\"{compiler}\",\
                 \"gitRevision\":\"0000000000000000000000000000000000000000\",\"osName\":\"linux\""
            ),
        ),
        _ => object(
            "Startup.MovedTopLevelOption",
            "",
            "Warning",
            Thread::Main,
            "\"kind\":\"MovedTopLevelOption\",\"option\":\"SnapshotInterval\"",
        ),
    })
}

fn database(number: usize, context: &Context) -> Canned {
    let kind = |event: &str, name: &str| format!("\"kind\":\"{}\"", start_kind(context.format, event, name));
    let info = |namespace, data: String| object(namespace, "ChainDB", "Info", Thread::Main, data);
    let opening = |name: &str| kind("TraceOpenEvent", name);
    match number {
        6 => info("ChainDB.LastShutdownUnclean", "\"kind\":\"LastShutdownUnclean\"".to_owned()),
        7 => info("ChainDB.OpenEvent.StartedOpeningDB", opening("StartedOpeningDB")),
        8 => info("ChainDB.OpenEvent.StartedOpeningImmutableDB", opening("StartedOpeningImmutableDB")),
        9 => info("ChainDB.ImmDbEvent.NoValidLastLocation", kind("TraceImmutableDBEvent", "NoValidLastLocation")),
        10 => info(
            "ChainDB.OpenEvent.OpenedImmutableDB",
            format!("\"epoch\":\"0\",\"immtip\":{},{}", point(context.immutable), opening("OpenedImmutableDB")),
        ),
        11 => info("ChainDB.OpenEvent.StartedOpeningVolatileDB", opening("StartedOpeningVolatileDB")),
        12 => {
            let newest = if context.tip.block.number == GENESIS {
                "NoMaxSlotNo".to_owned()
            } else {
                format!("MaxSlotNo (SlotNo {})", context.tip.block.slot)
            };
            info(
                "ChainDB.OpenEvent.OpenedVolatileDB",
                format!("{},\"maxSlotNo\":\"{newest}\"", opening("OpenedVolatileDB")),
            )
        }
        13 => info("ChainDB.OpenEvent.StartedOpeningLgrDB", opening("StartedOpeningLgrDB")),
        14 => info(
            "ChainDB.LedgerEvent.Replay.ReplayStart.ReplayFromGenesis",
            kind("TraceLedgerReplayEvent", "ReplayFromGenesis"),
        ),
        15 => info("ChainDB.OpenEvent.OpenedLgrDB", opening("OpenedLgrDB")),
        16 => info(
            "ChainDB.InitChainSelEvent.StartedInitChainSelection",
            "\"kind\":\"Follower.StartedInitChainSelection\"".to_owned(),
        ),
        17 => info(
            "ChainDB.InitChainSelEvent.InitialChainSelected",
            "\"kind\":\"Follower.InitialChainSelected\"".to_owned(),
        ),
        18 => info(
            "ChainDB.OpenEvent.OpenedDB",
            format!("\"immtip\":{},{},\"tip\":{}", point(context.immutable), opening("OpenedDB"), point(context.tip)),
        ),
        _ => object(
            "ChainDB.AddBlockEvent.PoppingFromQueue",
            "ChainDB",
            "Debug",
            Thread::AddBlock,
            "\"kind\":\"PoppingFromQueue\"",
        ),
    }
}

fn diffusion(number: usize, context: &Context) -> Canned {
    let socket = "\\\"node.socket\\\"";
    match number {
        20 => object(
            "Consensus.GSM.InitializedInPreSyncing",
            "",
            "Notice",
            Thread::Progress,
            "\"kind\":\"GsmEventInitializedInPreSyncing\"",
        ),
        21 => object(
            "Shutdown.ArmedAt",
            "",
            "Warning",
            Thread::Main,
            format!("\"kind\":\"ShutdownArmedAt\",\"limit\":{{\"contents\":{},\"tag\":\"ASlot\"}}", context.last_slot),
        ),
        22 => object(
            "Startup.DiffusionInit.CreatedLocalSocket",
            "",
            "Info",
            Thread::LocalServer,
            format!("\"kind\":\"CreatedLocalSocket\",\"path\":\"LocalAddress {socket}\""),
        ),
        23 => object(
            "Startup.DiffusionInit.LocalSocketUp",
            "",
            "Info",
            Thread::LocalServer,
            format!("\"kind\":\"LocalSocketUp\",\"path\":\"LocalAddress {socket}\",\"socket\":\"FileDescriptor 25\""),
        ),
        24 => object(
            "Startup.DiffusionInit.ServerSocketUp",
            "",
            "Info",
            Thread::RemoteServer,
            format!("\"kind\":\"ServerSocketUp\",\"socket\":\"{}:3001\"", context.address),
        ),
        25 => object(
            "Net.Server.Local.Started",
            "",
            "Notice",
            Thread::LocalServer,
            "\"addresses\":[{\"path\":\"node.socket\"}],\"kind\":\"AcceptPolicyTrace\"",
        ),
        26 => object(
            "Net.Server.Remote.Started",
            "",
            "Notice",
            Thread::RemoteServer,
            format!(
                "\"addresses\":[{{\"addr\":\"{}\",\"port\":\"3001\"}}],\"kind\":\"AcceptPolicyTrace\"",
                context.address
            ),
        ),
        _ => object(
            "Consensus.GSM.EnterCaughtUp",
            "",
            "Notice",
            Thread::Progress,
            format!(
                "\"currentSelection\":{},\"kind\":\"GsmEventEnterCaughtUp\",\"peerNumber\":{}",
                tip_object(context.tip),
                context.peers
            ),
        ),
    }
}

fn tip_object(tip: &BlockText) -> String {
    if tip.block.number == GENESIS {
        return "{\"kind\":\"TipGenesis\"}".to_owned();
    }
    format!(
        "{{\"kind\":\"Tip\",\"tipBlockNo\":{},\"tipHash\":\"{}\",\"tipSlotNo\":{}}}",
        tip.block_no,
        String::from_utf8_lossy(&tip.hash),
        tip.block.slot
    )
}

/// Microseconds after the shutdown was requested.
pub const END_US: [u64; 9] = [0, 2_500, 7_600, 7_650, 10_100, 26_000, 27_000, 27_090, 27_110];

/// The line of that number in a node's end.
pub fn end(number: usize, context: &Context) -> Option<Canned> {
    let main = |namespace, severity, data: String| object(namespace, "ChainDB", severity, Thread::Main, data);
    let server = |namespace, severity, thread, kind: &str| {
        object(namespace, "", severity, thread, format!("\"kind\":\"{kind}\""))
    };
    let legacy = context.format == Format::Legacy;
    Some(match number {
        0..=5 if legacy => return None,
        0 => object(
            "Shutdown.Requesting",
            "",
            "Warning",
            Thread::Shutdown,
            format!(
                "\"kind\":\"RequestingShutdown\",\
                 \"reason\":\"spawnLimitTerminator: reached target slot SlotNo {}\"",
                context.last_slot
            ),
        ),
        1 => server("Net.Server.Remote.Stopped", "Notice", Thread::RemoteServer, "ServerStopped"),
        2 => server("Net.Server.Local.Stopped", "Notice", Thread::LocalServer, "ServerStopped"),
        3 => server("Net.ConnectionManager.Remote.Shutdown", "Info", Thread::RemoteServer, "Shutdown"),
        4 => server("Net.ConnectionManager.Local.Shutdown", "Info", Thread::LocalServer, "Shutdown"),
        5 => object(
            "Startup.DiffusionInit.DiffusionErrored",
            "",
            "Critical",
            Thread::Main,
            "\"error\":\"ExceptionInLinkedThread \\\"ThreadId 47\\\" ExitSuccess\",\"kind\":\"DiffusionErrored\"",
        ),
        6 => main(
            "ChainDB.ImmDbEvent.DBClosed",
            "Info",
            format!("\"kind\":\"{}\"", start_kind(context.format, "TraceImmutableDBEvent", "DBClosed")),
        ),
        7 => main(
            "ChainDB.VolatileDbEvent.DBClosed",
            "Debug",
            format!("\"kind\":\"{}\"", start_kind(context.format, "TraceVolatileDbEvent", "DBClosed")),
        ),
        _ => main(
            "ChainDB.OpenEvent.ClosedDB",
            "Info",
            format!(
                "\"immtip\":{},\"kind\":\"TraceOpenEvent.ClosedDB\",\"tip\":{}",
                point(context.immutable),
                point(context.tip)
            ),
        ),
    })
}

/// Microseconds after the peer governor looked for peers; it does so every minute and a half and finds none.
pub const GOVERNOR_US: [u64; 11] = [0, 160, 610, 640, 655, 675, 740, 1_130, 1_200, 2_250, 3_030];
pub const GOVERNOR_PERIOD_NS: i64 = 90_000_000_000;

/// The line of that number in such a look; `age_ns` since the process started.
pub fn governor(number: usize, format: Format, age_ns: i64) -> Option<Canned> {
    if format == Format::Legacy {
        return None;
    }
    let selection = |namespace, data: &str| Some(object(namespace, "", "Info", Thread::Governor, data.to_owned()));
    let ledger = |namespace, severity, data: String| Some(object(namespace, "", severity, Thread::LedgerPeers, data));
    match number {
        0 => selection(
            "Net.PeerSelection.Selection.BigLedgerPeersRequest",
            "\"kind\":\"BigLedgerPeersRequest\",\"numberOfBigLedgerPeers\":0,\"targetNumberOfBigLedgerPeers\":15",
        ),
        1 => selection(
            "Net.PeerSelection.Selection.PublicRootsRequest",
            "\"kind\":\"PublicRootsRequest\",\"numberOfRootPeers\":1,\"targetNumberOfRootPeers\":100",
        ),
        2 => ledger(
            "Net.Peers.Ledger.TraceUseLedgerPeers",
            "Info",
            "\"kind\":\"UseLedgerPeers\",\"useLedgerPeers\":-1".to_owned(),
        ),
        3 => ledger(
            "Net.Peers.Ledger.RequestForPeers",
            "Debug",
            "\"kind\":\"RequestForPeers\",\"numberOfPeers\":15".to_owned(),
        ),
        4 => {
            let mut age = Vec::new();
            crate::logs::text::push_seconds(&mut age, age_ns / 1000 * 1000);
            let age = String::from_utf8_lossy(&age);
            ledger(
                "Net.Peers.Ledger.ReusingLedgerState",
                "Debug",
                format!("\"kind\":\"ReusingLedgerState\",\"ledgerStateAge\":{age},\"numberOfPools\":0"),
            )
        }
        5 => ledger("Net.Peers.Ledger.WaitingOnRequest", "Debug", "\"kind\":\"WaitingOnRequest\"".to_owned()),
        6..=8 => selection(
            "Net.Peers.PublicRoot.PublicRootRelayAccessPoint",
            "\"kind\":\"PublicRootRelayAddresses\",\"relayAddresses\":[]",
        ),
        9 => selection(
            "Net.PeerSelection.Selection.BigLedgerPeersResults",
            "\"diffTime\":4,\"group\":2,\"kind\":\"BigLedgerPeersResults\",\"result\":[]",
        ),
        _ => selection(
            "Net.PeerSelection.Selection.PublicRootsResults",
            "\"diffTime\":2,\"group\":1,\"kind\":\"PublicRootsResults\",\"result\":{\"bigLedgerPeers\":[],\
             \"bootstrapPeers\":[],\"kind\":\"PublicRootPeers\",\"ledgerPeers\":[],\"publicConfigPeers\":[]}",
        ),
    }
}
