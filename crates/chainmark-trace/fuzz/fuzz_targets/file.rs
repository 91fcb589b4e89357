//! Any bytes as a stored file, compressed or not: no panic, no failure, the sums hold, however
//! the reading is divided among threads and machines.
//!
//! In crates/chainmark-trace: `cargo +nightly fuzz run file -- -max_total_time=60`

#![no_main]

use std::collections::BTreeMap;
use std::path::PathBuf;

use chainmark_trace::accounting::{Container, HostCounts};
use chainmark_trace::control::Control;
use chainmark_trace::event::Event;
use chainmark_trace::reader::{Division, RangeRequest, look_through_range, read_host, read_ranges};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("chainmark-trace-fuzz-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    let mut events = Vec::new();
    let counts = read_host(std::slice::from_ref(&path), Division::new(1), &Control::default(), &mut |event, place| {
        events.push(format!("{event:?} {place:?}"));
    })
    .expect("any file can be read");
    let mut again = events.iter();
    let in_ranges = in_ranges(&path, bytes.len() as u64, counts.files[0].container == Container::Plain);
    assert_eq!(in_ranges, (counts.clone(), events.clone()), "ranges change nothing");
    let divided = read_host(&[path], Division::new(3), &Control::default(), &mut |event, place| {
        assert_eq!(again.next(), Some(&format!("{event:?} {place:?}")), "further threads change nothing");
    });
    assert_eq!(divided.expect("any file can be read"), counts);
    assert!(again.next().is_none());
    counts.check().expect("the sums hold");
    assert_eq!(counts.decoded, events.len() as u64);
    assert_eq!(counts.files[0].stored_bytes, bytes.len() as u64);
});

fn in_ranges(path: &PathBuf, stored_bytes: u64, is_plain: bool) -> (HostCounts, Vec<String>) {
    let ranges: Vec<_> = match is_plain && stored_bytes > 1024 {
        true => (0..stored_bytes).step_by(1024).map(|begin| Some(begin..stored_bytes.min(begin + 1024))).collect(),
        false => vec![None],
    };
    let mut findings = Vec::new();
    for (place, range) in ranges.into_iter().enumerate() {
        let findings_out = path.with_extension(place.to_string());
        findings.push(findings_out.clone());
        let request = RangeRequest { path: path.clone(), range, stored_bytes, findings_out };
        look_through_range(&request, &Control::default()).expect("any range can be read");
    }
    let (findings, mut events) = (BTreeMap::from([(path.clone(), findings)]), Vec::new());
    let listen = &mut |event: &Event<'_>, place| events.push(format!("{event:?} {place:?}"));
    let counts = read_ranges(std::slice::from_ref(path), &findings, Division::new(1), &Control::default(), listen);
    (counts.expect("any findings of ours can be read"), events)
}
