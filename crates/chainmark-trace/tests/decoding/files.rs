//! Files: containers, wrappers, order, damage.

use std::path::PathBuf;

use crate::log_lines::{Folder, fact, gzip, line, line_at, name_of, quoted, read, read_text, xz, zstd};
use chainmark_trace::accounting::Container;
use chainmark_trace::control::Control;
use chainmark_trace::error::ReadError;
use chainmark_trace::reader::{Division, read_host, scan_head};
use chainmark_trace::wrapper::Wrapper;
use proptest::prelude::*;

fn slots(count: u64) -> Vec<String> {
    let at = |slot: u64| format!("2026-02-05T{:02}:{:02}:{:02}.5Z", slot / 3600, slot / 60 % 60, slot % 60);
    (0..count).map(|slot| line_at(&at(slot), "Forge.Loop.LedgerState", &format!(r#"{{"slot":{slot}}}"#))).collect()
}

fn expected_facts(slots: std::ops::Range<u64>) -> Vec<String> {
    slots.map(|slot| format!("LedgerState {{ slot: {slot} }}")).collect()
}

fn facts(files: &[PathBuf]) -> Vec<String> {
    let (events, _) = read(files);
    let fact = |event: &str| event.split_once("fact: ").map(|(_, fact)| fact.trim_end_matches(" }").to_owned() + " }");
    events.iter().filter_map(|(event, _)| fact(event)).collect()
}

#[test]
fn wrapped_lines_are_decoded() {
    let inner = line("Forge.Loop.LedgerState", r#"{"slot":5,"note":"ein \"Umlaut\": ä\n"}"#);
    let bytes: Vec<String> = inner.bytes().map(|byte| byte.to_string()).collect();
    let wanted = Some("LedgerState { slot: 5 }".to_owned());
    for (text, wrapper) in [
        (format!(r#"{{"__CURSOR":"s=1","_PID":"7","MESSAGE":{}}}"#, quoted(&inner)), Wrapper::Journald),
        (format!(r#"{{"MESSAGE":[{}],"__CURSOR":"s=1"}}"#, bytes.join(", ")), Wrapper::Journald),
        (
            format!(r#"{{"log":{},"stream":"stdout","time":"2026-02-05T19:00:00Z"}}"#, quoted(&format!("{inner}\n"))),
            Wrapper::Docker,
        ),
        (format!(r#"{{"log":{},"stream":"stdout"}}"#, quoted(&inner)), Wrapper::Docker),
        (format!(r#"{{"level":"info","process":"node0","replica":0,"message":{}}}"#, quoted(&inner)), Wrapper::Devnet),
        (format!(r#"{{"level":"info","process":"node0","replica":0,"message":{inner}}}"#), Wrapper::Devnet),
        (format!("Feb 05 19:00:00 relay-1 cardano-node[758]: {inner}"), Wrapper::Syslog),
        (format!("2026-02-05T19:00:00+0000 relay-1 cardano-node[758]: {inner}"), Wrapper::Syslog),
        (format!("MESSAGE={inner}"), Wrapper::Syslog),
        (format!("relay-1  | {inner}"), Wrapper::Syslog),
        (format!("[pod/relay-0/cardano-node] {inner}"), Wrapper::Syslog),
        (format!("2026-02-05T19:00:00.123456789Z {inner}"), Wrapper::Syslog),
        (format!("   {inner}"), Wrapper::Syslog),
        (format!("\u{1e}{inner}"), Wrapper::Syslog),
        (format!("\u{1b}[34m{inner}\u{1b}[0m"), Wrapper::Syslog),
        (format!("2026-02-05T19:00:00.123456789Z stdout F {inner}"), Wrapper::Container),
        (format!(r#"{{"labels":{{"job":"x"}},"line":{},"timestamp":"t"}}"#, quoted(&inner)), Wrapper::Devnet),
    ] {
        assert_eq!(fact(&text), wanted, "{text}");
        let (_, counts) = read_text(text.as_bytes());
        assert_eq!(counts.files[0].wrapper, wrapper);
        assert_eq!((counts.raw_lines, counts.decoded), (1, 1));
    }
    let devnet = format!(r#"{{"level":"info","process":"node0","replica":0,"message":{}}}"#, quoted(&inner));
    assert_eq!(fact(&format!(r#"{{"log":{},"stream":"stdout"}}"#, quoted(&devnet))), wanted);
}

#[test]
fn wrapped_lines_that_are_not_log_objects_are_counted() {
    let text = [
        r#"{"__CURSOR":"1","MESSAGE":"Started cardano-node.service."}"#,
        r#"{"__CURSOR":"1","MESSAGE":null}"#,
        r#"{"__CURSOR":"1","MESSAGE":[1,256]}"#,
        r#"{"__CURSOR":"1","MESSAGE":[255,254]}"#,
        r#"{"log":"{\"at\":\"2026-02-05T19:00:00Z\"}\n","stream":"stdout"}"#,
        r#"{"log":"","stream":"stdout"}"#,
    ];
    let (_, counts) = read_text(text.join("\n").as_bytes());
    assert_eq!((counts.not_objects, counts.malformed_envelope, counts.raw_lines), (3, 3, 6));
}

#[test]
fn the_rest_of_a_truncated_line_is_not_a_separate_line() {
    let inner = line("Forge.Loop.LedgerState", r#"{"slot":5}"#);
    for lost in [r#"ead":"7","host":"a"}"#, "x", "NodeConfiguration {ncSocketConfig = "] {
        let (_, counts) = read_text(format!("{lost}{inner}").as_bytes());
        let is_decoded = lost.ends_with(' ');
        assert_eq!((counts.decoded, counts.not_objects), (u64::from(is_decoded), u64::from(!is_decoded)), "{lost}");
    }
}

#[test]
fn objects_of_other_programs_do_not_count_as_node_messages() {
    let others = [r#"{"level":"info","msg":"scraped"}"#, r#"{"level":"info" cut"#, "{}"];
    let node = [r#"{"at":"2026-02-05T19:00:00Z","ns":"#, r#"{"at":"2026-02-05T19:00:00Z"}"#, r#"{"ns":"Resources"}"#];
    let counts = |wrap: &dyn Fn(&str) -> String| {
        let text: Vec<_> = others.iter().chain(&node).map(|line| wrap(line)).collect();
        let (_, counts) = read_text(text.join("\n").as_bytes());
        (counts.not_objects, counts.malformed_envelope)
    };
    assert_eq!(counts(&|line| format!(r#"{{"_PID":"7","MESSAGE":{}}}"#, quoted(line))), (3, 3));
    assert_eq!(counts(&|line| format!(r#"{{"process":"x","replica":0,"message":{}}}"#, quoted(line))), (3, 3));
    // A container and a file have one program.
    assert_eq!(counts(&|line| format!(r#"{{"log":{},"stream":"stdout"}}"#, quoted(line))), (0, 6));
    assert_eq!(counts(&str::to_owned), (0, 6));
}

#[test]
fn pieces_of_split_lines_are_joined() {
    let long = line("Forge.Loop.LedgerState", &format!(r#"{{"slot":5,"note":"{}"}}"#, "x".repeat(40_000)));
    let docker = |piece: &str, stream: &str| format!(r#"{{"log":{},"stream":"{stream}","time":"t"}}"#, quoted(piece));
    let text = [
        docker(&long[..16_384], "stdout"),
        docker("of another stream\n", "stderr"),
        docker(&long[16_384..32_768], "stdout"),
        docker(&format!("{}\n", &long[32_768..]), "stdout"),
        docker("and on\n", "stdout"),
    ];
    let (events, counts) = read_text(text.join("\n").as_bytes());
    assert_eq!(events.len(), 1);
    assert_eq!((counts.raw_lines, counts.decoded, counts.pieces, counts.not_objects), (5, 1, 2, 4));

    let container = |piece: &str, stream: &str, tag: &str| format!("2026-02-05T19:00:00.5Z {stream} {tag} {piece}");
    let text = [
        container(&long[..16_384], "stdout", "P"),
        container("of another stream", "stderr", "F"),
        container(&long[16_384..], "stdout", "F"),
        container("Node configuration: NodeConfiguration {", "stdout", "F"),
    ];
    let (events, counts) = read_text(text.join("\n").as_bytes());
    assert_eq!((events.len(), counts.raw_lines, counts.pieces, counts.not_objects), (1, 4, 1, 3));

    let journal = |piece: &str, more: &str| format!(r#"{{"__CURSOR":"1","MESSAGE":{}{more}}}"#, quoted(piece));
    let text = [journal(&long[..9_000], r#","_LINE_BREAK":"line-max""#), journal(&long[9_000..], "")];
    let (events, counts) = read_text(text.join("\n").as_bytes());
    assert_eq!((events.len(), counts.raw_lines, counts.pieces), (1, 2, 1));

    // Pieces of other programs are in between; without a stream's number its process distinguishes them.
    for id in ["_STREAM_ID", "_PID"] {
        let of = |piece: &str, stream: &str, more: &str| journal(piece, &format!(r#","{id}":"{stream}"{more}"#));
        let goes_on = r#","_LINE_BREAK":"line-max""#;
        let text = [
            of(&long[..9_000], "7", goes_on),
            of("{\"of\":", "8", goes_on),
            of(&long[9_000..20_000], "7", goes_on),
            of("Started a unit.", "1", ""),
            of("\"another unit\"}", "8", ""),
            of(&long[20_000..], "7", ""),
        ];
        let (events, counts) = read_text(text.join("\n").as_bytes());
        assert_eq!((events.len(), counts.raw_lines, counts.pieces, counts.not_objects), (1, 6, 3, 5));
    }

    // The last piece never comes.
    let text = docker(&format!("{{{}", " ".repeat(16_384)), "stdout");
    let (_, counts) = read_text(text.as_bytes());
    assert_eq!((counts.raw_lines, counts.malformed_envelope, counts.pieces), (1, 1, 0));
}

#[test]
fn files_are_ordered_by_time_and_not_by_name() {
    let folder = Folder::new();
    let lines = slots(30);
    let files = [
        folder.write("a.log", format!("Node configuration\n{}", lines[20..].join("\n")).as_bytes()),
        folder.write("b.log.1.gz", &gzip(lines[..10].join("\n").as_bytes())),
        folder.write("c", &zstd(lines[10..15].join("\n").as_bytes())),
        folder.write("0.xz", &xz(lines[15..20].join("\n").as_bytes())),
        folder.write("0-empty", b""),
    ];
    assert_eq!(facts(&files), expected_facts(0..30));
    let (events, counts) = read(&files);
    let containers: Vec<_> = counts.files.iter().map(|file| file.container).collect();
    assert_eq!(containers, [Container::Gzip, Container::Zstd, Container::Xz, Container::Plain, Container::Plain]);
    assert_eq!(counts.files[0].path, name_of(&files[1]));
    assert_eq!((events[29].1.file, events[29].1.line), (3, 11));
    for (file_counts, file) in counts.files.iter().zip([1, 2, 3, 0, 4]) {
        let stored = std::fs::read(&files[file]).unwrap();
        assert_eq!(file_counts.blake3, blake3::hash(&stored).to_hex().to_string());
        assert_eq!(file_counts.stored_bytes, stored.len() as u64);
    }
}

#[test]
fn compressed_files_with_several_members_are_read() {
    let folder = Folder::new();
    let lines = slots(20);
    // The cut is in the middle of a line.
    let text = lines.join("\n");
    let (first, second) = text.as_bytes().split_at(777);
    for bytes in
        [[gzip(first), gzip(second)].concat(), [zstd(first), zstd(second)].concat(), [xz(first), xz(second)].concat()]
    {
        assert_eq!(facts(&[folder.write("log", &bytes)]), expected_facts(0..20));
    }
}

#[test]
fn a_byte_order_mark_hides_no_line() {
    let folder = Folder::new();
    let text = [b"\xef\xbb\xbf", slots(3).join("\r\n").as_bytes()].concat();
    for bytes in [text.clone(), gzip(&text), zstd(&text), xz(&text)] {
        assert_eq!(facts(&[folder.write("log", &bytes)]), expected_facts(0..3));
    }
    // It is no text of its own, and within a file it is none.
    assert_eq!(read_text(b"\xef\xbb\xbf").1.raw_lines, 0);
    let (_, counts) = read_text(format!("{}\n\u{feff}{}", slots(1)[0], slots(1)[0]).as_bytes());
    assert_eq!((counts.decoded, counts.not_objects), (1, 1));
}

#[test]
fn a_damaged_file_is_counted_up_to_the_damage() {
    let folder = Folder::new();
    // The texts must not compress into a single block.
    let noise: Vec<String> = (0..4_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let mut lines = slots(4_000);
    lines
        .iter_mut()
        .zip(&noise)
        .for_each(|(line, noise)| *line = line.replace("\"slot\"", &format!("\"{noise}\":0,\"slot\"")));
    let text = lines.join("\n");
    for bytes in [gzip(text.as_bytes()), zstd(text.as_bytes()), xz(text.as_bytes())] {
        let cut = &bytes[..bytes.len() / 2];
        let path = folder.write("log", cut);
        let (events, counts) = read(&[path]);
        assert!(events.len() > 500 && events.len() < 4_000, "{}", events.len());
        assert!(counts.files[0].damage.is_some());
        assert_eq!(counts.files[0].blake3, blake3::hash(cut).to_hex().to_string());
        let mut spoilt = bytes.clone();
        spoilt[bytes.len() / 2..].fill(0x55);
        let (events, counts) = read(&[folder.write("spoilt", &spoilt)]);
        assert!(events.len() > 500);
        assert!(counts.files[0].damage.is_some());
        assert_eq!(counts.files[0].blake3, blake3::hash(&spoilt).to_hex().to_string());
    }
    let (_, counts) = read(&[folder.write("whole", &gzip(text.as_bytes()))]);
    assert_eq!((counts.files[0].damage.as_ref(), counts.decoded), (None, 4_000));
}

#[test]
fn a_missing_file_is_an_error() {
    let folder = Folder::new();
    let missing = folder.path("missing");
    let result = read_host(std::slice::from_ref(&missing), Division::new(1), &Control::default(), &mut |_, _| {});
    assert!(matches!(result, Err(ReadError::Storage { path, .. }) if path == missing));
}

#[test]
fn a_read_can_be_cancelled() {
    let folder = Folder::new();
    let control = Control::default();
    control.cancel();
    let files = [folder.write("log", slots(3).join("\n").as_bytes())];
    for threads in [1, 2, 3] {
        let ended = read_host(&files, Division::new(threads), &control, &mut |_, _| {});
        assert!(matches!(ended, Err(ReadError::Cancelled)));
    }
}

#[test]
fn the_first_and_last_time_are_recorded() {
    let text = [
        "no object".to_owned(),
        r#"{"at":"2026-02-05T01:00:00Z"}"#.to_owned(),
        line_at("2026-02-05T19:00:02Z", "x", "{}"),
        line_at("2026-02-05T19:00:00.5Z", "x", "{}"),
        line_at("2026-02-05T19:00:03Z", "x", "{}")[..60].to_owned(),
        "no object either".to_owned(),
    ];
    let (_, counts) = read_text(text.join("\n").as_bytes());
    let second = 1_770_318_000_000_000_000;
    assert_eq!(counts.first_ns, Some(second + 2_000_000_000));
    assert_eq!(counts.last_ns, Some(second + 3_000_000_000));
    assert_eq!(counts.seconds_before_order, 1.5);
    assert_eq!((counts.raw_lines, counts.not_objects, counts.malformed, counts.ignored), (6, 2, 2, 2));
}

#[test]
fn the_first_malformed_lines_are_stored_as_examples() {
    let mut text: Vec<String> = (0..8).map(|number| format!("{{bad {number}")).collect();
    text[1] = format!("{{{}", "é".repeat(1_000));
    let folder = Folder::new();
    let path = folder.write("log", text.join("\n").as_bytes());
    let (_, counts) = read(std::slice::from_ref(&path));
    assert_eq!((counts.malformed, counts.malformed_examples.len()), (8, 5));
    let kept = &counts.malformed_examples[4];
    assert_eq!((kept.file.as_str(), kept.line, kept.text.as_str()), (name_of(&path).as_str(), 5, "{bad 4"));
    assert_eq!(counts.malformed_examples[1].text.chars().count(), 200);
}

#[test]
fn a_line_with_invalid_text_is_malformed_wherever_the_bytes_are() {
    for ns in ["Forge.Loop.LedgerState", "Ignored.Message"] {
        let good = line(ns, r#"{"slot":5,"note":"xyz"}"#);
        for spot in [good.find("xyz").unwrap(), good.find("Info").unwrap()] {
            let mut bad = good.clone().into_bytes();
            bad[spot] = 0xff;
            let (events, counts) = read_text(&bad);
            assert!(events.is_empty());
            assert_eq!(counts.malformed_envelope, 1);
            assert_eq!(counts.malformed_examples[0].reason, "not valid UTF-8");
        }
    }
}

#[test]
fn an_endless_line_is_counted_once_and_not_buffered() {
    let mut text = format!("{}\n{{\"at\":\"", slots(1)[0]).into_bytes();
    text.resize(text.len() + (40 << 20), b'x');
    text.extend_from_slice(format!("\n{}", slots(2)[1]).as_bytes());
    let folder = Folder::new();
    let path = folder.write("log", &zstd(&text));
    drop(text);
    let (events, counts) = read(&[path]);
    assert_eq!((events.len(), counts.raw_lines, counts.malformed_envelope), (2, 3, 1));
    assert_eq!(counts.malformed_examples[0].reason, "longer than 16 MiB");
    assert_eq!(events[1].1.line, 3);
}

#[test]
fn the_head_of_a_file_is_summarised() {
    let start = |slot: u64| {
        line_at(
            &format!("2026-02-05T00:00:{slot:02}Z"),
            "Forge.Loop.StartLeadershipCheck",
            &format!(r#"{{"slot":{slot}}}"#),
        )
    };
    let lines: Vec<String> = (0..40).map(start).collect();
    let folder = Folder::new();
    let path = folder.write("log", &gzip(lines.join("\n").as_bytes()));
    let head = scan_head(&path, 10).unwrap();
    assert_eq!((head.lines, head.objects, head.starts.len(), head.container), (10, 10, 10, Container::Gzip));
    assert_eq!(head.starts[3], (3, head.first_ns.unwrap() + 3_000_000_000));
    let head = scan_head(&path, 1_000).unwrap();
    assert_eq!((head.lines, head.starts.len()), (40, 20));
    assert_eq!(head.names["node-7"], 40);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// However a text is cut into files and compressed, the result is the same.
    #[test]
    fn splitting_and_compression_do_not_change_the_result(
        count in 1_u64..200,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 1..6),
        names in Just((0..6).collect::<Vec<_>>()).prop_shuffle(),
        noise in "[a-z]{0,3000}",
        newline in any::<bool>(),
    ) {
        let mut lines = slots(count);
        lines[count as usize / 2].insert_str(1, &format!(r#""note":"{noise}","#));
        let mut ends: Vec<_> = cuts.iter().map(|(index, _)| index.index(lines.len())).chain([lines.len()]).collect();
        ends.sort_unstable();
        let folder = Folder::new();
        let mut files = Vec::new();
        let mut start = 0;
        for (number, end) in ends.into_iter().enumerate() {
            let text = lines[start..end].join("\n") + if newline && start < end { "\n" } else { "" };
            let bytes = match cuts.get(number).map_or(0, |cut| cut.1) {
                0 => text.into_bytes(),
                1 => gzip(text.as_bytes()),
                2 => xz(text.as_bytes()),
                _ => zstd(text.as_bytes()),
            };
            files.push(folder.write(&format!("log{}", names[number]), &bytes));
            start = end;
        }
        prop_assert_eq!(facts(&files), expected_facts(0..count));
    }

    /// Members that were truncated, or followed by other data, give what can be unpacked of them: no event that the log
    /// did not have, every line in one class, and damage if the file is not the compressor's output.
    #[test]
    fn broken_members_are_read_up_to_the_damage(
        count in 1_u64..400,
        packer in 0..3_usize,
        keep in prop_oneof![Just(1.0), 0.0..1.0_f64],
        behind in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let lines = slots(count);
        let packed = [gzip, zstd, xz][packer](lines.join("\n").as_bytes());
        let whole = (packed.len() as f64 * keep) as usize;
        let bytes = [&packed[..whole], &behind[..]].concat();
        let folder = Folder::new();
        let path = folder.write("log", &bytes);
        let (events, counts) = read(std::slice::from_ref(&path));
        prop_assert!(counts.check().is_ok());
        prop_assert_eq!(counts.files[0].stored_bytes, bytes.len() as u64);
        prop_assert!(events.len() <= count as usize);
        if whole == packed.len() {
            prop_assert_eq!(events.len(), count as usize);
        } else if counts.files[0].container != Container::Plain {
            prop_assert!(counts.files[0].damage.is_some());
        }
        prop_assert!(scan_head(&path, 4_000).is_ok());
    }
}
