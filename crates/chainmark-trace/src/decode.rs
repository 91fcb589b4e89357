//! One line of a log to its class: an event, or why it is none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::books::{self, HostBooks, MAX_ADDRESSES, MAX_NAMES};
use crate::event::{Event, Fact, Hash, Peer, Resources};
use crate::json::{self, Fault, Key, Members, Scanner, Span, integer, plain_string, string, unescape};
use crate::key;
use crate::message::{Message, Note, Route, Routed, Routes};
use crate::text::{Text, TextBuffer};
use crate::time::{self, Clock};
use crate::wrapper::{self, Wrapper};

/// Longer lines are not read.
pub const MAX_LINE: usize = 16 << 20;

/// Why a line is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Json(Fault),
    Utf8,
    TooLong,
    Wrapper(&'static str),
    /// A member that every log object has is missing or of another type.
    Envelope {
        key: &'static str,
        wanted: &'static str,
    },
    /// The same of a member of `data`.
    Body {
        key: &'static str,
        wanted: &'static str,
    },
}

impl Problem {
    /// Whether the line is no JSON, or no text at all.
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Utf8)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(fault) => fault.fmt(formatter),
            Self::Utf8 => formatter.write_str("not valid UTF-8"),
            Self::TooLong => write!(formatter, "longer than {} MiB", MAX_LINE >> 20),
            Self::Wrapper(reason) => formatter.write_str(reason),
            Self::Envelope { key, wanted } => write!(formatter, "`{key}` is missing or not {wanted}"),
            Self::Body { key, wanted } => write!(formatter, "`data.{key}` is missing or not {wanted}"),
        }
    }
}

/// The class of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    Event(Event<'a>),
    Ignored,
    /// An announcement that is none.
    Skipped,
    NotObject,
    Malformed(Problem),
    /// A piece of a line; the class is that of the whole, with its last piece.
    Piece,
}

/// The members of a log object.
#[derive(Clone, Copy, Default)]
struct Envelope {
    at: Span,
    ns: Span,
    data: Span,
    host: Span,
    thread: Span,
    env: Span,
    /// Whether its strings have no escapes.
    plain: bool,
}

/// The members of what a log object is wrapped in.
#[derive(Clone, Copy, Default)]
struct Wrapping {
    journald: Span,
    docker: Span,
    devnet: Span,
    line_break: Span,
    stream: Span,
}

enum Opened {
    NotObject,
    Trace,
    Wrapped(Wrapper),
    Bad(Problem),
}

/// Decodes lines and counts them.
pub struct Decoder {
    core: Core,
    /// What was inside wrappers, and inside wrappers in these.
    payloads: [TextBuffer; 2],
    /// Pieces of lines that are not complete: of the standard output and of the standard error.
    pending: [TextBuffer; 2],
    wrappers: [u64; Wrapper::ALL.len()],
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            core: Core::default(),
            payloads: [TextBuffer::new(0), TextBuffer::new(0)],
            pending: [TextBuffer::new(0), TextBuffer::new(0)],
            wrappers: [0; Wrapper::ALL.len()],
        }
    }
}

