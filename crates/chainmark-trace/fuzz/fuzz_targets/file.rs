//! Any bytes as a stored file, compressed or not: no panic, no failure, and the sums hold.
//!
//! In crates/chainmark-trace: `cargo +nightly fuzz run file -- -max_total_time=60`

#![no_main]

use chainmark_trace::control::Control;
use chainmark_trace::reader::read_host;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("chainmark-trace-fuzz-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    let mut events = 0;
    let books = read_host(&[path], &Control::default(), &mut |_, _| events += 1).expect("any file can be read");
    books.check().expect("the sums hold");
    assert_eq!(books.decoded, events);
    assert_eq!(books.files[0].stored_bytes, bytes.len() as u64);
});
