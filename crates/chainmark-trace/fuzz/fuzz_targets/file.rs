//! Any bytes as a stored file, compressed or not: no panic, no failure, the sums hold, however
//! the reading is divided among threads.
//!
//! In crates/chainmark-trace: `cargo +nightly fuzz run file -- -max_total_time=60`

#![no_main]

use chainmark_trace::control::Control;
use chainmark_trace::reader::{Division, read_host};
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
    let divided = read_host(&[path], Division::new(3), &Control::default(), &mut |event, place| {
        assert_eq!(again.next(), Some(&format!("{event:?} {place:?}")), "further threads change nothing");
    });
    assert_eq!(divided.expect("any file can be read"), counts);
    assert!(again.next().is_none());
    counts.check().expect("the sums hold");
    assert_eq!(counts.decoded, events.len() as u64);
    assert_eq!(counts.files[0].stored_bytes, bytes.len() as u64);
});