impl Decoder {
    /// The line from `start` to before `end` of `text`, without its newline.
    #[inline]
    pub fn line(&mut self, text: &Text<'_>, start: usize, end: usize) -> Line<'_> {
        match self.core.open(text, start, end) {
            Opened::Trace => {
                self.wrappers[Wrapper::None as usize] += 1;
                self.core.trace(text, start, end)
            }
            Opened::Wrapped(wrapper) => self.wrapped(text, start, end, wrapper),
            Opened::NotObject => self.core.not_object(),
            Opened::Bad(problem) => self.core.bad_envelope(problem, text, start, end),
        }
    }

    /// A line that was too long to be kept; `text` is how it begins.
    pub fn too_long(&mut self, text: &Text<'_>) -> Line<'_> {
        if text.bytes[0] == b'{' {
            self.core.bad_envelope(Problem::TooLong, text, 0, text.len)
        } else {
            self.core.not_object()
        }
    }

    fn wrapped(&mut self, text: &Text<'_>, start: usize, end: usize, wrapper: Wrapper) -> Line<'_> {
        self.wrappers[wrapper as usize] += 1;
        let Self { core, payloads: [outer, inner], pending, .. } = self;
        let (payload, line_break) = core.payload(wrapper);
        let stream = usize::from(core.wrapping.stream.of(text) == b"\"stderr\"");
        let pending = &mut pending[stream];
        let goes_on = match wrapper::unwrap(Scanner { text, end }, wrapper, payload, line_break, outer) {
            Ok(goes_on) => goes_on,
            Err(reason) => return core.bad_envelope(Problem::Wrapper(reason), text, start, end),
        };
        if goes_on && pending.len() + outer.len() <= MAX_LINE {
            pending.append(outer.as_bytes());
            core.count_piece();
            return Line::Piece;
        }
        if !pending.is_empty() {
            pending.append(outer.as_bytes());
            std::mem::swap(pending, outer);
            pending.clear();
        }
        core.payload_line(outer, inner)
    }

    /// The class of a line whose last piece never came; to be called until there is none.
    pub fn end(&mut self) -> Option<Line<'_>> {
        let Self { core, payloads: [outer, inner], pending, .. } = self;
        let pending = pending.iter_mut().find(|pending| !pending.is_empty())?;
        std::mem::swap(pending, outer);
        pending.clear();
        core.recall_piece();
        Some(core.payload_line(outer, inner))
    }

    /// What most lines since the last question were wrapped in.
    pub fn take_wrapper(&mut self) -> Wrapper {
        let counts = std::mem::take(&mut self.wrappers);
        let most = Wrapper::ALL.into_iter().rev().max_by_key(|wrapper| counts[*wrapper as usize]);
        most.unwrap_or(Wrapper::None)
    }

    /// Time stamp of the first readable line so far.
    pub fn first_ns(&self) -> Option<i64> {
        self.core.tally.first_ns
    }

    /// The counts so far, without those of files.
    pub fn books(&self) -> HostBooks {
        let mut books = self.core.tally.clone();
        for message in Message::ALL {
            let count = self.core.decoded[*message as usize];
            if count > 0 {
                *books.decoded_by_message.entry(message.name().to_owned()).or_default() += count;
            }
        }
        books.decoded = self.core.decoded.iter().sum();
        books.malformed = books.malformed_envelope + books.malformed_body;
        for (name, count) in self.core.routes.ignored() {
            *books.ignored_by_message.entry(name).or_default() += count;
        }
        books.ignored = books.ignored_by_message.values().sum();
        let (name, count) = &self.core.last_name;
        if let Some(counted) = books.names.get_mut(name) {
            *counted += count;
        }
        books.seconds_before_order = self.core.behind_ns as f64 / 1e9;
        books
    }
}

struct Core {
    clock: Clock,
    routes: Routes,
    envelope: Envelope,
    wrapping: Wrapping,
    members: Members,
    /// A namespace that is told in segments, joined.
    ns: Vec<u8>,
    peers: Peers,
    tally: HostBooks,
    decoded: [u64; Message::ALL.len()],
    /// The last line's host, and how often it was told since it was last counted.
    last_name: (String, u64),
    latest_ns: i64,
    behind_ns: i64,
}

impl Default for Core {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            routes: Routes::default(),
            envelope: Envelope::default(),
            wrapping: Wrapping::default(),
            members: Members::default(),
            ns: Vec::new(),
            peers: Peers::default(),
            tally: HostBooks::default(),
            decoded: [0; Message::ALL.len()],
            last_name: (String::new(), 0),
            latest_ns: i64::MIN,
            behind_ns: 0,
        }
    }
}

impl Core {
    /// Validates the line and notes where its members are.
    #[inline(always)]
    fn open(&mut self, text: &Text<'_>, start: usize, end: usize) -> Opened {
        if start == end || text.bytes[start] != b'{' {
            return Opened::NotObject;
        }
        if let Some([at, ns, data, thread, host]) =
            (Scanner { text, end }).usual(start, &mut self.members, key::OF_DATA)
        {
            self.envelope = Envelope { at, ns, data, host, thread, env: Span::default(), plain: true };
            return self.checked(Opened::Trace, text, start, end);
        }
        self.open_any(text, start, end)
    }

