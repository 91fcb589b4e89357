//! Lines that other programs put around the node's own: journald's export, docker's json-file, process-compose.

use serde::Serialize;

use crate::json::{Scanner, Span, integer, unescape_into};
use crate::text::TextBuffer;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrapper {
    None,
    /// `journalctl -o json`: the line is in `MESSAGE`, a string, or numbers where it is not all text.
    Journald,
    /// The line is in `log`, with its newline.
    Docker,
    /// The line is in `message`, beside `level`, `process` and `replica`.
    Devnet,
}

impl Wrapper {
    pub const ALL: [Self; 4] = [Self::None, Self::Journald, Self::Docker, Self::Devnet];
}

/// Docker cuts lines into pieces of this many bytes; only the last piece ends in a newline.
const DOCKER_PIECE: usize = 16_384;

/// Puts the wrapped line into `out`; tells whether it goes on in a later line.
pub fn unwrap(
    scanner: Scanner<'_>,
    wrapper: Wrapper,
    payload: Span,
    line_break: Span,
    out: &mut TextBuffer,
) -> Result<bool, &'static str> {
    out.clear();
    match payload.lead(scanner.text) {
        b'"' => {
            let inside = payload.of(scanner.text);
            unescape_into(&inside[1..inside.len() - 1], |part| out.append(part));
        }
        b'[' => {
            for item in scanner.items(payload) {
                let byte = integer(scanner.text, item).and_then(|value| u8::try_from(value).ok());
                out.append(&[byte.ok_or("the wrapped line is an array of what are no bytes")?]);
            }
        }
        b'{' => out.append(payload.of(scanner.text)),
        _ => return Err("the wrapped line is missing; journalctl leaves long ones out unless it is given --all"),
    }
    let goes_on = match wrapper {
        Wrapper::Docker => !out.as_bytes().ends_with(b"\n") && out.len() >= DOCKER_PIECE,
        Wrapper::Journald => line_break.of(scanner.text) == b"\"line-max\"",
        Wrapper::None | Wrapper::Devnet => false,
    };
    Ok(goes_on)
}
