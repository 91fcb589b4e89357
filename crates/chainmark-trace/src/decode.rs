//! One line of a log to its class: an event, or why it is none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::books::{self, HostBooks, MAX_ADDRESSES, MAX_NAMES};
use crate::event::{Event, Fact, Hash, Peer, Resources};
use crate::json::{Fault, Members, Scanner, Span, integer, string, unescape};
use crate::message::{Message, Note, Route, Routed, Routes};
use crate::text::{Text, TextBuffer};
use crate::time::{self, Clock};
use crate::wrapper::{self, Wrapper};

/// Longer lines are not read.
pub const MAX_LINE: usize = 64 << 20;

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

/// Members of `data` that somebody asks for; of objects with very many members no others are kept.
const ASKED: &[&str] = &[
    "kind",
    "credentials",
    "val",
    "slot",
    "utxoSize",
    "chainDensity",
    "current slot",
    "tipBlockNo",
    "blockNo",
    "block",
    "blockPrev",
    "head",
    "length",
    "peer",
    "risingEdge",
    "blockingRead",
    "rollBackTo",
    "addBlock",
    "newtip",
    "chainLengthDelta",
    "blockHash",
    "blockSize",
    "txIds",
    "count",
    "accepted",
    "rejected",
    "mempoolSize",
    "summary",
    "enclosedTime",
    "CentiCpu",
    "CentiGC",
    "CentiMut",
    "GcsMajor",
    "GcsMinor",
    "Alloc",
    "Live",
    "Heap",
    "RSS",
    "CentiBlkIO",
    "NetRd",
    "NetWr",
    "FsRd",
    "FsWr",
    "Threads",
    "applicationVersion",
    "gitRevision",
    "compilerVersion",
    "networkMagic",
];

