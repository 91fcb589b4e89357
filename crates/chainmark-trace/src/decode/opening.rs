//! The first pass over a line: whether it is an object, its wrapper, and the positions of its members.

use std::borrow::Cow;

use crate::decode::Problem;
use crate::json::{Fault, Members, Scanner, Span, unescape, word_of};
use crate::key;
use crate::text::Text;
use crate::wrapper::Wrapper;

/// The members of a log object.
#[derive(Clone, Copy, Default)]
pub(super) struct Envelope {
    pub at: Span,
    pub ns: Span,
    pub data: Span,
    pub host: Span,
    pub thread: Span,
    pub env: Span,
    /// Whether its strings have no escapes.
    pub plain: bool,
}

/// The members of the wrapper of a log object.
#[derive(Clone, Copy, Default)]
struct Wrapping {
    journald: Span,
    docker: Span,
    devnet: Span,
    line_break: Span,
    stream: Span,
    process: Span,
}

/// What a line is.
pub(super) enum Opened {
    NotObject,
    Trace,
    Wrapped(Wrapper),
    Bad(Problem),
}

/// Finds the positions of a line's members, and keeps them until the next line.
#[derive(Default)]
pub(super) struct Opening {
    pub envelope: Envelope,
    wrapping: Wrapping,
    /// Those of `data`.
    pub members: Members,
}

impl Opening {
    /// Validates the line and notes where its members are.
    #[inline(always)]
    pub fn open(&mut self, text: &Text<'_>, start: usize, end: usize) -> Opened {
        if start == end || text.bytes[start] != b'{' {
            return Opened::NotObject;
        }
        if let Some([at, ns, data, thread, host]) = usual(Scanner { text, end }, start, &mut self.members) {
            self.envelope = Envelope { at, ns, data, host, thread, env: Span::default(), plain: true };
            return if is_utf8(text, start, end) { Opened::Trace } else { Opened::Bad(Problem::Utf8) };
        }
        self.open_any(text, start, end)
    }

    #[inline(never)]
    fn open_any(&mut self, text: &Text<'_>, start: usize, end: usize) -> Opened {
        let scanned = self.scan(text, start, end);
        if !is_utf8(text, start, end) {
            return Opened::Bad(Problem::Utf8);
        }
        if let Err(fault) = scanned {
            return Opened::Bad(Problem::Json(fault));
        }
        if self.is_log_object() {
            return Opened::Trace;
        }
        let wrapping = &self.wrapping;
        if wrapping.journald.present() {
            Opened::Wrapped(Wrapper::Journald)
        } else if wrapping.docker.present() {
            Opened::Wrapped(Wrapper::Docker)
        } else if wrapping.devnet.present() {
            Opened::Wrapped(Wrapper::Devnet)
        } else {
            Opened::Trace
        }
    }

    fn scan(&mut self, text: &Text<'_>, start: usize, end: usize) -> Result<(), Fault> {
        self.members.clear();
        let (mut envelope, mut wrapping) = (Envelope::default(), Wrapping::default());
        let members = &mut self.members;
        let result = Scanner { text, end }.whole(start, |scanner, member, at| {
            let key = if member.escaped { unescape(member.key.of(text)) } else { Cow::Borrowed(member.key.of(text)) };
            let place = match key.as_ref() {
                b"data" => {
                    let end = if text.bytes[at] == b'{' {
                        scanner.members(at, 1, members, key::OF_DATA)?
                    } else {
                        scanner.value(at, 1)?
                    };
                    envelope.data = Span::new(at, end);
                    return Ok(end);
                }
                b"at" => Some(&mut envelope.at),
                b"ns" => Some(&mut envelope.ns),
                b"host" => Some(&mut envelope.host),
                b"thread" => Some(&mut envelope.thread),
                b"env" => Some(&mut envelope.env),
                b"MESSAGE" => Some(&mut wrapping.journald),
                b"log" => Some(&mut wrapping.docker),
                b"message" | b"line" => Some(&mut wrapping.devnet),
                b"_LINE_BREAK" => Some(&mut wrapping.line_break),
                b"stream" | b"_STREAM_ID" => Some(&mut wrapping.stream),
                b"_PID" => Some(&mut wrapping.process),
                _ => None,
            };
            let end = scanner.value(at, 1)?;
            if let Some(place) = place {
                *place = Span::new(at, end);
            }
            Ok(end)
        });
        (self.envelope, self.wrapping) = (envelope, wrapping);
        result
    }

    /// The position of the wrapped line, and the mark of its continuation.
    pub fn payload(&self, wrapper: Wrapper) -> (Span, Span) {
        let wrapping = &self.wrapping;
        let payload = match wrapper {
            Wrapper::Journald => wrapping.journald,
            Wrapper::Docker => wrapping.docker,
            Wrapper::Devnet => wrapping.devnet,
            Wrapper::None | Wrapper::Syslog | Wrapper::Container => Span::default(),
        };
        (payload, wrapping.line_break)
    }

    /// Identifies the pieces of a wrapped line among others: docker's name of a stream, journald's number of one, or
    /// that of the process.
    pub fn stream(&self) -> Span {
        if self.wrapping.stream.present() { self.wrapping.stream } else { self.wrapping.process }
    }

    /// Whether an unwrapped object has any property of a log object.
    pub fn is_log_object(&self) -> bool {
        self.envelope.at.present() || self.envelope.ns.present() || self.envelope.data.present()
    }
}

#[inline(always)]
pub(super) fn is_utf8(text: &Text<'_>, start: usize, end: usize) -> bool {
    text.ascii || std::str::from_utf8(&text.bytes[start..end]).is_ok()
}

/// Scans a log object of current nodes: the members `at`, `ns`, `data`, `sev`, `thread`, `host`, without white space or
/// escapes outside of `data`. None if it is another object, or not an object.
#[inline(always)]
fn usual(scanner: Scanner<'_>, start: usize, members: &mut Members) -> Option<[Span; 5]> {
    let Scanner { text, end } = scanner;
    if text.word(start) & (u64::MAX >> 8) != const { word_of(b"{\"at\":\"") } {
        return None;
    }
    let at_end = text.next_special(start + 7);
    if text.word(at_end) != const { word_of(b"\",\"ns\":\"") } {
        return None;
    }
    let ns_end = text.next_special(at_end + 8);
    if text.word(ns_end) != const { word_of(b"\",\"data\"") }
        || text.word(ns_end + 8) as u16 != const { word_of(b":{") } as u16
    {
        return None;
    }
    let data = ns_end + 9;
    let data_end = scanner.members(data, 1, members, key::OF_DATA).ok()?;
    if text.word(data_end) != const { word_of(b",\"sev\":\"") } {
        return None;
    }
    let sev_end = text.next_special(data_end + 8);
    if text.word(sev_end) != const { word_of(b"\",\"threa") }
        || text.word(sev_end + 8) as u32 != const { word_of(b"d\":\"") } as u32
    {
        return None;
    }
    let thread_end = text.next_special(sev_end + 12);
    if text.word(thread_end) != const { word_of(b"\",\"host\"") }
        || text.word(thread_end + 8) as u16 != const { word_of(b":\"") } as u16
    {
        return None;
    }
    let host_end = text.next_special(thread_end + 10);
    if text.word(host_end) as u16 != const { word_of(b"\"}") } as u16 || host_end + 2 != end {
        return None;
    }
    Some([
        Span::new(start + 6, at_end + 1),
        Span::new(at_end + 7, ns_end + 1),
        Span::new(data, data_end),
        Span::new(sev_end + 11, thread_end + 1),
        Span::new(thread_end + 9, host_end + 1),
    ])
}