    /// `opened`, if the line is valid UTF-8.
    #[inline(always)]
    fn checked(&self, opened: Opened, text: &Text<'_>, start: usize, end: usize) -> Opened {
        if !text.ascii && std::str::from_utf8(&text.bytes[start..end]).is_err() {
            return Opened::Bad(Problem::Utf8);
        }
        opened
    }

    #[inline(never)]
    fn open_any(&mut self, text: &Text<'_>, start: usize, end: usize) -> Opened {
        let scanned = self.scan(text, start, end);
        if !text.ascii && std::str::from_utf8(&text.bytes[start..end]).is_err() {
            return Opened::Bad(Problem::Utf8);
        }
        if let Err(fault) = scanned {
            return Opened::Bad(Problem::Json(fault));
        }
        let (envelope, wrapping) = (&self.envelope, &self.wrapping);
        if envelope.at.present() || envelope.ns.present() || envelope.data.present() {
            return Opened::Trace;
        }
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
                b"message" => Some(&mut wrapping.devnet),
                b"_LINE_BREAK" => Some(&mut wrapping.line_break),
                b"stream" => Some(&mut wrapping.stream),
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

    fn payload(&self, wrapper: Wrapper) -> (Span, Span) {
        let wrapping = &self.wrapping;
        let payload = match wrapper {
            Wrapper::Journald => wrapping.journald,
            Wrapper::Docker => wrapping.docker,
            Wrapper::Devnet => wrapping.devnet,
            Wrapper::None => Span::default(),
        };
        (payload, wrapping.line_break)
    }

    /// The class of the line in `outer`, which may be wrapped once more.
    fn payload_line(&mut self, outer: &mut TextBuffer, inner: &mut TextBuffer) -> Line<'_> {
        outer.index();
        let (text, end) = (&outer.text(), without_newline(outer));
        match self.open(text, 0, end) {
            Opened::Trace => self.trace(text, 0, end),
            Opened::NotObject => self.not_object(),
            Opened::Bad(problem) => self.bad_envelope(problem, text, 0, end),
            Opened::Wrapped(wrapper) => {
                let (payload, line_break) = self.payload(wrapper);
                if let Err(reason) = wrapper::unwrap(Scanner { text, end }, wrapper, payload, line_break, inner) {
                    return self.bad_envelope(Problem::Wrapper(reason), text, 0, end);
                }
                inner.index();
                let (text, end) = (&inner.text(), without_newline(inner));
                match self.open(text, 0, end) {
                    Opened::Trace => self.trace(text, 0, end),
                    Opened::NotObject => self.not_object(),
                    Opened::Bad(problem) => self.bad_envelope(problem, text, 0, end),
                    Opened::Wrapped(_) => self.bad_envelope(Problem::Wrapper("wrapped more than twice"), text, 0, end),
                }
            }
        }
    }

    fn count_piece(&mut self) {
        self.tally.raw_lines += 1;
        self.tally.not_objects += 1;
        self.tally.pieces += 1;
    }

    /// The last piece of a line stands for the whole.
    fn recall_piece(&mut self) {
        self.tally.raw_lines -= 1;
        self.tally.not_objects -= 1;
        self.tally.pieces -= 1;
    }

