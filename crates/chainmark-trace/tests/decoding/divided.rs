//! A file divided among threads at its lines gives the same result as an undivided one: the same events in the same
//! order, the same classes of lines, names, addresses, times and hash.

use chainmark_trace::reader::Division;
use proptest::prelude::*;

use crate::log_lines::{Folder, gzip, line, line_at, quoted, read_divided, read_in_ranges, zstd};
use crate::repeats;

const UNDIVIDED: Division = Division { threads: 1, piece_bytes: 4_096 };

fn fetched(local: u8, host: u8) -> String {
    let data = format!(
        r#"{{"kind":"C","block":"{}","size":{local},"peer":{{"connectionId":"10.0.0.{local}:1 b:2"}}}}"#,
        "ab".repeat(32)
    );
    line("BlockFetch.Client.CompletedBlockFetch", &data).replace("node-7", &format!("node-{host}"))
}

/// Lines as nodes, journals and runtimes write them, those that only the ones before explain among them.
fn some_line() -> impl Strategy<Value = Vec<u8>> {
    let text = |text: String| text.into_bytes();
    let second =
        || (0..86_400_u32).prop_map(|at| format!("2026-02-05T{:02}:{:02}:{:02}.5Z", at / 3600, at / 60 % 60, at % 60));
    let slot = |at: String| line_at(&at, "Forge.Loop.LedgerState", r#"{"kind":"TraceLedgerState","slot":7}"#);
    let docker = |piece: &str, stream: &str| format!(r#"{{"log":{},"stream":"{stream}","time":"t"}}"#, quoted(piece));
    prop_oneof![
        12 => repeats::line(),
        4 => (any::<u8>(), 0..20_u8).prop_map(move |(local, host)| text(fetched(local, host))),
        4 => second().prop_map(move |at| text(slot(at))),
        2 => (0..40_u8).prop_map(move |kind| text(line("Net.Some", &format!(r#"{{"kind":"K{kind}"}}"#)))),
        1 => second().prop_map(move |at| text(format!("Feb 05 19:00:00 relay cardano-node[7]: {}", slot(at)))),
        1 => second().prop_map(move |at| text(docker(&format!("{}\n", slot(at)), "stdout"))),
        1 => "[a-z]{1,40}".prop_map(move |piece| text(docker(&piece.repeat(500), "stdout"))),
        1 => "[a-z]{0,30}".prop_map(move |piece| text(format!("2026-02-05T19:00:00.5Z stdout P {piece}"))),
        1 => second().prop_map(move |at| text(format!("2026-02-05T19:00:00.5Z stdout F {}", slot(at)))),
        1 => prop::collection::vec(prop_oneof![0..b'\n', b'\n' + 1..=255], 0..200),
        1 => (10..2_000_usize).prop_map(move |long| text("x".repeat(long))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn the_division_of_a_file_does_not_change_the_result(
        lines in prop::collection::vec(some_line(), 0..120),
        ends in any::<bool>(),
        pack in 0..3_usize,
        threads in 2..5_usize,
        piece_bytes in 1..6_000_usize,
        range_bits in 10..15_u32,
    ) {
        let mut text = lines.join(&b'\n');
        text.extend_from_slice(if ends { b"\n" } else { b"" });
        let folder = Folder::new();
        let stored = match pack {
            0 => text,
            1 => gzip(&text),
            _ => zstd(&text),
        };
        let files = [folder.write("log", &stored), folder.write("log.1", &stored[..stored.len() / 2])];
        // How much of a packed file that was cut off can be saved depends on how much is unpacked at once.
        let whole_bytes = if pack == 0 { UNDIVIDED.piece_bytes } else { piece_bytes };
        let undivided = read_divided(&files, Division { threads: 1, piece_bytes: whole_bytes });
        prop_assert!(undivided.1.check().is_ok());
        if pack == 0 {
            prop_assert_eq!(&read_in_ranges(&files, 1 << range_bits), &undivided);
        }
        prop_assert_eq!(read_divided(&files, Division { threads, piece_bytes }), undivided);
    }
}

/// Items kept up to a maximum number are the file's first ones, whichever thread met them first.
#[test]
fn of_too_many_names_the_first_of_the_file_are_retained() {
    let name = |number: u32| line("Net.Name", &format!(r#"{{"kind":"K{}"}}"#, number * 7 % 5_000));
    let mut lines: Vec<String> = (0..5_000).map(name).collect();
    lines.extend((0..300_u32).map(|number| fetched((number * 11 % 256) as u8, (number % 40) as u8)));
    let folder = Folder::new();
    let files = [folder.write("log", lines.join("\n").as_bytes())];
    let undivided = read_divided(&files, UNDIVIDED);
    let counts = &undivided.1;
    assert_eq!((counts.names.len(), counts.local_addresses.len()), (16, 64));
    assert!(counts.ignored_by_message["other"] > 2_000);
    assert_eq!(read_in_ranges(&files, 1 << 14), undivided);
    for (threads, piece_bytes) in [(2, 256 << 10), (2, 3_000), (3, 20_000), (8, 500)] {
        assert_eq!(read_divided(&files, Division { threads, piece_bytes }), undivided);
    }
}
