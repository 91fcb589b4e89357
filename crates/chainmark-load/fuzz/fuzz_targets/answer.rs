//! Any bytes as a server's responses: no panic, and the result does not depend on how they are split. The first byte
//! defines the split.
//!
//! In crates/chainmark-load: `cargo +nightly fuzz run answer -- -max_total_time=60`

#![no_main]

use chainmark_load::http::answer::{AnswerParser, Malformed, Piece};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, PartialEq)]
struct Read {
    answers: Vec<(u16, Vec<u8>, bool)>,
    begun: Vec<u8>,
    error: Option<Malformed>,
}

fn read<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Read {
    let mut parser = AnswerParser::default();
    let mut read = Read { answers: Vec::new(), begun: Vec::new(), error: None };
    for input in pieces {
        let mut at = 0;
        loop {
            match parser.advance(input, &mut at) {
                Err(malformed) => {
                    read.error = Some(malformed);
                    return read;
                }
                Ok(Piece::Head) => {}
                Ok(Piece::Body(range)) => read.begun.extend_from_slice(&input[range]),
                Ok(Piece::Done) => {
                    let body = std::mem::take(&mut read.begun);
                    read.answers.push((parser.status(), body, parser.keep_alive()));
                    parser.restart();
                }
                Ok(Piece::More) => break,
            }
        }
        assert_eq!(at, input.len());
    }
    read
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let whole = read(std::iter::once(bytes));
    assert_eq!(read(bytes.chunks(usize::from(first).max(1))), whole);
    assert_eq!(read(bytes.chunks(1)), whole);
});