    fn not_object(&mut self) -> Line<'_> {
        self.tally.raw_lines += 1;
        self.tally.not_objects += 1;
        Line::NotObject
    }

    #[cold]
    fn bad_envelope(&mut self, problem: Problem, text: &Text<'_>, start: usize, end: usize) -> Line<'_> {
        self.tally.raw_lines += 1;
        self.tally.malformed_envelope += 1;
        if let Some(at_ns) = time::textual(&mut self.clock, text, start, end) {
            self.tally.last_ns = Some(at_ns);
        }
        Line::Malformed(problem)
    }

    /// A valid object that is not wrapped.
    #[inline(always)]
    fn trace(&mut self, text: &Text<'_>, start: usize, end: usize) -> Line<'_> {
        let (at_ns, routed) = match self.envelope(text, end) {
            Ok(found) => found,
            Err(problem) => return self.bad_envelope(problem, text, start, end),
        };
        self.tally.raw_lines += 1;
        self.tally.objects += 1;
        self.tally.first_ns.get_or_insert(at_ns);
        self.tally.last_ns = Some(at_ns);
        if at_ns >= self.latest_ns {
            self.latest_ns = at_ns;
        } else {
            self.behind_ns = self.behind_ns.max(self.latest_ns.saturating_sub(at_ns));
        }
        let fields = Fields { scanner: Scanner { text, end }, members: &self.members };
        let Route::Decode(message) = routed.route else {
            if let Route::Note(note) = routed.route {
                self.tally.note(note, fields);
            }
            self.routes.count_ignored(routed);
            return Line::Ignored;
        };
        let line = line_of(message, at_ns, fields, &mut self.peers).unwrap_or_else(Line::Malformed);
        match &line {
            Line::Event(event) => {
                self.decoded[message as usize] += 1;
                if let Fact::Fetched { peer: Peer { local: Some(local), .. }, .. } = &event.fact {
                    books::count_name(&mut self.tally.local_addresses, local, MAX_ADDRESSES);
                }
            }
            Line::Skipped => self.tally.skipped += 1,
            Line::Malformed(_) => self.tally.malformed_body += 1,
            Line::Ignored | Line::NotObject | Line::Piece => self.routes.count_ignored(routed),
        }
        line
    }

    /// Reads what every log object has: its time, and what is to be done with it.
    #[inline(always)]
    fn envelope(&mut self, text: &Text<'_>, end: usize) -> Result<(i64, Routed), Problem> {
        let wanted = |key, wanted| Problem::Envelope { key, wanted };
        let Envelope { at, ns, data, host, thread, env, plain } = self.envelope;
        let string =
            |value| if plain { plain_string(text, value).map(Cow::Borrowed) } else { json::string(text, value) };
        let at_ns = self.time(text, at, plain).ok_or(wanted("at", "a time"))?;
        let ns = match ns.lead(text) {
            b'[' => {
                join(Scanner { text, end }, ns, &mut self.ns).ok_or(wanted("ns", "a name"))?;
                Cow::Borrowed(&self.ns[..])
            }
            _ => string(ns).ok_or(wanted("ns", "a name"))?,
        };
        if data.lead(text) != b'{' {
            return Err(wanted("data", "an object"));
        }
        let host = string(host).ok_or(wanted("host", "a string"))?;
        if thread.lead(text) != b'"' {
            return Err(wanted("thread", "a string"));
        }
        let mut kind = self.members.string(text, self.members.get(text, key::KIND)).unwrap_or_default();
        if kind.is_empty() {
            let credentials = self.members.get(text, key::CREDENTIALS);
            let value = self.members.get(text, key::VAL);
            if credentials.lead(text) == b'"' && value.lead(text) == b'{' {
                // The members of `data.val` stand for those of `data`; it was scanned before and has no fault.
                let _ = Scanner { text, end }.members(value.start(), 2, &mut self.members, key::OF_DATA);
                kind = self.members.string(text, self.members.get(text, key::KIND)).unwrap_or_default();
            }
        }
        let routed = self.routes.find(&ns, &kind);
        if *host == *self.last_name.0.as_bytes() && self.last_name.1 > 0 {
            self.last_name.1 += 1;
        } else {
            count_host(&mut self.tally.names, &mut self.last_name, &host);
        }
        if env.present() && self.tally.node_version.is_none() {
            self.tally.note_environment(string(env));
        }
        Ok((at_ns, routed))
    }

    #[inline(always)]
    fn time(&mut self, text: &Text<'_>, at: Span, plain: bool) -> Option<i64> {
        if plain {
            return self.clock.read(text, at.start() + 1, at.end() - 1);
        }
        match string(text, at)? {
            Cow::Borrowed(_) => self.clock.read(text, at.start() + 1, at.end() - 1),
            Cow::Owned(stamp) => {
                let mut buffer = TextBuffer::new(stamp.len());
                buffer.append(&stamp);
                buffer.index();
                self.clock.read(&buffer.text(), 0, stamp.len())
            }
        }
    }
}

fn without_newline(buffer: &TextBuffer) -> usize {
    buffer.len() - usize::from(buffer.as_bytes().ends_with(b"\n"))
}

/// Joins the segments of a namespace; none if there is none, or one is no string.
fn join(scanner: Scanner<'_>, list: Span, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let mut any = false;
    for item in scanner.items(list) {
        if any {
            out.push(b'.');
        }
        out.extend_from_slice(&string(scanner.text, item)?);
        any = true;
    }
    any.then_some(())
}

/// Counts the host that was told until now, and begins to count another one.
#[cold]
fn count_host(names: &mut BTreeMap<String, u64>, last: &mut (String, u64), host: &[u8]) {
    if let Some(count) = names.get_mut(&last.0) {
        *count += last.1;
    }
    let host = String::from_utf8_lossy(host).into_owned();
    if names.len() < MAX_NAMES {
        names.entry(host.clone()).or_insert(0);
    }
    *last = (host, 1);
}

impl HostBooks {
    #[cold]
    fn note(&mut self, note: Note, fields: Fields<'_>) {
        let told = |key: Key| {
            let value = fields.members.get(fields.scanner.text, key);
            let told = string(fields.scanner.text, value).or_else(|| {
                let number = value.lead(fields.scanner.text).is_ascii_digit();
                number.then(|| Cow::Borrowed(value.of(fields.scanner.text)))
            })?;
            (!told.is_empty()).then(|| String::from_utf8_lossy(&told).into_owned())
        };
        match note {
            Note::Version => {
                self.node_version = told(key::APPLICATION_VERSION).or(self.node_version.take());
                self.node_revision = told(key::GIT_REVISION).or(self.node_revision.take());
                self.compiler_version = told(key::COMPILER_VERSION).or(self.compiler_version.take());
            }
            Note::Startup => self.network_magic = told(key::NETWORK_MAGIC).or(self.network_magic.take()),
        }
    }

    /// Old nodes tell version and revision in every line: "8.1.1:ea2c0".
    #[cold]
    fn note_environment(&mut self, told: Option<Cow<'_, [u8]>>) {
        let Some(told) = told else { return };
        let told = String::from_utf8_lossy(&told);
        if let Some((version, revision)) = told.split_once(':').filter(|(version, _)| !version.is_empty()) {
            self.node_version = Some(version.to_owned());
            self.node_revision = Some(revision.to_owned());
        }
    }
}

/// The members of `data`.
#[derive(Clone, Copy)]
struct Fields<'a> {
    scanner: Scanner<'a>,
    members: &'a Members,
}

