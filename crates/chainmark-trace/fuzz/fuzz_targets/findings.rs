//! Any bytes as what another machine found in a log: an error or counts that add up, and no panic.
//!
//! In crates/chainmark-trace: `cargo +nightly fuzz run findings -- -max_total_time=60`

#![no_main]

use std::collections::BTreeMap;
use std::path::PathBuf;

use chainmark_trace::control::Control;
use chainmark_trace::reader::{Division, read_ranges};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("chainmark-findings-fuzz-{}", std::process::id()));
    std::fs::write(&path, zstd::encode_all(bytes, 1).expect("memory can be compressed"))
        .expect("the folder can be written");
    let log = PathBuf::from("log");
    let findings = BTreeMap::from([(log.clone(), vec![path])]);
    let read = read_ranges(&[log], &findings, Division::new(1), &Control::default(), &mut |_, _| {});
    if let Ok(counts) = read {
        counts.check().expect("the sums hold");
    }
});
