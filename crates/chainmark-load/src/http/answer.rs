//! Parses the bytes of an HTTP/1.1 response, split anywhere, into its status and the pieces of its body.
//!
//! RFC 9112: framing by chunks, by length, or by the end of the connection; informational responses are skipped.

use super::coding::Coded;
use std::mem::MaybeUninit;
use std::ops::Range;
use thiserror::Error;

/// Maximum length of a head, or of the trailers of a chunked body.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;
/// Maximum length of the server's name.
pub(super) const MAX_NAME_BYTES: usize = 200;
const SWITCHING_PROTOCOLS: u16 = 101;
pub(super) const REDIRECTS: std::ops::RangeInclusive<u16> = 300..=399;

/// Why bytes are not a response; the connection cannot be used afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("{0}")]
    Head(httparse::Error),
    #[error("headers of more than 65536 bytes")]
    LongHead,
    #[error("a Content-Length that is not a number, or two that differ")]
    Length,
    #[error("a chunk size that is not a hexadecimal number")]
    ChunkSize,
    #[error("a chunk that is longer than its declared size")]
    ChunkEnd,
    #[error("trailers of more than 65536 bytes")]
    LongTrailers,
    #[error("the server uses TLS, but the request was sent without TLS")]
    Tls,
    #[error("the server uses HTTP/2, but the request was sent in HTTP/1.1")]
    Http2,
    #[error("status 101, although the request does not ask for another protocol")]
    SwitchingProtocols,
}

impl Malformed {
    /// Of bytes that begin as no head does. A TLS alert or handshake has the record's type and version first, an HTTP/2
    /// frame of settings or farewell its length and type, and the connection's own stream.
    fn of(bytes: &[u8], error: httparse::Error) -> Self {
        match bytes {
            [0x15 | 0x16, 3, ..] => Self::Tls,
            [0, _, _, 4 | 7, _, 0, 0, 0, 0, ..] => Self::Http2,
            _ => Self::Head(error),
        }
    }
}

/// What [`AnswerParser::advance`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The final head: the status and the framing are known.
    Head,
    /// These bytes of the input belong to the body.
    Body(Range<usize>),
    /// The response is complete; the rest of the input does not belong to it.
    Done,
    /// The input is used up.
    More,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    ChunkSize { size: u64, digits: u8 },
    ChunkExtension(u64),
    ChunkData(u64),
    ChunkCarriageReturn,
    ChunkLineFeed,
    Trailer { line_bytes: u32, bytes: u32 },
    UntilClose,
    Done,
}

/// Parses one response after another.
#[derive(Debug)]
pub struct AnswerParser {
    state: State,
    status: u16,
    coded: Coded,
    location: Option<Box<str>>,
    server: Option<Box<str>>,
    keep_alive: bool,
    /// The beginning of a head that has not arrived whole.
    head: Vec<u8>,
}

impl Default for AnswerParser {
    fn default() -> Self {
        let (status, coded) = (0, Coded::Plain);
        let (location, server, head) = (None, None, Vec::new());
        Self { state: State::Head, status, coded, location, server, keep_alive: true, head }
    }
}

impl AnswerParser {
    /// Resets the parser for the next response.
    pub fn restart(&mut self) {
        self.state = State::Head;
        self.head.clear();
    }

    /// The status, once a head has been found.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// How the body is compressed, once a head has been found.
    pub fn coded(&self) -> Coded {
        self.coded
    }