type Body<T> = Result<T, Problem>;

const UNSIGNED: &str = "an unsigned integer";

impl<'a> Fields<'a> {
    #[inline(always)]
    fn text(self) -> &'a Text<'a> {
        self.scanner.text
    }

    /// The value, absent if it is null.
    #[inline(always)]
    fn get(self, key: Key) -> Span {
        let value = self.members.get(self.text(), key);
        if value.lead(self.text()) == b'n' { Span::default() } else { value }
    }

    #[inline(always)]
    fn integer(self, value: Span) -> Option<i128> {
        if matches!(value.lead(self.text()), b'-' | b'0'..=b'9') { integer(self.text(), value) } else { None }
    }

    #[inline(always)]
    fn unsigned_value(self, key: &'static str, value: Span) -> Body<u64> {
        let value = self.integer(value).and_then(|value| u64::try_from(value).ok());
        value.ok_or(Problem::Body { key, wanted: UNSIGNED })
    }

    #[inline(always)]
    fn unsigned(self, key: Key) -> Body<u64> {
        self.unsigned_value(key.name, self.get(key))
    }

    fn unsigned_or(self, key: Key, default: u64) -> Body<u64> {
        let value = self.get(key);
        if value.present() { self.unsigned_value(key.name, value) } else { Ok(default) }
    }

    fn signed(self, key: Key) -> Body<i64> {
        let value = self.integer(self.get(key)).and_then(|value| i64::try_from(value).ok());
        value.ok_or(Problem::Body { key: key.name, wanted: "an integer" })
    }

    fn double_value(self, key: &'static str, value: Span) -> Body<f64> {
        let number = matches!(value.lead(self.text()), b'-' | b'0'..=b'9');
        let parsed = std::str::from_utf8(value.of(self.text())).ok().filter(|_| number).and_then(|it| it.parse().ok());
        parsed.filter(|value: &f64| value.is_finite()).ok_or(Problem::Body { key, wanted: "a number" })
    }