/// The members of a log object, or of what it is wrapped in.
#[derive(Clone, Copy, Default)]
struct Envelope {
    at: Span,
    ns: Span,
    data: Span,
    host: Span,
    thread: Span,
    env: Span,
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
    pub fn line(&mut self, text: Text<'_>, start: usize, end: usize) -> Line<'_> {
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
    pub fn too_long(&mut self, text: Text<'_>) -> Line<'_> {
        if text.bytes[0] == b'{' {
            self.core.bad_envelope(Problem::TooLong, text, 0, text.len)
        } else {
            self.core.not_object()
        }
    }

    fn wrapped(&mut self, text: Text<'_>, start: usize, end: usize, wrapper: Wrapper) -> Line<'_> {
        self.wrappers[wrapper as usize] += 1;
        let Self { core, payloads: [outer, inner], pending, .. } = self;
        let (payload, line_break) = core.payload(wrapper);
        let stream = usize::from(core.envelope.stream.of(text) == b"\"stderr\"");
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
        if pending.len() > 0 {
            pending.append(outer.as_bytes());
            std::mem::swap(pending, outer);
            pending.clear();
        }
        core.payload_line(outer, inner)
    }

    /// The class of a line whose last piece never came; to be called until there is none.
    pub fn end(&mut self) -> Option<Line<'_>> {
        let Self { core, payloads: [outer, inner], pending, .. } = self;
        let pending = pending.iter_mut().find(|pending| pending.len() > 0)?;
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
    fn open(&mut self, text: Text<'_>, start: usize, end: usize) -> Opened {
        if start == end || text.bytes[start] != b'{' {
            return Opened::NotObject;
        }
        let scanned = self.scan(text, start, end);
        if !text.ascii && std::str::from_utf8(&text.bytes[start..end]).is_err() {
            return Opened::Bad(Problem::Utf8);
        }
        if let Err(fault) = scanned {
            return Opened::Bad(Problem::Json(fault));
        }
        let envelope = &self.envelope;
        if envelope.at.present() || envelope.ns.present() || envelope.data.present() {
            return Opened::Trace;
        }
        if envelope.journald.present() {
            Opened::Wrapped(Wrapper::Journald)
        } else if envelope.docker.present() {
            Opened::Wrapped(Wrapper::Docker)
        } else if envelope.devnet.present() {
            Opened::Wrapped(Wrapper::Devnet)
        } else {
            Opened::Trace
        }
    }

    #[inline(always)]
    fn scan(&mut self, text: Text<'_>, start: usize, end: usize) -> Result<(), Fault> {
        self.members.clear();
        let mut envelope = Envelope::default();
        let members = &mut self.members;
        let result = Scanner { text, end }.whole(start, |scanner, member, at| {
            let key = if member.escaped { unescape(member.key.of(text)) } else { Cow::Borrowed(member.key.of(text)) };
            let place = match key.as_ref() {
                b"data" => {
                    members.clear();
                    let end = if text.bytes[at] == b'{' {
                        scanner.object(at, |scanner, member, at| {
                            let member = scanner.member_value(member, at, 2)?;
                            members.push(text, member, ASKED);
                            Ok(member.value.end as usize)
                        })?
                    } else {
                        scanner.value(at, 1)?
                    };
                    envelope.data = Span { start: at as u32, end: end as u32 };
                    return Ok(end);
                }
                b"at" => Some(&mut envelope.at),
                b"ns" => Some(&mut envelope.ns),
                b"host" => Some(&mut envelope.host),
                b"thread" => Some(&mut envelope.thread),
                b"env" => Some(&mut envelope.env),
                b"MESSAGE" => Some(&mut envelope.journald),
                b"log" => Some(&mut envelope.docker),
                b"message" => Some(&mut envelope.devnet),
                b"_LINE_BREAK" => Some(&mut envelope.line_break),
                b"stream" => Some(&mut envelope.stream),
                _ => None,
            };
            let end = scanner.value(at, 1)?;
            if let Some(place) = place {
                *place = Span { start: at as u32, end: end as u32 };
            }
            Ok(end)
        });
        self.envelope = envelope;
        result
    }

    fn payload(&self, wrapper: Wrapper) -> (Span, Span) {
        let envelope = &self.envelope;
        let payload = match wrapper {
            Wrapper::Journald => envelope.journald,
            Wrapper::Docker => envelope.docker,
            Wrapper::Devnet => envelope.devnet,
            Wrapper::None => Span::default(),
        };
        (payload, envelope.line_break)
    }

    /// The class of the line in `outer`, which may be wrapped once more.
    fn payload_line(&mut self, outer: &mut TextBuffer, inner: &mut TextBuffer) -> Line<'_> {
        outer.index();
        let (text, end) = (outer.text(), without_newline(outer));
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
                let (text, end) = (inner.text(), without_newline(inner));
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
    fn bad_envelope(&mut self, problem: Problem, text: Text<'_>, start: usize, end: usize) -> Line<'_> {
        self.tally.raw_lines += 1;
        self.tally.malformed_envelope += 1;
        if let Some(at_ns) = time::textual(&mut self.clock, text, start, end) {
            self.tally.last_ns = Some(at_ns);
        }
        Line::Malformed(problem)
    }

    /// A valid object that is not wrapped.
    #[inline(always)]
    fn trace(&mut self, text: Text<'_>, start: usize, end: usize) -> Line<'_> {
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
        match fact(message, fields, &mut self.peers) {
            Ok(Told::Fact(fact)) => {
                self.decoded[message as usize] += 1;
                if let Fact::Fetched { peer: Peer { local: Some(local), .. }, .. } = &fact {
                    count_address(&mut self.tally.local_addresses, local);
                }
                Line::Event(Event { at_ns, fact })
            }
            Ok(Told::NoAnnouncement) => {
                self.tally.skipped += 1;
                Line::Skipped
            }
            Ok(Told::Nothing) => {
                self.routes.count_ignored(routed);
                Line::Ignored
            }
            Err(problem) => {
                self.tally.malformed_body += 1;
                Line::Malformed(problem)
            }
        }
    }

    /// Reads what every log object has: its time, and what is to be done with it.
    #[inline(always)]
    fn envelope(&mut self, text: Text<'_>, end: usize) -> Result<(i64, Routed), Problem> {
        let wanted = |key, wanted| Problem::Envelope { key, wanted };
        let Envelope { at, ns, data, host, thread, env, .. } = self.envelope;
        let at_ns = self.time(text, at).ok_or(wanted("at", "a time"))?;
        let ns = match ns.lead(text) {
            b'[' => {
                join(Scanner { text, end }, ns, &mut self.ns).ok_or(wanted("ns", "a name"))?;
                Cow::Borrowed(&self.ns[..])
            }
            _ => string(text, ns).ok_or(wanted("ns", "a name"))?,
        };
        if data.lead(text) != b'{' {
            return Err(wanted("data", "an object"));
        }
        let host = string(text, host).ok_or(wanted("host", "a string"))?;
        if thread.lead(text) != b'"' {
            return Err(wanted("thread", "a string"));
        }
        let mut kind = string(text, self.members.get(text, "kind")).unwrap_or_default();
        if kind.is_empty() {
            let credentials = self.members.get(text, "credentials");
            let value = self.members.get(text, "val");
            if credentials.lead(text) == b'"' && value.lead(text) == b'{' {
                unwrap_value(Scanner { text, end }, value, &mut self.members);
                kind = string(text, self.members.get(text, "kind")).unwrap_or_default();
            }
        }
        let routed = self.routes.find(&ns, &kind);
        if *host == *self.last_name.0.as_bytes() && self.last_name.1 > 0 {
            self.last_name.1 += 1;
        } else {
            count_host(&mut self.tally.names, &mut self.last_name, &host);
        }
        if env.present() && self.tally.node_version.is_none() {
            self.tally.note_environment(string(text, env));
        }
        Ok((at_ns, routed))
    }

    #[inline(always)]
    fn time(&mut self, text: Text<'_>, at: Span) -> Option<i64> {
        match string(text, at)? {
            Cow::Borrowed(_) => self.clock.read(text, at.start as usize + 1, at.end as usize - 1),
            Cow::Owned(stamp) => {
                let mut buffer = TextBuffer::new(stamp.len());
                buffer.append(&stamp);
                buffer.index();
                self.clock.read(buffer.text(), 0, stamp.len())
            }
        }
    }
}

fn without_newline(buffer: &TextBuffer) -> usize {
    buffer.len() - usize::from(buffer.as_bytes().ends_with(b"\n"))
}

/// The members of `data.val` stand for those of `data`.
#[cold]
fn unwrap_value(scanner: Scanner<'_>, value: Span, members: &mut Members) {
    members.clear();
    // It was scanned before and has no fault.
    let _ = scanner.object(value.start as usize, |scanner, member, at| {
        let member = scanner.member_value(member, at, 3)?;
        members.push(scanner.text, member, ASKED);
        Ok(member.value.end as usize)
    });
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

fn count_address(addresses: &mut BTreeMap<String, u64>, address: &str) {
    books::count_name(addresses, address, MAX_ADDRESSES);
}

impl HostBooks {
    #[cold]
    fn note(&mut self, note: Note, fields: Fields<'_>) {
        let told = |key: &str| {
            let value = fields.members.get(fields.scanner.text, key);
            let told = string(fields.scanner.text, value).or_else(|| {
                let number = matches!(value.lead(fields.scanner.text), b'0'..=b'9');
                number.then(|| Cow::Borrowed(value.of(fields.scanner.text)))
            })?;
            (!told.is_empty()).then(|| String::from_utf8_lossy(&told).into_owned())
        };
        match note {
            Note::Version => {
                self.node_version = told("applicationVersion").or(self.node_version.take());
                self.node_revision = told("gitRevision").or(self.node_revision.take());
                self.compiler_version = told("compilerVersion").or(self.compiler_version.take());
            }
            Note::Startup => self.network_magic = told("networkMagic").or(self.network_magic.take()),
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
    fn text(self) -> Text<'a> {
        self.scanner.text
    }

    /// The value, absent if it is null.
    #[inline(always)]
    fn get(self, key: &str) -> Span {
        let value = self.members.get(self.text(), key);
        if value.lead(self.text()) == b'n' { Span::default() } else { value }
    }

    #[inline(always)]
    fn integer(self, value: Span) -> Option<i128> {
        if matches!(value.lead(self.text()), b'-' | b'0'..=b'9') { integer(value.of(self.text())) } else { None }
    }

    #[inline(always)]
    fn unsigned_value(self, key: &'static str, value: Span) -> Body<u64> {
        let value = self.integer(value).and_then(|value| u64::try_from(value).ok());
        value.ok_or(Problem::Body { key, wanted: UNSIGNED })
    }

    #[inline(always)]
    fn unsigned(self, key: &'static str) -> Body<u64> {
        self.unsigned_value(key, self.get(key))
    }

    fn unsigned_or(self, key: &'static str, default: u64) -> Body<u64> {
        let value = self.get(key);
        if value.present() { self.unsigned_value(key, value) } else { Ok(default) }
    }

    fn signed(self, key: &'static str) -> Body<i64> {
        let value = self.integer(self.get(key)).and_then(|value| i64::try_from(value).ok());
        value.ok_or(Problem::Body { key, wanted: "an integer" })
    }

    fn double_value(self, key: &'static str, value: Span) -> Body<f64> {
        let number = matches!(value.lead(self.text()), b'-' | b'0'..=b'9');
        let parsed = std::str::from_utf8(value.of(self.text())).ok().filter(|_| number).and_then(|it| it.parse().ok());
        parsed.filter(|value: &f64| value.is_finite()).ok_or(Problem::Body { key, wanted: "a number" })
    }

    fn double(self, key: &'static str) -> Body<f64> {
        self.double_value(key, self.get(key))
    }

    fn double_or(self, key: &'static str, default: f64) -> Body<f64> {
        let value = self.get(key);
        if value.present() { self.double_value(key, value) } else { Ok(default) }
    }

    fn is_false(self, key: &'static str) -> Body<bool> {
        let value = self.get(key);
        match value.lead(self.text()) {
            0 | b't' => Ok(false),
            b'f' => Ok(true),
            _ => Err(Problem::Body { key, wanted: "true or false" }),
        }
    }

    /// A hash, which is all of the string.
    fn hash(self, key: &'static str) -> Body<Hash> {
        let told = string(self.text(), self.get(key));
        told.and_then(|told| hash(&told)).ok_or(Problem::Body { key, wanted: "a hash" })
    }

    /// A hash, which is how the string begins.
    fn leading_hash(self, key: &'static str) -> Body<Hash> {
        let told = string(self.text(), self.get(key));
        told.and_then(|told| hash(told.get(..64)?)).ok_or(Problem::Body { key, wanted: "a hash" })
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
        let peer = fields.get("peer");
        self.text.clear();
        (self.local, self.remote) = (None, None);
        let connection = match peer.lead(scanner.text) {
            b'{' => scanner.member(peer, "connectionId"),
            _ => peer,
        };
        if let Some(connection) = string(scanner.text, connection).and_then(|told| String::from_utf8(told.into()).ok())
        {
            if let Some((local, remote)) = connection.split_once(' ').filter(|(_, remote)| !remote.contains(' ')) {
                self.local = Some(self.put(local));
                self.remote = Some(self.put(remote));
            }
        } else if peer.lead(scanner.text) == b'{' {
            self.local = self.end(scanner, scanner.member(peer, "local"));
            self.remote = self.end(scanner, scanner.member(peer, "remote"));
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
        let (address, port) = (told("addr")?, told("port")?);
        Some(self.put(&format!("{address}:{port}")))
    }
}

enum Told<'a> {
    Fact(Fact<'a>),
    NoAnnouncement,
    /// Nothing that is counted: the first one of a pair of lines.
    Nothing,
}

/// What a line of `message` tells.
#[inline(always)]
fn fact<'a>(message: Message, fields: Fields<'_>, peers: &'a mut Peers) -> Body<Told<'a>> {
    let slot = || fields.unsigned("slot");
    Ok(Told::Fact(match message {
        Message::LedgerState => Fact::LedgerState { slot: slot()? },
        Message::LedgerView => Fact::LedgerView { slot: slot()? },
        Message::Leads => Fact::Leadership { slot: slot()?, leads: true },
        Message::LeadsNot => Fact::Leadership { slot: slot()?, leads: false },
        Message::Ticked => Fact::Ticked { slot: slot()? },
        Message::MempoolSnapshot => Fact::MempoolSnapshot { slot: slot()? },
        Message::BlockContext => Fact::BlockContext {
            slot: fields.unsigned("current slot")?,
            block_no: fields.signed("tipBlockNo")?.saturating_sub(1),
        },
        Message::LoopStart => Fact::LoopStart {
            slot: slot()?,
            utxo_entries: fields.unsigned_or("utxoSize", 0)?,
            density: fields.double_or("chainDensity", 0.0)?,
        },
        Message::MempoolAdded | Message::MempoolRemoved => {
            let size = fields.scanner.member(fields.get("mempoolSize"), "numTxs");
            Fact::MempoolSize { transactions: fields.unsigned_value("mempoolSize.numTxs", size)? }
        }
        Message::Collected => Fact::TransactionsCollected { count: fields.unsigned("count")? },
        Message::Processed => {
            Fact::TransactionsProcessed { accepted: fields.unsigned("accepted")?, rejected: fields.signed("rejected")? }
        }
        Message::MempoolRejected => Fact::TransactionRejected,
        _ => return rare_fact(message, fields, peers),
    }))
}

/// What comes once a second, once a block, or less often.
fn rare_fact<'a>(message: Message, fields: Fields<'_>, peers: &'a mut Peers) -> Body<Told<'a>> {
    Ok(Told::Fact(match message {
        Message::Resources => Fact::Resources(resources(fields)?),
        Message::LedgerMetrics => Fact::LedgerMetrics {
            slot: fields.unsigned("slot")?,
            utxo_entries: fields.unsigned("utxoSize")?,
            density: fields.double("chainDensity")?,
        },
        Message::Forged => Fact::Forged {
            slot: fields.unsigned("slot")?,
            block_no: fields.unsigned("blockNo")?,
            block: fields.hash("block")?,
            parent: parent(fields)?,
        },
        Message::Noticed => Fact::Noticed {
            slot: fields.unsigned("slot")?,
            block_no: block_number(fields)?,
            block: fields.hash("block")?,
            peer: peers.read(fields),
        },
        Message::Requested => Fact::Requested { head: fields.hash("head")?, length: fields.unsigned("length")? },
        Message::Fetched => Fact::Fetched { block: fields.hash("block")?, peer: peers.read(fields) },
        Message::AnnouncedLegacy => Fact::Announced { block: fields.hash("block")? },
        Message::Announced => return announced(fields),
        Message::Sent => Fact::Sent { block: fields.hash("block")? },
        Message::Added => {
            Fact::Added { block: fields.leading_hash("newtip")?, delta: fields.unsigned_or("chainLengthDelta", 1)? }
        }
        Message::Switched => {
            Fact::Switched { block: fields.leading_hash("newtip")?, delta: fields.unsigned_or("chainLengthDelta", 1)? }
        }
        Message::Adopted => {
            Fact::SelfAdopted { block: fields.hash("blockHash")?, size_bytes: fields.unsigned("blockSize")? }
        }
        Message::LedgerSnapshot => Fact::LedgerSnapshot { renamed: false },
        Message::LedgerSnapshotRenamed => {
            // The line comes when the snapshot begins and again when it is done, which is the one that counts.
            let edge = fields.scanner.member(fields.get("enclosedTime"), "tag");
            if string(fields.text(), edge).as_deref() == Some(b"RisingEdge") {
                return Ok(Told::Nothing);
            }
            Fact::LedgerSnapshot { renamed: true }
        }
        Message::Acknowledged => {
            strings(fields, "txIds")?;
            Fact::TransactionsAcknowledged
        }
        Message::GeneratorSummary => {
            generator_summary(fields)?;
            Fact::GeneratorSummary
        }
        _ => unreachable!("the frequent messages are decoded before"),
    }))
}

fn resources(fields: Fields<'_>) -> Body<Resources> {
    Ok(Resources {
        cpu_centiseconds: fields.unsigned("CentiCpu")?,
        gc_centiseconds: fields.unsigned("CentiGC")?,
        mutator_centiseconds: fields.unsigned("CentiMut")?,
        major_collections: fields.unsigned("GcsMajor")?,
        minor_collections: fields.unsigned("GcsMinor")?,
        allocated_bytes: fields.unsigned("Alloc")?,
        live_bytes: fields.unsigned("Live")?,
        heap_bytes: fields.unsigned_or("Heap", 0)?,
        rss_bytes: fields.unsigned("RSS")?,
        block_io_centiseconds: fields.unsigned("CentiBlkIO")?,
        net_read_bytes: fields.unsigned_or("NetRd", 0)?,
        net_written_bytes: fields.unsigned_or("NetWr", 0)?,
        file_read_bytes: fields.unsigned_or("FsRd", 0)?,
        file_written_bytes: fields.unsigned_or("FsWr", 0)?,
        threads: fields.unsigned("Threads")?,
    })
}

/// The block before; none before the first one.
fn parent(fields: Fields<'_>) -> Body<Option<Hash>> {
    let told = string(fields.text(), fields.get("blockPrev"));
    if told.as_deref().is_some_and(|told| told.len() != 64 && told.to_ascii_lowercase().starts_with(b"genesis")) {
        return Ok(None);
    }
    fields.hash("blockPrev").map(Some)
}

/// A number, or in the oldest nodes an object around it.
fn block_number(fields: Fields<'_>) -> Body<u64> {
    let told = fields.get("blockNo");
    let number = match told.lead(fields.text()) {
        b'{' => fields.scanner.member(told, "unBlockNo"),
        _ => told,
    };
    fields.unsigned_value("blockNo", number)
}

fn announced<'a>(fields: Fields<'_>) -> Body<Told<'a>> {
    let skipped =
        fields.is_false("risingEdge")? || fields.is_false("blockingRead")? || fields.get("rollBackTo").present();
    if skipped {
        return Ok(Told::NoAnnouncement);
    }
    let key = if fields.get("addBlock").present() { "addBlock" } else { "block" };
    Ok(Told::Fact(Fact::Announced { block: fields.leading_hash(key)? }))
}

fn strings(fields: Fields<'_>, key: &'static str) -> Body<()> {
    let list = fields.get(key);
    let all =
        list.lead(fields.text()) == b'[' && fields.scanner.items(list).all(|item| item.lead(fields.text()) == b'"');
    if all { Ok(()) } else { Err(Problem::Body { key, wanted: "a list of strings" }) }
}

fn generator_summary(fields: Fields<'_>) -> Body<()> {
    let summary = fields.get("summary");
    let member = |key| fields.scanner.member(summary, key);
    fields.unsigned_value("summary.ssTxSent", member("ssTxSent"))?;
    fields.unsigned_value("summary.ssFailures", member("ssFailures"))?;
    fields.double_value("summary.ssElapsed", member("ssElapsed"))?;
    if member("ssThreadwiseTps").lead(fields.text()) == b'[' {
        Ok(())
    } else {
        Err(Problem::Body { key: "summary.ssThreadwiseTps", wanted: "a list" })
    }
}
