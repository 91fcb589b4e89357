//! Files looked through range by range, wherever a range begins and ends, and what became of a file or of the findings
//! meanwhile. That the result is that of the whole file is also tested with every other text of these tests.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::ops::Range;
use std::path::PathBuf;

use chainmark_trace::control::Control;
use chainmark_trace::error::ReadError;
use chainmark_trace::reader::{Division, RangeRequest, look_through_range, read_ranges};
use proptest::prelude::*;

use crate::log_lines::{Folder, line, line_at, read, read_in_ranges};

const RANGE: u64 = 1 << 20;

fn lines(count: u32) -> String {
    let at = |number: u32| format!("2026-02-05T19:{:02}:{:02}.5Z", number / 60 % 60, number % 60);
    let data = r#"{"kind":"TraceLedgerState","slot":7}"#;
    (0..count).map(|number| format!("{}\n", line_at(&at(number), "Forge.Loop.LedgerState", data))).collect()
}

fn request(path: PathBuf, range: Range<u64>, stored_bytes: u64, findings_out: PathBuf) -> RangeRequest {
    RangeRequest { path, range: Some(range), stored_bytes, findings_out }
}

#[test]
fn a_line_longer_than_several_ranges_belongs_to_the_first() {
    let folder = Folder::new();
    for (number, long_bytes) in [3 << 20, 17 << 20, 34 << 20].into_iter().enumerate() {
        let long = line("Net.Long", &format!(r#"{{"kind":"K","text":"{}"}}"#, "x".repeat(long_bytes)));
        let text = format!("{}{long}\n{}", lines(9), lines(9_000));
        let files = [folder.write(&number.to_string(), text.as_bytes())];
        let expected = read(&files);
        assert_eq!(expected.1.malformed, u64::from(long_bytes > 16 << 20));
        assert_eq!(read_in_ranges(&files, RANGE), expected);
    }
}

#[test]
fn a_range_may_begin_at_a_line_or_at_its_newline() {
    let folder = Folder::new();
    for shorter in 0..3 {
        let first = "x".repeat(1_024 - shorter);
        read(&[folder.write("log", format!("{first}\n{}", lines(20)).as_bytes())]);
    }
}

#[test]
fn a_mark_of_the_byte_order_is_no_text_of_the_first_range() {
    let folder = Folder::new();
    let text = format!("\u{feff}{}", lines(30));
    let (events, counts) = read(&[folder.write("log", text.as_bytes())]);
    assert_eq!((events.len(), counts.files[0].text_bytes), (30, text.len() as u64 - 3));
}

#[test]
fn what_is_appended_meanwhile_is_not_read_and_a_shorter_file_is_an_error() {
    let folder = Folder::new();
    let text = lines(40);
    let path = folder.write("log", text.as_bytes());
    let (size, half) = (text.len() as u64, 4_096);
    let outs = [folder.path("0"), folder.path("1")];
    std::fs::write(&path, format!("{text}{text}")).unwrap();
    for (range, out) in [0..half, half..size].into_iter().zip(&outs) {
        look_through_range(&request(path.clone(), range, size, out.clone()), &Control::default()).unwrap();
    }
    let findings = BTreeMap::from([(path.clone(), outs.to_vec())]);
    let read =
        read_ranges(std::slice::from_ref(&path), &findings, Division::new(1), &Control::default(), &mut |_, _| {});
    let file = &read.unwrap().files[0];
    assert_eq!((file.lines, file.stored_bytes), (40, size));
    assert_eq!(file.blake3, blake3::hash(text.as_bytes()).to_hex().to_string());

    OpenOptions::new().write(true).open(&path).unwrap().set_len(size - 7).unwrap();
    let shorter = look_through_range(&request(path, half..size, size, outs[0].clone()), &Control::default());
    assert!(shorter.unwrap_err().to_string().ends_with("it became shorter while it was read"));
}

#[test]
fn looking_through_a_range_can_be_cancelled() {
    let folder = Folder::new();
    let control = Control::default();
    control.cancel();
    let path = folder.write("log", lines(40).as_bytes());
    let ended = look_through_range(&request(path, 0..4_096, 6_000, folder.path("out")), &control);
    assert!(matches!(ended, Err(ReadError::Cancelled)));
}

#[test]
fn a_range_whose_hash_is_no_part_of_the_files_is_refused() {
    let possible = |range: Range<u64>, size| request(PathBuf::from("log"), range, size, PathBuf::new()).check().is_ok();
    for (range, size) in [(0..1_024, 1_025), (1_024..1_025, 1_025), (0..4_096, 5_000), (4_096..5_000, 5_000)] {
        assert!(possible(range.clone(), size), "{range:?} of {size}");
    }
    let impossible = [(0..5_000, 5_000), (0..1_000, 5_000), (500..1_524, 5_000), (2_048..5_000, 5_000), (0..8, 800)];
    for (range, size) in impossible.into_iter().chain([(1_024..1_024, 5_000), (4_096..8_192, 5_000)]) {
        assert!(!possible(range.clone(), size), "{range:?} of {size}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn damaged_findings_are_an_error_and_never_other_figures(
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
        cut in any::<bool>(),
    ) {
        let folder = Folder::new();
        let path = folder.write("log", format!("no object\n{}", lines(40)).as_bytes());
        let out = folder.path("out");
        let whole = RangeRequest { path: path.clone(), range: None, stored_bytes: 0, findings_out: out.clone() };
        look_through_range(&whole, &Control::default()).unwrap();
        let read = |content: &[u8]| {
            std::fs::write(&out, content).unwrap();
            let findings = BTreeMap::from([(path.clone(), vec![out.clone()])]);
            read_ranges(std::slice::from_ref(&path), &findings, Division::new(1), &Control::default(), &mut |_, _| {})
        };
        let content = std::fs::read(&out).unwrap();
        let expected = read(&content).unwrap();
        let mut damaged = content.clone();
        let place = at.index(content.len());
        if cut { damaged.truncate(place) } else { damaged[place] ^= 1 << bit }
        match read(&damaged) {
            Err(error) => prop_assert!(matches!(error, ReadError::Damaged { .. }), "{error}"),
            // A bit of the frame's header that nothing depends on.
            Ok(counts) => prop_assert_eq!(counts, expected),
        }
    }
}