    fn double(self, key: Key) -> Body<f64> {
        self.double_value(key.name, self.get(key))
    }

    fn double_or(self, key: Key, default: f64) -> Body<f64> {
        let value = self.get(key);
        if value.present() { self.double_value(key.name, value) } else { Ok(default) }
    }

    fn is_false(self, key: Key) -> Body<bool> {
        let value = self.get(key);
        match value.lead(self.text()) {
            0 | b't' => Ok(false),
            b'f' => Ok(true),
            _ => Err(Problem::Body { key: key.name, wanted: "true or false" }),
        }
    }

    /// A hash, which is all of the string.
    fn hash(self, key: Key) -> Body<Hash> {
        let told = self.members.string(self.text(), self.get(key));
        told.and_then(|told| hash(&told)).ok_or(Problem::Body { key: key.name, wanted: "a hash" })
    }

    /// A hash, which is how the string begins.
    fn leading_hash(self, key: Key) -> Body<Hash> {
        let told = self.members.string(self.text(), self.get(key));
        told.and_then(|told| hash(told.get(..64)?)).ok_or(Problem::Body { key: key.name, wanted: "a hash" })
    }
}

/// The hash that 64 hexadecimal digits say.
fn hash(digits: &[u8]) -> Option<Hash> {
    const BAD: u8 = 0xff;
    const VALUES: [u8; 256] = {
        let mut values = [BAD; 256];
        let mut digit = 0;
        while digit < 16 {
            values[b"0123456789abcdef"[digit] as usize] = digit as u8;
            values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
            digit += 1;
        }
        values
    };
    let digits: &[u8; 64] = digits.try_into().ok()?;
    let (mut hash, mut all) = ([0; 32], 0);
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (VALUES[pair[0] as usize], VALUES[pair[1] as usize]);
        all |= high | low;
        *byte = (high << 4) | (low & 0x0f);
    }
    (all < 16).then_some(Hash(hash))
}

/// The last connection's ends, in one text.
#[derive(Default)]
struct Peers {
    text: String,
    local: Option<Range<usize>>,
    remote: Option<Range<usize>>,
}

