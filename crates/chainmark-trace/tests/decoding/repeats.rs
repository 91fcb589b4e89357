//! Repeated lines are compared instead of scanned: the result must equal that of a scan.

use std::collections::BTreeMap;

use chainmark_trace::decode::{Decoder, Line};
use chainmark_trace::text::TextBuffer;
use proptest::prelude::*;

const AT: &str = "2026-02-05T18:52:17.25Z";

const COLLECTED: &str = r#"{"count":2,"kind":"C","peer":{"connectionId":"a:1 b:2"}}"#;
const ADDED: &str = r#"{"kind":"TraceMempoolAddedTx","mempoolSize":{"bytes":369,"numTxs":1},"tx":{"txid":"7ab40e09"}}"#;
const CHURN: &str = r#"{"kind":"Churn","count":2}"#;

/// The text after the time of a usual line.
fn usual(ns: &str, data: &str) -> String {
    format!(r#"","ns":"{ns}","data":{data},"sev":"Debug","thread":"82","host":"node-0"}}"#)
}

/// Possible texts after a line's time: usual lines, and similar ones.
fn rests() -> Vec<String> {
    let (collected, churn) = (usual("TxSubmission.TxInbound.Collected", COLLECTED), usual("Net.Churn", CHURN));
    let processed = usual("TxSubmission.TxInbound.Processed", r#"{"accepted":2,"kind":"P","rejected":-1}"#);
    let version = r#"{"kind":"V","applicationVersion":"10.5.4","gitRevision":"abc"}"#;
    let with = |member: &str| churn.replace("\"node-0\"}", &format!("\"node-0\",{member}}}"));
    vec![
        collected.replace("node-0", "node-1"),
        collected.replace("\"count\":2", "\"count\":3"),
        collected,
        format!("{processed}}}"),
        processed.replace("-1", ""),
        processed,
        usual("Net.Churn", r#"{"kind":"Churn","ns":"TxSubmission.TxInbound.Collected","count":2}"#),
        usual("Net.Churn", r#"{"kind":"TraceTxSubmissionCollected","count":7}"#),
        usual("Net.Churn", r#"{"kind":"Chürn","count":2}"#),
        with(r#""at":"2027-01-01T00:00:00Z""#),
        with(r#""ns":"Forge.Loop.LedgerView""#),
        with(r#""env":"8.1.1:ea2c0""#),
        churn.replace("\"ns\"", "\"\\u006es\""),
        churn.replace(",\"host\":\"node-0\"", ""),
        format!(r#"","data":{CHURN},"ns":"Net.Churn","sev":"Info","thread":"1","host":"node-0"}}"#),
        format!("x{churn}"),
        format!("\\u005a{churn}"),
        churn,
        usual("Version.NodeVersion", version),
        usual("Version.NodeVersion", &version.replace("10.5.4", "10.6.2")),
        usual("Forge.Loop.LedgerView", r#"{"kind":"TraceLedgerView","slot":2999}"#),
        usual("Forge.Loop.LedgerView", r#"{"kind":"TraceLedgerView","slot":3000,"slot":7}"#),
        usual("Forge.Loop.LedgerView", r#"{"kind":"TraceLedgerView","slot":-3}"#),
        usual("Forge.Loop.LedgerView", r#"{"kind":"TraceLedgerView","slot":0.5}"#),
        usual("Forge.Loop.LedgerView", r#"{"kind":"TraceLedgerView","slot":"12"}"#),
        usual("Forge.Loop.LedgerView", r#"{"kind":"TraceLedgerView","slot":012}"#),
        usual("Mempool.AddedTx", ADDED),
        usual("Mempool.AddedTx", &ADDED.replace("7ab40e09", "07\"776f16")),
        usual("Mempool.AddedTx", &ADDED.replace("7ab40e09", "Grüße")),
        usual("Mempool.AddedTx", &ADDED.replace("369", "18446744073709551616").replace(":1}", ":1.5e1}")),
        usual("Mempool.AddedTx", &ADDED.replace("\"numTxs\":1", "\"numTxs\" : 1")),
        usual("Mempool.AddedTx", &ADDED.replace("\"numTxs\"", "\"num\":4,\"x\"")),
        usual("Forge.Loop.StartLeadershipCheck", r#"{"kind":"S","slot":5}"#),
        usual("Forge.Loop.StartLeadershipCheck", r#"{"kind":"S","slot":6,"utxoSize":7,"chainDensity":0.5}"#),
        usual("Forge.Loop.StartLeadershipCheck", r#"{"kind":"S","slot":6,"utxoSize":null}"#),
        usual("ChainSync.ServerHeader.Update", r#"{"blockingRead":false,"kind":"U","risingEdge":true}"#),
    ]
}

fn decode(decoder: &mut Decoder, line: &[u8]) -> String {
    let mut buffer = TextBuffer::new(0);
    buffer.append(line);
    buffer.index();
    format!("{:?}", decoder.line(&buffer.text(), 0, line.len()))
}

pub fn line() -> impl Strategy<Value = Vec<u8>> {
    let stamp = prop_oneof![
        8 => (0..60, 1..999_999_999)
            .prop_map(|(second, fraction)| format!("2026-02-05T18:52:{second:02}.{fraction}Z")),
        1 => Just(AT.to_owned()),
        1 => Just("2026-02-05T18:52:17+01:00".to_owned()),
        1 => Just("yesterday".to_owned()),
    ];
    // A byte is changed now and then, anywhere.
    let change = proptest::option::weighted(0.1, (any::<prop::sample::Index>(), any::<u8>()));
    // So is a digit or a letter between those of a value, so that lines come that differ in them alone.
    let value = proptest::option::weighted(0.5, (0..10_000_u32, prop::sample::select(vec!["5", "d", "ü", "0", "-"])));
    (stamp, prop::sample::select(rests()), change, value).prop_map(|(stamp, mut rest, change, value)| {
        if let Some((number, text)) = value {
            rest = rest.replace(":1}", &format!(":{number}}}")).replace("2999", &number.to_string());
            rest = rest.replace("\"82\"", &format!("\"8{text}2\"")).replace("7ab40e", &format!("7a{text}0e"));
        }
        let mut line = format!("{{\"at\":\"{stamp}{rest}").into_bytes();
        if let Some((place, byte)) = change {
            let place = place.index(line.len());
            line[place] = if byte == b'\n' { b' ' } else { byte };
        }
        line
    })
}

fn add(into: &mut BTreeMap<String, u64>, counts: BTreeMap<String, u64>) {
    counts.into_iter().for_each(|(name, count)| *into.entry(name).or_default() += count);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_repeated_line_has_the_class_of_a_full_scan(lines in prop::collection::vec(line(), 1..120)) {
        let mut decoder = Decoder::default();
        let (mut decoded, mut ignored, mut names) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut objects, mut skipped, mut malformed) = (0, 0, 0);
        for line in &lines {
            // One that has seen no other line has nothing to compare with.
            let mut first = Decoder::default();
            prop_assert_eq!(decode(&mut decoder, line), decode(&mut first, line), "{}", String::from_utf8_lossy(line));
            let counts = first.counts();
            add(&mut decoded, counts.decoded_by_message);
            add(&mut ignored, counts.ignored_by_message);
            add(&mut names, counts.names);
            (objects, skipped, malformed) =
                (objects + counts.objects, skipped + counts.skipped, malformed + counts.malformed);
        }
        let counts = decoder.counts();
        prop_assert_eq!(counts.raw_lines, lines.len() as u64);
        prop_assert_eq!((counts.objects, counts.skipped, counts.malformed), (objects, skipped, malformed));
        let by_message = (counts.decoded_by_message, counts.ignored_by_message, counts.names);
        prop_assert_eq!(by_message, (decoded, ignored, names));
    }
}

#[test]
fn more_repeated_lines_than_the_cache_holds_are_decoded() {
    let mut decoder = Decoder::default();
    let mut events = 0;
    for _ in 0..4 {
        for count in 0..3_000 {
            let data = COLLECTED.replace("\"count\":2", &format!("\"count\":{count}"));
            let line = format!("{{\"at\":\"{AT}{}", usual("TxSubmission.TxInbound.Collected", &data));
            let mut buffer = TextBuffer::new(0);
            buffer.append(line.as_bytes());
            buffer.index();
            let decoded = decoder.line(&buffer.text(), 0, line.len());
            let expected = chainmark_trace::event::Fact::TransactionsCollected { count };
            assert!(matches!(decoded, Line::Event(event) if event.fact == expected), "{line}");
            events += 1;
        }
    }
    let counts = decoder.counts();
    assert_eq!((counts.decoded, counts.names["node-0"]), (events, events));
}
