//! Any bytes as one line: no panic, one class, and the same one however often it is repeated.
//!
//! In crates/chainmark-trace: `cargo +nightly fuzz run line -- -max_total_time=60`

#![no_main]

use chainmark_trace::decode::Decoder;
use chainmark_trace::text::TextBuffer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let mut buffer = TextBuffer::new(0);
    buffer.append(line);
    buffer.index();
    let mut decoder = Decoder::default();
    // What one line leaves behind must not spoil the next one.
    let first = format!("{:?}", Decoder::default().line(&buffer.text(), 0, line.len()));
    for _ in 0..4 {
        let decoded = format!("{:?}", decoder.line(&buffer.text(), 0, line.len()));
        // Pieces of a wrapped line are put together.
        assert!(decoded == first || first == "Piece");
    }
    while decoder.end().is_some() {}
    let counts = decoder.counts();
    assert_eq!(counts.raw_lines, 4);
    let classes = counts.decoded + counts.ignored + counts.skipped + counts.malformed + counts.not_objects;
    assert_eq!(counts.raw_lines, classes);
});