impl Peers {
    /// Reads `peer`: an object with `connectionId` "local remote", or with the two ends as objects.
    fn read(&mut self, fields: Fields<'_>) -> Peer<'_> {
        let Fields { scanner, .. } = fields;
        let peer = fields.get(key::PEER);
        self.text.clear();
        (self.local, self.remote) = (None, None);
        let connection = match peer.lead(scanner.text) {
            b'{' => scanner.member(peer, key::CONNECTION_ID),
            _ => peer,
        };
        if let Some(connection) = string(scanner.text, connection).and_then(|told| String::from_utf8(told.into()).ok())
        {
            if let Some((local, remote)) = connection.split_once(' ').filter(|(_, remote)| !remote.contains(' ')) {
                self.local = Some(self.put(local));
                self.remote = Some(self.put(remote));
            }
        } else if peer.lead(scanner.text) == b'{' {
            self.local = self.end(scanner, scanner.member(peer, key::LOCAL));
            self.remote = self.end(scanner, scanner.member(peer, key::REMOTE));
        }
        let told = |range: &Option<Range<usize>>| range.clone().map(|range| &self.text[range]);
        Peer { local: told(&self.local), remote: told(&self.remote) }
    }

    fn put(&mut self, address: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(address);
        start..self.text.len()
    }

    fn end(&mut self, scanner: Scanner<'_>, end: Span) -> Option<Range<usize>> {
        let told =
            |key| string(scanner.text, scanner.member(end, key)).and_then(|it| String::from_utf8(it.into()).ok());
        let (address, port) = (told(key::ADDR)?, told(key::PORT)?);
        Some(self.put(&format!("{address}:{port}")))
    }
}

/// The class of a line of `message` with what it tells.
#[inline(always)]
fn line_of<'a>(message: Message, at_ns: i64, fields: Fields<'_>, peers: &'a mut Peers) -> Body<Line<'a>> {
    let slot = || fields.unsigned(key::SLOT);
    let fact = match message {
        Message::LedgerState => Fact::LedgerState { slot: slot()? },
        Message::LedgerView => Fact::LedgerView { slot: slot()? },
        Message::Leads => Fact::Leadership { slot: slot()?, leads: true },
        Message::LeadsNot => Fact::Leadership { slot: slot()?, leads: false },
        Message::Ticked => Fact::Ticked { slot: slot()? },
        Message::MempoolSnapshot => Fact::MempoolSnapshot { slot: slot()? },
        Message::BlockContext => Fact::BlockContext {
            slot: fields.unsigned(key::CURRENT_SLOT)?,
            block_no: fields.signed(key::TIP_BLOCK_NO)?.saturating_sub(1),
        },
        Message::LoopStart => Fact::LoopStart {
            slot: slot()?,
            utxo_entries: fields.unsigned_or(key::UTXO_SIZE, 0)?,
            density: fields.double_or(key::CHAIN_DENSITY, 0.0)?,
        },
        Message::MempoolAdded | Message::MempoolRemoved => {
            let size = fields.scanner.member(fields.get(key::MEMPOOL_SIZE), key::NUM_TXS);
            Fact::MempoolSize { transactions: fields.unsigned_value("mempoolSize.numTxs", size)? }
        }
        Message::Collected => Fact::TransactionsCollected { count: fields.unsigned(key::COUNT)? },
        Message::Processed => Fact::TransactionsProcessed {
            accepted: fields.unsigned(key::ACCEPTED)?,
            rejected: fields.signed(key::REJECTED)?,
        },
        Message::MempoolRejected => Fact::TransactionRejected,
        _ => return rare_line_of(message, at_ns, fields, peers),
    };
    Ok(Line::Event(Event { at_ns, fact }))
}

/// What comes once a second, once a block, or less often.
fn rare_line_of<'a>(message: Message, at_ns: i64, fields: Fields<'_>, peers: &'a mut Peers) -> Body<Line<'a>> {
    let fact = match message {
        Message::Resources => Fact::Resources(resources(fields)?),
        Message::LedgerMetrics => Fact::LedgerMetrics {
            slot: fields.unsigned(key::SLOT)?,
            utxo_entries: fields.unsigned(key::UTXO_SIZE)?,
            density: fields.double(key::CHAIN_DENSITY)?,
        },
        Message::Forged => Fact::Forged {
            slot: fields.unsigned(key::SLOT)?,
            block_no: fields.unsigned(key::BLOCK_NO)?,
            block: fields.hash(key::BLOCK)?,
            parent: parent(fields)?,
        },
        Message::Noticed => Fact::Noticed {
            slot: fields.unsigned(key::SLOT)?,
            block_no: block_number(fields)?,
            block: fields.hash(key::BLOCK)?,
            peer: peers.read(fields),
        },
        Message::Requested => Fact::Requested { head: fields.hash(key::HEAD)?, length: fields.unsigned(key::LENGTH)? },
        Message::Fetched => Fact::Fetched { block: fields.hash(key::BLOCK)?, peer: peers.read(fields) },
        Message::AnnouncedLegacy => Fact::Announced { block: fields.hash(key::BLOCK)? },
        Message::Announced => match announced(fields)? {
            Some(block) => Fact::Announced { block },
            None => return Ok(Line::Skipped),
        },
        Message::Sent => Fact::Sent { block: fields.hash(key::BLOCK)? },
        Message::Added => Fact::Added {
            block: fields.leading_hash(key::NEWTIP)?,
            delta: fields.unsigned_or(key::CHAIN_LENGTH_DELTA, 1)?,
        },
        Message::Switched => Fact::Switched {
            block: fields.leading_hash(key::NEWTIP)?,
            delta: fields.unsigned_or(key::CHAIN_LENGTH_DELTA, 1)?,
        },
        Message::Adopted => {
            Fact::SelfAdopted { block: fields.hash(key::BLOCK_HASH)?, size_bytes: fields.unsigned(key::BLOCK_SIZE)? }
        }
        Message::LedgerSnapshot => Fact::LedgerSnapshot { renamed: false },
        Message::LedgerSnapshotRenamed => {
            // The line comes when the snapshot begins and again when it is done, which is the one that counts.
            let edge = fields.scanner.member(fields.get(key::ENCLOSED_TIME), key::TAG);
            if string(fields.text(), edge).as_deref() == Some(b"RisingEdge") {
                return Ok(Line::Ignored);
            }
            Fact::LedgerSnapshot { renamed: true }
        }
        Message::Acknowledged => {
            strings(fields, key::TX_IDS)?;
            Fact::TransactionsAcknowledged
        }
        Message::GeneratorSummary => {
            generator_summary(fields)?;
            Fact::GeneratorSummary
        }
        _ => unreachable!("the frequent messages are decoded before"),
    };
    Ok(Line::Event(Event { at_ns, fact }))
}

fn resources(fields: Fields<'_>) -> Body<Resources> {
    Ok(Resources {
        cpu_centiseconds: fields.unsigned(key::CENTI_CPU)?,
        gc_centiseconds: fields.unsigned(key::CENTI_GC)?,
        mutator_centiseconds: fields.unsigned(key::CENTI_MUT)?,
        major_collections: fields.unsigned(key::GCS_MAJOR)?,
        minor_collections: fields.unsigned(key::GCS_MINOR)?,
        allocated_bytes: fields.unsigned(key::ALLOC)?,
        live_bytes: fields.unsigned(key::LIVE)?,
        heap_bytes: fields.unsigned_or(key::HEAP, 0)?,
        rss_bytes: fields.unsigned(key::RSS)?,
        block_io_centiseconds: fields.unsigned(key::CENTI_BLK_IO)?,
        net_read_bytes: fields.unsigned_or(key::NET_RD, 0)?,
        net_written_bytes: fields.unsigned_or(key::NET_WR, 0)?,
        file_read_bytes: fields.unsigned_or(key::FS_RD, 0)?,
        file_written_bytes: fields.unsigned_or(key::FS_WR, 0)?,
        threads: fields.unsigned(key::THREADS)?,
    })
}

/// The block before; none before the first one.
fn parent(fields: Fields<'_>) -> Body<Option<Hash>> {
    let told = string(fields.text(), fields.get(key::BLOCK_PREV));
    if told.as_deref().is_some_and(|told| told.len() != 64 && told.to_ascii_lowercase().starts_with(b"genesis")) {
        return Ok(None);
    }
    fields.hash(key::BLOCK_PREV).map(Some)
}

/// A number, or in the oldest nodes an object around it.
fn block_number(fields: Fields<'_>) -> Body<u64> {
    let told = fields.get(key::BLOCK_NO);
    let number = match told.lead(fields.text()) {
        b'{' => fields.scanner.member(told, key::UN_BLOCK_NO),
        _ => told,
    };
    fields.unsigned_value("blockNo", number)
}

/// The announced block; none if it is no announcement.
fn announced(fields: Fields<'_>) -> Body<Option<Hash>> {
    let skipped = fields.is_false(key::RISING_EDGE)?
        || fields.is_false(key::BLOCKING_READ)?
        || fields.get(key::ROLL_BACK_TO).present();
    if skipped {
        return Ok(None);
    }
    let key = if fields.get(key::ADD_BLOCK).present() { key::ADD_BLOCK } else { key::BLOCK };
    fields.leading_hash(key).map(Some)
}

fn strings(fields: Fields<'_>, key: Key) -> Body<()> {
    let list = fields.get(key);
    let all =
        list.lead(fields.text()) == b'[' && fields.scanner.items(list).all(|item| item.lead(fields.text()) == b'"');
    if all { Ok(()) } else { Err(Problem::Body { key: key.name, wanted: "a list of strings" }) }
}

fn generator_summary(fields: Fields<'_>) -> Body<()> {
    let summary = fields.get(key::SUMMARY);
    let member = |key| fields.scanner.member(summary, key);
    fields.unsigned_value("summary.ssTxSent", member(key::SS_TX_SENT))?;
    fields.unsigned_value("summary.ssFailures", member(key::SS_FAILURES))?;
    fields.double_value("summary.ssElapsed", member(key::SS_ELAPSED))?;
    if member(key::SS_THREADWISE_TPS).lead(fields.text()) == b'[' {
        Ok(())
    } else {
        Err(Problem::Body { key: "summary.ssThreadwiseTps", wanted: "a list" })
    }
}
