//! Lines that other programs put around the node's own: journald's export and text, docker's json-file, what
//! Kubernetes' runtimes write, process-compose, and what collectors print before a line.

use serde::Serialize;

use crate::json::{Scanner, Span, integer, unescape_into};
use crate::text::TextBuffer;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrapper {
    None,
    /// `journalctl -o json`: the line is in `MESSAGE`, a string, or numbers if it is not all text.
    Journald,
    /// The line is in `log`, with its newline.
    Docker,
    /// The line is in `message`, next to `level`, `process` and `replica`, or in Loki's `line`.
    Devnet,
    /// `journalctl`, as syslog writes: the line follows the time, the machine and the program, `cardano-node[7]: `, or
    /// `MESSAGE=` (`-o export`); or whatever else a collector puts before it, as `docker compose logs` and
    /// `kubectl logs --prefix` do.
    Syslog,
    /// As containerd and CRI-O write: the line follows the time, the stream, and whether it continues (`P`) or not
    /// (`F`).
    Container,
}

/// A line's time, machine and program are no longer than this.
const LONGEST_LEAD: usize = 300;
/// The terminal code that ends a colour.
const COLOUR_END: &[u8] = b"\x1b[0m";

/// The object that follows a line's time, machine and program; None if there is none. The rest of a line with a lost
/// beginning does not qualify: it directly follows other text.
pub fn after_lead(line: &[u8]) -> Option<&[u8]> {
    let lead = &line[..line.len().min(LONGEST_LEAD)];
    let follows = |at: usize| match at.checked_sub(1).map(|before| lead[before]) {
        Some(b' ' | b'\t' | 0x1e) => true,
        Some(b'm') => lead[..at].contains(&0x1b),
        Some(b'=') => lead[..at] == *b"MESSAGE=",
        _ => false,
    };
    let begins = |at: usize| matches!(line.get(at + 1), Some(b'"' | b' ')) && follows(at);
    let at = memchr::memchr_iter(b'{', lead).find(|&at| begins(at))?;
    let object = &line[at..];
    Some(object.strip_suffix(COLOUR_END).unwrap_or(object))
}

/// A container runtime's data about a line: its stream, whether it continues in a later one, and the text.
pub fn of_container(line: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let mut words = line.splitn(4, |&byte| byte == b' ');
    words.next().filter(|time| time.first().is_some_and(u8::is_ascii_digit) && time.contains(&b'T'))?;
    let stream = words.next().filter(|stream| matches!(*stream, b"stdout" | b"stderr"))?;
    let tag = words.next().filter(|tag| matches!(tag.first(), Some(b'P' | b'F')))?;
    Some((stream, tag[0] == b'P', words.next().unwrap_or_default()))
}

impl Wrapper {
    pub const ALL: [Self; 6] = [Self::None, Self::Journald, Self::Docker, Self::Devnet, Self::Syslog, Self::Container];

    /// Whether lines of other programs than nodes are expected: their objects are not a node's.
    pub fn has_other_programs(self) -> bool {
        matches!(self, Self::Journald | Self::Devnet | Self::Syslog)
    }
}

/// Docker cuts lines into pieces of this many bytes; only the last piece ends in a newline.
const DOCKER_PIECE: usize = 16_384;

/// Streams whose cut lines are kept separately; of further streams each piece is processed by itself.
const MAX_STREAMS: usize = 64;

/// First pieces of lines whose last ones have not arrived yet. Programs write at the same time, so pieces of one's line
/// are between those of another's; a stream writes one line after the other.
#[derive(Default)]
pub struct Pending {
    lines: Vec<Cut>,
    bytes: usize,
}

struct Cut {
    wrapper: Wrapper,
    stream: Vec<u8>,
    text: TextBuffer,
}

impl Pending {
    /// Keeps a piece; false if there is no room for it in `most` bytes.
    pub fn keep(&mut self, wrapper: Wrapper, stream: &[u8], piece: &[u8], most: usize) -> bool {
        if self.bytes + piece.len() > most {
            return false;
        }
        let place = self.place(wrapper, stream).unwrap_or(self.lines.len());
        if place == MAX_STREAMS {
            return false;
        }
        if place == self.lines.len() {
            self.lines.push(Cut { wrapper, stream: stream.to_vec(), text: TextBuffer::new(0) });
        }
        self.lines[place].text.append(piece);
        self.bytes += piece.len();
        true
    }

    /// Puts the pieces that were kept before their last one.
    pub fn complete(&mut self, wrapper: Wrapper, stream: &[u8], last: &mut TextBuffer) {
        let Some(place) = self.place(wrapper, stream) else { return };
        let mut text = self.lines.swap_remove(place).text;
        self.bytes -= text.len();
        text.append(last.as_bytes());
        *last = text;
    }

    /// A line whose last piece is missing.
    pub fn take(&mut self) -> Option<(Wrapper, TextBuffer)> {
        let Cut { wrapper, text, .. } = self.lines.pop()?;
        self.bytes -= text.len();
        Some((wrapper, text))
    }

    fn place(&self, wrapper: Wrapper, stream: &[u8]) -> Option<usize> {
        self.lines.iter().position(|line| line.wrapper == wrapper && line.stream == stream)
    }
}

/// Writes the wrapped line to `out`; returns whether it continues in a later line.
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
        Wrapper::None | Wrapper::Devnet | Wrapper::Syslog | Wrapper::Container => false,
    };
    Ok(goes_on)
}
