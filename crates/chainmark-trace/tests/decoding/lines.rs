//! Any bytes: nothing panics, every line is counted once, and JSON is recognised as by other parsers.

use crate::log_lines::{HASH, legacy, line, quoted, read_text};
use chainmark_trace::decode::{Decoder, Line};
use chainmark_trace::text::TextBuffer;
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn samples() -> Vec<String> {
    let peer = r#"{"connectionId":"127.0.0.1:30001 127.0.0.1:30000"}"#;
    let forged =
        line("Forge.Loop.ForgedBlock", &format!(r#"{{"slot":4,"block":"{HASH}","blockNo":0,"blockPrev":"{HASH}"}}"#));
    vec![
        line(
            "BlockFetch.Client.CompletedBlockFetch",
            &format!(r#"{{"block":"{HASH}","delay":2.25e-2,"peer":{peer},"size":64192}}"#),
        ),
        line("Some.Ignored", r#"{"list":[[],{"a":[null,true,false,-0.5E+1,{}]}],"é":"\u00e9\\\"\/"}"#),
        line("Mempool.RemoveTxs", r#"{"mempoolSize":{"bytes":64986,"numTxs":51},"txs":[{"tx":{"txid":"79c2c57c"}}]}"#),
        legacy("cardano.node.Forge", r#"{"credentials":"Cardano","val":{"kind":"TraceNodeIsLeader","slot":78831181}}"#),
        format!(r#"{{"__CURSOR":"s=1","MESSAGE":{}}}"#, quoted(&forged)),
        format!(r#"{{"log":{},"stream":"stdout"}}"#, quoted(&format!("{forged}\n"))),
        format!("{forged} "),
        forged,
    ]
}

/// Whether the decoder accepts the line as JSON.
fn is_json(line: &[u8]) -> bool {
    let mut buffer = TextBuffer::new(0);
    buffer.append(line);
    buffer.index();
    let mut decoder = Decoder::default();
    match decoder.line(&buffer.text(), 0, line.len()) {
        Line::NotObject => false,
        Line::Malformed(problem) => !problem.is_syntax(),
        _ => true,
    }
}

/// A line with some of its bytes changed, removed, duplicated or inserted.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![
        3 => prop::sample::select(b"{}[]\",:\\ \t\r\n0123456789.eE+-truefalsn/u\x00\x1f\x7f".to_vec()),
        1 => any::<u8>(),
    ];
    let change = (any::<prop::sample::Index>(), bytes, 0..5_u8);
    (prop::sample::select(samples()), prop::collection::vec(change, 0..4)).prop_map(|(line, changes)| {
        let mut line = line.into_bytes();
        for (index, byte, how) in changes {
            let at = index.index(line.len());
            match how {
                0 => line[at] = byte,
                1 => line.insert(at, byte),
                2 => drop(line.remove(at)),
                3 => line.truncate(at.max(1)),
                _ => line.insert(at, line[at]),
            }
            if line.is_empty() {
                line.push(byte);
            }
        }
        line
    })
}

/// The sums, and what they are of.
fn sums_hold(text: &[u8]) {
    let (events, counts) = read_text(text);
    let lines = text.split_inclusive(|&byte| byte == b'\n').count() as u64;
    assert_eq!(counts.raw_lines, lines);
    let classes = counts.decoded + counts.ignored + counts.skipped + counts.malformed + counts.not_objects;
    assert_eq!(counts.raw_lines, classes);
    assert_eq!(counts.malformed, counts.malformed_envelope + counts.malformed_body);
    assert_eq!(counts.objects, counts.decoded + counts.ignored + counts.skipped + counts.malformed_body);
    assert_eq!(counts.decoded, events.len() as u64);
    assert_eq!(counts.malformed_examples.len() as u64, counts.malformed.min(5));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// serde_json's scanner checks lone surrogates as little as this one, but accepts strings with invalid UTF-8 in
    /// ignored values; and it accepts values that are not objects.
    #[test]
    fn the_accepted_json_matches_serde(line in mutated()) {
        let object = line.first() == Some(&b'{');
        let is_text = std::str::from_utf8(&line).is_ok();
        let theirs = object && is_text && serde_json::from_slice::<IgnoredAny>(&line).is_ok();
        // The content of a wrapper is another text.
        let wrapper = line.starts_with(b"{\"__") || line.starts_with(b"{\"log");
        prop_assume!(!wrapper);
        prop_assert_eq!(is_json(&line), theirs, "{}", String::from_utf8_lossy(&line));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn every_line_has_exactly_one_class(lines in prop::collection::vec(mutated(), 0..20), end in any::<bool>()) {
        let mut text = lines.join(&b'\n');
        if end {
            text.push(b'\n');
        }
        sums_hold(&text);
    }

    #[test]
    fn any_bytes_are_classified(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        sums_hold(&bytes);
    }

    #[test]
    fn any_json_bytes_are_classified(
        bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ \n01.e-tnua".to_vec()), 0..200)
    ) {
        sums_hold(&[b"{", &bytes[..]].concat());
    }
}
