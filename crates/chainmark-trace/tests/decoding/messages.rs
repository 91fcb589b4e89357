//! The content of lines in all documented formats.

use crate::log_lines::{HASH, PARENT, fact, legacy, line, problem, quoted, read_text};

fn decodes_to(fields: &str, line: &str) {
    assert_eq!(fact(line).as_deref(), Some(fields), "{line}");
}

#[test]
fn messages_of_the_forge_loop_are_decoded() {
    let slot = |ns: &str| line(ns, r#"{"kind":"whatever","slot":464}"#);
    decodes_to("LoopStart { slot: 464, utxo_entries: 0, density: 0.0 }", &slot("Forge.Loop.StartLeadershipCheck"));
    decodes_to("LedgerState { slot: 464 }", &slot("Forge.Loop.LedgerState"));
    decodes_to("LedgerView { slot: 464 }", &slot("Forge.Loop.LedgerView"));
    decodes_to("Leadership { slot: 464, leads: true }", &slot("Forge.Loop.NodeIsLeader"));
    decodes_to("Leadership { slot: 464, leads: false }", &slot("Forge.Loop.NodeNotLeader"));
    decodes_to("Ticked { slot: 464, prev: None }", &slot("Forge.Loop.TickedLedgerState"));
    decodes_to("MempoolSnapshot { slot: 464 }", &slot("Forge.Loop.MempoolSnapshot"));
    decodes_to(
        "BlockContext { slot: 464, block_no: 22, tip: None }",
        &line(
            "Forge.Loop.BlockContext",
            r#"{"current slot":464,"kind":"TraceBlockContext","tip":"x","tipBlockNo":23}"#,
        ),
    );
    decodes_to(
        "BlockContext { slot: 7, block_no: -1, tip: None }",
        &line(
            "Forge.Loop.BlockContext",
            r#"{"current slot":7,"kind":"TraceBlockContext","tip":"genesis (origin)","tipBlockNo":0}"#,
        ),
    );
}

#[test]
fn values_in_haskell_notation_are_decoded() {
    let state = |slot: &str| line("Forge.Loop.LedgerState", &format!(r#"{{"slot":{slot}}}"#));
    for slot in ["\"464\"", r#""SlotNo 464""#, r#""SlotNo {unSlotNo = 464}""#, r#"{"unSlotNo":464}"#, r#"{"a":"464"}"#]
    {
        decodes_to("LedgerState { slot: 464 }", &state(slot));
    }
    for slot in ["\"\"", r#""Nothing""#, "{}", r#"{"a":1,"b":2}"#, "[464]", r#""SlotNo (-1)""#, r#"{"a":{"b":"x"}}"#] {
        assert_eq!(
            problem(&state(slot)).as_deref(),
            Some("`data.slot` is missing or not an unsigned integer"),
            "{slot}"
        );
    }
    decodes_to(
        "LedgerMetrics { slot: 464, utxo_entries: 4000213, density: 0.0481 }",
        &line("LedgerMetrics", r#"{"slot":"464","utxoSize":"4000213","chainDensity":"4.81e-2"}"#),
    );
    let ends = r#"Peer { local: Some("127.0.0.1:30001"), remote: Some("127.0.0.1:30000") }"#;
    let peer = r#""peer":"ConnectionId {localAddress = 127.0.0.1:30001, remoteAddress = 127.0.0.1:30000}""#;
    decodes_to(
        &format!("Fetched {{ block: {HASH}, size_bytes: None, peer: {ends} }}"),
        &line("BlockFetch.Client.CompletedBlockFetch", &format!(r#"{{"block":"\"{HASH}\"",{peer}}}"#)),
    );
}

#[test]
fn the_block_that_a_round_builds_on_is_read_with_its_slot_if_that_is_there() {
    let ticked =
        |prev: &str| line("Forge.Loop.TickedLedgerState", &format!(r#"{{"kind":"x","slot":9,"prev":"{prev}"}}"#));
    let point = |slot: &str| format!("Ticked {{ slot: 9, prev: Some(Point {{ block: {HASH}, slot: {slot} }}) }}");
    decodes_to(&point("Some(57)"), &ticked(&format!("{HASH}@57")));
    decodes_to(&point("None"), &ticked(HASH));
    decodes_to(&point("None"), &ticked(&format!("{HASH}@what")));
    for nothing in ["", "genesis (origin)", &HASH[..63], &format!("{}z@57", &HASH[..63])] {
        decodes_to("Ticked { slot: 9, prev: None }", &ticked(nothing));
    }
    let tip = format!(r#"{{"current slot":464,"kind":"x","tip":"{HASH}@441","tipBlockNo":23}}"#);
    let wanted =
        format!("BlockContext {{ slot: 464, block_no: 22, tip: Some(Point {{ block: {HASH}, slot: Some(441) }}) }}");
    decodes_to(&wanted, &line("Forge.Loop.BlockContext", &tip));
}

#[test]
fn real_nodes_name_two_messages_by_kind_only() {
    decodes_to(
        "Ticked { slot: 100, prev: None }",
        &line(
            "Forge.Loop.ForgeTickedLedgerState",
            r#"{"kind":"TraceForgeTickedLedgerState","prev":"x@57","slot":100}"#,
        ),
    );
    decodes_to(
        "MempoolSnapshot { slot: 100 }",
        &line("Forge.Loop.ForgingMempoolSnapshot", r#"{"kind":"TraceForgingMempoolSnapshot","slot":100}"#),
    );
}

#[test]
fn message_names_of_older_nodes_are_decoded() {
    let check = concat!(
        r#"{"chainDensity":4.78205e-2,"delegMapSize":3,"#,
        r#""kind":"TraceStartLeadershipCheck","slot":21,"utxoSize":9404848}"#,
    );
    let wanted = "LoopStart { slot: 21, utxo_entries: 9404848, density: 0.0478205 }";
    decodes_to(wanted, &line("Forge.Loop.StartLeadershipCheckPlus", check));
    decodes_to(wanted, &legacy("cardano.node.LeadershipCheck", check));
    decodes_to("LedgerState { slot: 5 }", &line("Forge.LedgerState", r#"{"slot":5}"#));
    decodes_to("LedgerState { slot: 5 }", &line("x", r#"{"kind":"Cardano.Node.Forge.LedgerState","slot":5}"#));
    let listed = line("x", r#"{"kind":"","slot":5}"#);
    decodes_to("LedgerState { slot: 5 }", &listed.replace(r#""x""#, r#"["Forge.Loop.LedgerState"]"#));
    decodes_to("LedgerState { slot: 5 }", &listed.replace(r#""x""#, r#"["Forge", "Loop", "LedgerState"]"#));
    assert_eq!(fact(&listed.replace(r#""x""#, r#"["Forge","Loop"]"#)), None);
}

#[test]
fn legacy_credentials_are_unwrapped() {
    decodes_to(
        "Leadership { slot: 78831181, leads: true }",
        &legacy(
            "cardano.node.Forge",
            r#"{"credentials":"Cardano","val":{"kind":"TraceNodeIsLeader","slot":78831181}}"#,
        ),
    );
    let forged =
        format!(r#"{{"block":"{HASH}","blockNo":8,"blockPrev":"{PARENT}","kind":"TraceForgedBlock","slot":9}}"#);
    decodes_to(
        &format!("Forged {{ slot: 9, block_no: 8, block: {HASH}, parent: Some({PARENT}) }}"),
        &legacy("cardano.node.Forge", &format!(r#"{{"credentials":"Cardano","val":{forged}}}"#)),
    );
    // With a kind next to it, `val` is ignored.
    let both =
        r#"{"kind":"TraceNodeIsLeader","credentials":"Cardano","val":{"kind":"TraceNodeNotLeader","slot":1},"slot":2}"#;
    decodes_to("Leadership { slot: 2, leads: true }", &legacy("cardano.node.Forge", both));
}

#[test]
fn block_messages_are_decoded() {
    let peer = r#""peer":{"connectionId":"127.0.0.1:30001 127.0.0.1:30000"}"#;
    let ends = r#"Peer { local: Some("127.0.0.1:30001"), remote: Some("127.0.0.1:30000") }"#;
    decodes_to(
        &format!("Forged {{ slot: 4, block_no: 0, block: {HASH}, parent: None }}"),
        &line(
            "Forge.Loop.ForgedBlock",
            &format!(r#"{{"slot":4,"block":"{HASH}","blockNo":0,"blockPrev":"GenesisHash"}}"#),
        ),
    );
    decodes_to(
        &format!("Noticed {{ slot: 57, block_no: 3, block: {HASH}, peer: {ends} }}"),
        &line(
            "ChainSync.Client.DownloadedHeader",
            &format!(r#"{{"block":"{HASH}","blockNo":3,"kind":"DownloadedHeader",{peer},"slot":57}}"#),
        ),
    );
    decodes_to(
        &format!("Requested {{ head: {HASH}, length: 2, peer: {ends} }}"),
        &line(
            "BlockFetch.Client.SendFetchRequest",
            &format!(r#"{{"head":"{HASH}","kind":"SendFetchRequest","length":2,{peer}}}"#),
        ),
    );
    decodes_to(
        &format!("Fetched {{ block: {HASH}, size_bytes: Some(64192), peer: {ends} }}"),
        &line(
            "BlockFetch.Client.CompletedBlockFetch",
            &format!(r#"{{"block":"{HASH}","delay":2.2e-2,{peer},"size":64192}}"#),
        ),
    );
    decodes_to(
        &format!("Sent {{ block: {HASH} }}"),
        &line("BlockFetch.Server.SendBlock", &format!(r#"{{"block":"{HASH}"}}"#)),
    );
    decodes_to(
        &format!("Added {{ block: {HASH}, delta: 1 }}"),
        &line("ChainDB.AddBlockEvent.AddedToCurrentChain", &format!(r#"{{"newtip":"{HASH}@57"}}"#)),
    );
    decodes_to(
        &format!("SelfAdopted {{ slot: Some(100), block: {HASH}, size_bytes: 64273 }}"),
        &line("Forge.Loop.AdoptedBlock", &format!(r#"{{"blockHash":"{HASH}","blockSize":64273,"slot":100}}"#)),
    );
    let switched = format!("Switched {{ block: {HASH}, delta: 1 }}");
    decodes_to(&switched, &line("ChainDB.AddBlockEvent.SwitchedToAFork", &format!(r#"{{"newtip":"{HASH}@57"}}"#)));
    let switch =
        format!(r#"{{"kind":"TraceAddBlockEvent.SwitchedToAFork","newtip":"{HASH}@57","chainLengthDelta":3}}"#);
    decodes_to(&switched.replace("delta: 1", "delta: 3"), &legacy("cardano.node.ChainDB", &switch));
}

#[test]
fn legacy_block_messages_are_decoded() {
    let peer = r#""peer":{"local":{"addr":"12.34.56.92","port":"43441"},"remote":{"addr":"::1","port":"3001"}}"#;
    let ends = r#"Peer { local: Some("12.34.56.92:43441"), remote: Some("::1:3001") }"#;
    let header = r#""blockNo":{"unBlockNo":8133942},"kind":"ChainSyncClientEvent.TraceDownloadedHeader""#;
    decodes_to(
        &format!("Noticed {{ slot: 9, block_no: 8133942, block: {HASH}, peer: {ends} }}"),
        &legacy("cardano.node.ChainSyncClient", &format!(r#"{{"block":"{HASH}",{header},{peer},"slot":9}}"#)),
    );
    decodes_to(
        &format!("Added {{ block: {HASH}, delta: 2 }}"),
        &legacy(
            "cardano.node.ChainDB",
            &format!(r#"{{"chainLengthDelta":2,"kind":"TraceAddBlockEvent.AddedToCurrentChain","newtip":"{HASH}@9"}}"#),
        ),
    );
    for read in ["ReadBlocked", "Read"] {
        let kind = format!("ChainSyncServerEvent.TraceChainSyncServer{read}.AddBlock");
        let announced =
            legacy("cardano.node.ChainSyncHeaderServer", &format!(r#"{{"kind":"{kind}","block":"{HASH}"}}"#));
        decodes_to(&format!("Announced {{ block: {HASH} }}"), &announced);
    }
}

#[test]
fn server_updates_that_are_not_announcements_are_skipped() {
    let update = |data: &str| line("ChainSync.ServerHeader.Update", data);
    let announced = format!("Announced {{ block: {HASH} }}");
    let add = format!(r#""addBlock":"{HASH}@464""#);
    decodes_to(&announced, &update(&format!(r#"{{{add},"blockingRead":true,"risingEdge":true}}"#)));
    decodes_to(&announced, &update(&format!(r#"{{{add},"blockingRead":true}}"#)));
    decodes_to(&announced, &update(&format!(r#"{{{add},"blockingRead":null,"rollBackTo":null,"risingEdge":null}}"#)));
    for skipped in [r#""risingEdge":false"#, r#""blockingRead":false"#, r#""rollBackTo":"genesis (origin)""#] {
        // An announcement is skipped before its block is looked at.
        for rest in [add.as_str(), r#""addBlock":"?""#, r#""tip":{}"#] {
            let (events, counts) = read_text(update(&format!("{{{skipped},{rest}}}")).as_bytes());
            assert!(events.is_empty());
            assert_eq!((counts.skipped, counts.objects, counts.malformed), (1, 1, 0), "{skipped}");
        }
    }
    assert_eq!(problem(&update("{}")).as_deref(), Some("`data.block` is missing or not a hash"));
    assert_eq!(
        problem(&update(r#"{"risingEdge":"yes"}"#)).as_deref(),
        Some("`data.risingEdge` is missing or not true or false")
    );
}

#[test]
fn transaction_messages_are_decoded() {
    decodes_to(
        "MempoolSize { transactions: 211 }",
        &line("Mempool.AddedTx", r#"{"mempoolSize":{"bytes":80402,"numTxs":211},"tx":{"txid":"1234abcd"}}"#),
    );
    decodes_to(
        "MempoolSize { transactions: 0 }",
        &line("Mempool.RemoveTxs", r#"{"mempoolSize":{"numTxs":0},"txs":[]}"#),
    );
    decodes_to("TransactionRejected", &line("Mempool.RejectedTx", "{}"));
    decodes_to("TransactionsCollected { count: 3 }", &line("TxSubmission.TxInbound.Collected", r#"{"count":3}"#));
    decodes_to(
        "TransactionsProcessed { accepted: 2, rejected: -1 }",
        &line("TxSubmission.TxInbound.Processed", r#"{"accepted":2,"rejected":-1}"#),
    );
    decodes_to("TransactionsAcknowledged", &line("TraceBenchTxSubServAck", r#"{"txIds":["a","b"]}"#));
    let summary =
        r#"{"summary":{"ssFailures":[],"ssTxSent":3,"ssFailures":0,"ssElapsed":1.5,"ssThreadwiseTps":[1.0]}}"#;
    decodes_to("GeneratorSummary", &line("Benchmark.BenchTxSubSummary", summary));
    assert_eq!(
        problem(&line("TxSubmission.TxInbound.Processed", r#"{"accepted":-2,"rejected":-1}"#)).as_deref(),
        Some("`data.accepted` is missing or not an unsigned integer")
    );
}

#[test]
fn resource_messages_are_decoded() {
    let data = concat!(
        r#"{"Alloc":2614818272,"CentiBlkIO":1,"CentiCpu":429496,"CentiGC":2,"CentiMut":260,"FsWr":4,"GcsMajor":6,"#,
        r#""GcsMinor":82,"Live":456905808,"NetRd":null,"RSS":895557632,"Threads":0,"kind":"ResourceStats"}"#,
    );
    decodes_to(
        "Resources(Resources { cpu_centiseconds: 429496, gc_centiseconds: 2, mutator_centiseconds: 260, \
         major_collections: 6, minor_collections: 82, allocated_bytes: 2614818272, live_bytes: 456905808, \
         heap_bytes: 0, rss_bytes: 895557632, block_io_centiseconds: 1, net_read_bytes: 0, net_written_bytes: 0, \
         file_read_bytes: 0, file_written_bytes: 4, threads: 0 })",
        &line("Resources", data),
    );
    assert_eq!(
        problem(&line("Resources", &data.replace("RSS", "rss"))).as_deref(),
        Some("`data.RSS` is missing or not an unsigned integer")
    );
}

#[test]
fn ledger_messages_are_decoded() {
    decodes_to(
        "LedgerMetrics { slot: 464, utxo_entries: 4000213, density: 0.0481 }",
        &line("LedgerMetrics", r#"{"slot":464.0,"utxoSize":4000213,"delegMapSize":1000000,"chainDensity":0.0481}"#),
    );
    decodes_to("LedgerSnapshot { renamed: false }", &line("ChainDB.LedgerEvent.TookSnapshot", "{}"));
    let renamed = |time: &str| {
        line(
            "ChainDB.LedgerEvent.Snapshot.TookSnapshot",
            &format!(r#"{{"enclosedTime":{time},"kind":"TookSnapshot"}}"#),
        )
    };
    decodes_to("LedgerSnapshot { renamed: true }", &renamed(r#"{"contents":1.307869,"tag":"FallingEdgeWith"}"#));
    assert_eq!(fact(&renamed(r#"{"tag":"RisingEdge"}"#)), None);
    assert_eq!(problem(&renamed(r#"{"tag":"RisingEdge"}"#)), None);
}

#[test]
fn a_hash_is_64_hexadecimal_digits() {
    for bad in [&HASH[1..], &format!("{HASH}0"), &HASH.replace('a', "g"), ""] {
        let sent = line("BlockFetch.Server.SendBlock", &format!(r#"{{"block":{}}}"#, quoted(bad)));
        assert_eq!(problem(&sent).as_deref(), Some("`data.block` is missing or not a hash"), "{bad}");
    }
    let short = line("ChainDB.AddBlockEvent.AddedToCurrentChain", r#"{"newtip":"abc@57"}"#);
    assert_eq!(problem(&short).as_deref(), Some("`data.newtip` is missing or not a hash"));
}

#[test]
fn the_last_of_equal_keys_counts_and_escapes_are_text() {
    decodes_to("LedgerState { slot: 2 }", &line("Forge.Loop.LedgerState", r#"{"slot":1,"slot":2}"#));
    decodes_to("LedgerState { slot: 2 }", &line("Forge.Loop.LedgerState", r#"{"slot":1,"sl\u006ft":2}"#));
    decodes_to("LedgerState { slot: 2 }", &line(r"Forge.Loop.\u004cedgerState", r#"{"slot":2}"#));
    let twice = line("Forge.Loop.LedgerState", r#"{"slot":1},"data":{"slot":3}"#);
    decodes_to("LedgerState { slot: 3 }", &twice);
    // Also with more members than any node writes.
    let many: String = (0..500).map(|number| format!(r#""k{number}":0,"slot":{number},"#)).collect();
    decodes_to("LedgerState { slot: 7 }", &line("Forge.Loop.LedgerState", &format!(r#"{{"slot":1,{many}"slot":7}}"#)));
    decodes_to("LedgerState { slot: 499 }", &line("Forge.Loop.LedgerState", &format!("{{{many}\"x\":0}}")));
}

#[test]
fn white_space_and_order_do_not_matter() {
    let spaced = concat!(
        "{ \"host\" : \"n\",\t\"thread\":\"1\" , \"data\": { \"slot\" : 5 , \"kind\":\"\" } ",
        ",\"ns\" :\"Forge.Loop.LedgerState\",\"at\":\"2026-02-05T19:00:00Z\" } \r",
    );
    decodes_to("LedgerState { slot: 5 }", spaced);
}

#[test]
fn an_envelope_needs_all_its_members() {
    let good = line("Forge.Loop.LedgerState", r#"{"slot":5}"#);
    for key in ["at", "ns", "data", "thread", "host"] {
        let (events, counts) = read_text(good.replace(&format!("\"{key}\":"), "\"other\":").as_bytes());
        assert!(events.is_empty());
        assert_eq!((counts.malformed_envelope, counts.objects), (1, 0), "{key}");
        let reason = &counts.malformed_examples[0].reason;
        assert!(reason.starts_with(&format!("`{key}` is missing")), "{reason}");
    }
    for (bad, reason) in [
        (good.replace("2026", "soon"), "`at` is missing or not a time"),
        (good.replace(r#""Forge.Loop.LedgerState""#, "[]"), "`ns` is missing or not a name"),
        (good.replace(r#""Forge.Loop.LedgerState""#, "[1]"), "`ns` is missing or not a name"),
        (good.replace(r#"{"slot":5}"#, "[]"), "`data` is missing or not an object"),
        (good.replace(r#""147""#, "147"), "`thread` is missing or not a string"),
        (good[..good.len() - 1].to_owned(), "no JSON: an unexpected character, or the line was cut off"),
    ] {
        assert_eq!(problem(&bad).as_deref(), Some(reason), "{bad}");
    }
}

#[test]
fn a_readable_envelope_counts_as_emitted_although_its_body_is_bad() {
    let (_, counts) = read_text(line("Forge.Loop.LedgerState", r#"{"slot":"?"}"#).as_bytes());
    assert_eq!((counts.objects, counts.malformed_body, counts.decoded), (1, 1, 0));
}

#[test]
fn lines_identify_their_node() {
    let version = concat!(
        r#"{"applicationName":"cardano-node","applicationVersion":"10.5.4","#,
        r#""compilerVersion":"9.6.5","gitRevision":"abc"}"#,
    );
    let text = [
        "Node configuration".to_owned(),
        line("Version.NodeVersion", version),
        line("Startup.NetworkMagic", r#"{"kind":"x","networkMagic":"42"}"#),
        legacy("cardano.node.x", r#"{"kind":"x"}"#),
    ]
    .join("\n");
    let (_, counts) = read_text(text.as_bytes());
    assert_eq!(counts.node_version.as_deref(), Some("10.5.4"));
    assert_eq!(counts.node_revision.as_deref(), Some("abc"));
    assert_eq!(counts.compiler_version.as_deref(), Some("9.6.5"));
    assert_eq!(counts.network_magic.as_deref(), Some("42"));
    assert_eq!(counts.names.into_iter().collect::<Vec<_>>(), [("mainnetf".to_owned(), 1), ("node-7".to_owned(), 2)]);
    assert_eq!(counts.ignored_by_message["Version.NodeVersion:"], 1);
    let common = r#"{"kind":"BasicInfoCommon","networkMagic":"NetworkMagic {unNetworkMagic = 42}","version":"10.5.4"}"#;
    let (_, counts) = read_text(line("Startup.Common", common).as_bytes());
    assert_eq!(counts.network_magic.as_deref(), Some("NetworkMagic {unNetworkMagic = 42}"));
    assert_eq!(counts.node_version.as_deref(), Some("10.5.4"));
    let (_, counts) = read_text(legacy("cardano.node.x", r#"{"kind":"x"}"#).as_bytes());
    assert_eq!((counts.node_version.as_deref(), counts.node_revision.as_deref()), (Some("8.1.1"), Some("ea2c0")));
}