    /// The target of a redirect.
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }

    /// The server's name, from the first head that contains it.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Whether the server allows the connection to be reused after this response.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Whether no byte of a response has arrived.
    pub fn is_untouched(&self) -> bool {
        self.state == State::Head && self.head.is_empty()
    }

    /// Whether the end of the connection is the end of this response.
    pub fn ends_with_connection(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Finds the next piece of `input` from `at` on, and moves `at` past it.
    ///
    /// # Errors
    /// The bytes are not a response.
    pub fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<Piece, Malformed> {
        loop {
            match self.state {
                State::Head => match self.read_head(input, at)? {
                    Some(piece) => return Ok(piece),
                    None => continue,
                },
                State::Done => return Ok(Piece::Done),
                _ if *at == input.len() => return Ok(Piece::More),
                State::Length(left) => return Ok(self.take(input, at, left, State::Length, State::Done)),
                State::UntilClose => return Ok(self.take(input, at, u64::MAX, |_| State::UntilClose, State::Done)),
                State::ChunkData(left) => {
                    return Ok(self.take(input, at, left, State::ChunkData, State::ChunkCarriageReturn));
                }
                _ => {
                    self.framing(input[*at])?;
                    *at += 1;
                }
            }
        }
    }

    /// As many bytes as belong to the body.
    fn take(&mut self, input: &[u8], at: &mut usize, left: u64, rest: fn(u64) -> State, after: State) -> Piece {
        let count = left.min((input.len() - *at) as u64);
        self.state = if count == left { after } else { rest(left - count) };
        let begin = *at;
        *at += count as usize;
        Piece::Body(begin..*at)
    }

    /// Consumes one byte of the framing around the chunks. A lone line feed ends a line, too.
    fn framing(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match (self.state, byte) {
            (State::ChunkSize { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 15 => {
                let digit = char::from(byte).to_digit(16).expect("the pattern admits only digits");
                State::ChunkSize { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (State::ChunkSize { digits: 0, .. }, _) => return Err(Malformed::ChunkSize),
            (State::ChunkSize { size, .. } | State::ChunkExtension(size), b'\n') => match size {
                0 => State::Trailer { line_bytes: 0, bytes: 0 },
                size => State::ChunkData(size),
            },
            (State::ChunkSize { size, .. }, b';' | b' ' | b'\t' | b'\r') => State::ChunkExtension(size),
            (State::ChunkExtension(size), _) => State::ChunkExtension(size),
            (State::ChunkSize { .. }, _) => return Err(Malformed::ChunkSize),
            (State::ChunkCarriageReturn, b'\r') => State::ChunkLineFeed,
            (State::ChunkCarriageReturn | State::ChunkLineFeed, b'\n') => State::ChunkSize { size: 0, digits: 0 },
            (State::Trailer { line_bytes: 0, .. }, b'\n') => State::Done,
            (State::Trailer { bytes, .. }, _) if bytes as usize >= MAX_HEAD_BYTES => {
                return Err(Malformed::LongTrailers);
            }
            (State::Trailer { bytes, .. }, b'\n') => State::Trailer { line_bytes: 0, bytes: bytes + 1 },
            (State::Trailer { line_bytes, bytes }, b'\r') => State::Trailer { line_bytes, bytes: bytes + 1 },
            (State::Trailer { line_bytes, bytes }, _) => {
                State::Trailer { line_bytes: line_bytes + 1, bytes: bytes + 1 }
            }
            _ => return Err(Malformed::ChunkEnd),
        };
        Ok(())
    }

    /// None: an informational response was skipped.
    fn read_head(&mut self, input: &[u8], at: &mut usize) -> Result<Option<Piece>, Malformed> {
        if *at == input.len() {
            return Ok(Some(Piece::More));
        }
        let rest = &input[*at..];
        let result = if self.head.is_empty() {
            let result = Head::read(rest, self.server.is_none())?;
            if let Some(head) = &result {
                *at += head.bytes;
            }
            result
        } else {
            // The head before this input was not whole, so it ends within it or later.
            let (before, room) = (self.head.len(), (MAX_HEAD_BYTES + 1).saturating_sub(self.head.len()));
            self.head.extend_from_slice(&rest[..rest.len().min(room)]);
            let result = Head::read(&self.head, self.server.is_none())?;
            if let Some(head) = &result {
                *at += head.bytes - before;
                self.head.clear();
            }
            result
        };
        match result {
            Some(head) => self.begin_body(head),
            None => self.keep_head(rest, input.len(), at),
        }
    }

    fn keep_head(&mut self, rest: &[u8], end: usize, at: &mut usize) -> Result<Option<Piece>, Malformed> {
        if self.head.is_empty() {
            self.head.extend_from_slice(rest);
        }
        if self.head.len() > MAX_HEAD_BYTES {
            return Err(Malformed::LongHead);
        }
        *at = end;
        Ok(Some(Piece::More))
    }

    fn begin_body(&mut self, head: Head) -> Result<Option<Piece>, Malformed> {
        match head.status {
            SWITCHING_PROTOCOLS => return Err(Malformed::SwitchingProtocols),
            100..=199 => return Ok(None),
            _ => {}
        }
        self.status = head.status;
        self.coded = head.coded;
        self.location = head.location;
        self.server = self.server.take().or(head.server);
        self.state = match head.framing {
            _ if matches!(head.status, 204 | 304) => State::Done,
            Framing::Chunked => State::ChunkSize { size: 0, digits: 0 },
            Framing::Length(0) => State::Done,
            Framing::Length(bytes) => State::Length(bytes),
            Framing::UntilClose => State::UntilClose,
        };
        self.keep_alive = head.keep_alive && self.state != State::UntilClose;
        Ok(Some(Piece::Head))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Chunked,
    Length(u64),
    UntilClose,
}

/// What of a head matters.
#[derive(Debug)]
struct Head {
    bytes: usize,
    status: u16,
    framing: Framing,
    keep_alive: bool,
    coded: Coded,
    location: Option<Box<str>>,
    server: Option<Box<str>>,
}

impl Head {
    /// None: it is not whole yet. `with_server`: the server's name is of interest.
    fn read(bytes: &[u8], with_server: bool) -> Result<Option<Self>, Malformed> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed =
            httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
        let httparse::Status::Complete(length) = parsed.map_err(|error| Malformed::of(bytes, error))? else {
            return Ok(None);
        };
        if length > MAX_HEAD_BYTES {
            return Err(Malformed::LongHead);
        }
        let mut fields = Fields::default();
        for header in response.headers.iter() {
            fields.read(header.name, header.value)?;
        }
        let framing = fields.framing();
        // Both headers together are a request-smuggling risk: RFC 9112 §6.1 requires closing the connection afterwards.
        let ambiguous = fields.transfer_encoding.is_some() && fields.length.is_some();
        let keep_alive = !fields.close && !ambiguous && (response.version == Some(1) || fields.keep_alive);
        let status = response.code.unwrap_or(0);
        let location = fields.location.filter(|_| REDIRECTS.contains(&status));
        let location = location.map(|text| String::from_utf8_lossy(text).into());
        let server = fields.server.filter(|_| with_server);
        let server = server.map(|text| String::from_utf8_lossy(&text[..text.len().min(MAX_NAME_BYTES)]).into());
        Ok(Some(Self { bytes: length, status, framing, keep_alive, coded: fields.coded, location, server }))
    }
}

#[derive(Debug, Default)]
struct Fields<'h> {
    length: Option<u64>,
    /// Whether the last coding is chunked.
    transfer_encoding: Option<bool>,
    close: bool,
    keep_alive: bool,
    coded: Coded,
    location: Option<&'h [u8]>,
    server: Option<&'h [u8]>,
}

impl<'h> Fields<'h> {
    fn read(&mut self, name: &str, value: &'h [u8]) -> Result<(), Malformed> {
        // The lengths of the names that matter differ, which spares most comparisons.
        match name.len() {
            6 if name.eq_ignore_ascii_case("server") => self.server = Some(value),
            8 if name.eq_ignore_ascii_case("location") => self.location = Some(value),
            16 if name.eq_ignore_ascii_case("content-encoding") => {
                // Of two fields, the body has been through both.
                self.coded = if self.coded == Coded::Plain { Coded::of(value) } else { Coded::SEVERAL };
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                for option in list(value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                for length in list(value) {
                    let length = digits(length).ok_or(Malformed::Length)?;
                    if self.length.replace(length).is_some_and(|before| before != length) {
                        return Err(Malformed::Length);
                    }
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if let Some(last) = list(value).last() {
                    self.transfer_encoding = Some(last.eq_ignore_ascii_case(b"chunked"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self) -> Framing {
        match (self.transfer_encoding, self.length) {
            (Some(true), _) => Framing::Chunked,
            (Some(false), _) | (None, None) => Framing::UntilClose,
            (None, Some(length)) => Framing::Length(length),
        }
    }
}

fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |value, &digit| value * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
