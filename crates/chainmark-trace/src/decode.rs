//! One line of a log to its class: an event, or why it is none.

mod facts;
mod fields;
mod notes;
mod opening;
mod peers;
mod problem;
mod repeats;
mod scout;
mod shapes;
mod shown;

use std::borrow::Cow;

pub use problem::Problem;
pub use scout::{Findings, Name, PackedFindings, Scout, Scouted};

use crate::accounting::HostCounts;
use crate::event::{Event, Fact};
use crate::json::{self, Scanner, Span, plain_string, string, word_of};
use crate::key;
use crate::message::{Message, Route, Routed, Routes};
use crate::text::{Text, TextBuffer};
use crate::time::{self, Clock};
use crate::wrapper::{self, Pending, Wrapper};
use facts::{fact_of_number, line_of, only_number};
use fields::Fields;
use notes::count_host;
use opening::{Envelope, Opened, Opening, is_utf8};
use peers::Peers;
use repeats::{LineContent, Repeats, Rest};
use shapes::{Says, Shapes};

/// Longer lines are not read.
pub const MAX_LINE: usize = 16 << 20;

/// The class of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    Event(Event<'a>),
    Ignored,
    /// A message that is not an announcement.
    Skipped,
    NotObject,
    Malformed(Problem),
    /// A piece of a line; the class is that of the whole, with its last piece.
    Piece,
}

/// Decodes lines and counts them.
pub struct Decoder {
    core: Core,
    /// What was inside wrappers, and inside wrappers in these.
    payloads: [TextBuffer; 2],
    /// Pieces of lines that are not complete.
    pending: Pending,
    wrappers: [u64; Wrapper::ALL.len()],
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            core: Core::default(),
            payloads: [TextBuffer::new(0), TextBuffer::new(0)],
            pending: Pending::default(),
            wrappers: [0; Wrapper::ALL.len()],
        }
    }
}

impl Decoder {
    /// The line from `start` to before `end` of `text`, without its newline.
    #[inline]
    pub fn line(&mut self, text: &Text<'_>, start: usize, end: usize) -> Line<'_> {
        let rest = self.core.rest_of(text, start, end);
        if let Some(rest) = rest
            && let Some(line) = self.core.known(text, start, rest)
        {
            self.wrappers[Wrapper::None as usize] += 1;
            return line;
        }
        match self.core.opening.open(text, start, end) {
            Opened::Trace => {
                self.wrappers[Wrapper::None as usize] += 1;
                self.core.trace(text, start, end, rest)
            }
            Opened::Wrapped(wrapper) => self.wrapped(text, start, end, wrapper),
            Opened::NotObject => self.after_lead(&text.bytes[start..end]),
            Opened::Bad(problem) => self.core.bad_envelope(problem, text, start, end),
        }
    }

    /// The class of a line that a scout has decoded.
    #[inline]
    pub fn scouted<'a>(&mut self, scouted: &Scouted<'a>) -> Line<'a> {
        self.wrappers[Wrapper::None as usize] += 1;
        self.core.scouted(scouted)
    }

    /// A line that begins with no object, but may have a node's behind what a journal or a runtime puts before it.
    #[cold]
    fn after_lead(&mut self, line: &[u8]) -> Line<'_> {
        if let Some((stream, goes_on, text)) = wrapper::of_container(line) {
            return self.of_container(stream, goes_on, text);
        }
        let Some(object) = wrapper::after_lead(line) else { return self.core.not_object() };
        let Self { core, payloads: [outer, inner], wrappers, .. } = self;
        outer.clear();
        outer.append(object);
        let line = core.payload_line(Wrapper::Syslog, outer, Some(inner));
        wrappers[Wrapper::Syslog as usize] += u64::from(!matches!(line, Line::NotObject));
        line
    }

    fn of_container(&mut self, stream: &[u8], goes_on: bool, text: &[u8]) -> Line<'_> {
        self.wrappers[Wrapper::Container as usize] += 1;
        let Self { core, payloads: [outer, inner], pending, .. } = self;
        outer.clear();
        outer.append(text);
        if goes_on && pending.keep(Wrapper::Container, stream, text, MAX_LINE) {
            core.count_piece();
            return Line::Piece;
        }
        pending.complete(Wrapper::Container, stream, outer);
        core.payload_line(Wrapper::Container, outer, Some(inner))
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
        let (payload, line_break) = core.opening.payload(wrapper);
        let stream = core.opening.stream().of(text);
        let goes_on = match wrapper::unwrap(Scanner { text, end }, wrapper, payload, line_break, outer) {
            Ok(goes_on) => goes_on,
            Err(reason) => return core.bad_envelope(Problem::Wrapper(reason), text, start, end),
        };
        if goes_on && pending.keep(wrapper, stream, outer.as_bytes(), MAX_LINE) {
            core.count_piece();
            return Line::Piece;
        }
        pending.complete(wrapper, stream, outer);
        core.payload_line(wrapper, outer, Some(inner))
    }

    /// The class of a line whose last piece is missing; to be called until there is none.
    pub fn end(&mut self) -> Option<Line<'_>> {
        let Self { core, payloads: [outer, inner], pending, .. } = self;
        let wrapper;
        (wrapper, *outer) = pending.take()?;
        core.recall_piece();
        Some(core.payload_line(wrapper, outer, Some(inner)))
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

    /// Time stamp of the last readable line so far.
    pub fn last_ns(&self) -> Option<i64> {
        self.core.tally.last_ns
    }

    /// The counts so far, without those of files.
    pub fn counts(&self) -> HostCounts {
        let mut counts = self.core.tally.clone();
        for message in Message::ALL {
            let count = self.core.decoded[*message as usize];
            if count > 0 {
                *counts.decoded_by_message.entry(message.name().to_owned()).or_default() += count;
            }
        }
        counts.decoded = self.core.decoded.iter().sum();
        counts.malformed = counts.malformed_envelope + counts.malformed_body;
        for (name, count) in self.core.routes.ignored() {
            *counts.ignored_by_message.entry(name).or_default() += count;
        }
        counts.ignored = counts.ignored_by_message.values().sum();
        let (name, count) = &self.core.last_name;
        if let Some(counted) = counts.names.get_mut(name) {
            *counted += count;
        }
        counts.seconds_before_order = self.core.behind_ns as f64 / 1e9;
        counts
    }
}

struct Core {
    clock: Clock,
    routes: Routes,
    opening: Opening,
    /// A namespace given in segments, joined.
    ns: Vec<u8>,
    peers: Peers,
    /// Lines of the last line's host, and how they are written.
    repeats: Repeats,
    shapes: Shapes,
    tally: HostCounts,
    decoded: [u64; Message::ALL.len()],
    /// The class of the last readable line.
    routed: Routed,
    /// The last line's host, and its number of lines since it was last counted.
    last_name: (String, u64),
    latest_ns: i64,
    behind_ns: i64,
}

impl Default for Core {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            routes: Routes::default(),
            opening: Opening::default(),
            ns: Vec::new(),
            peers: Peers::default(),
            repeats: Repeats::default(),
            shapes: Shapes::default(),
            tally: HostCounts::default(),
            decoded: [0; Message::ALL.len()],
            routed: Routed { route: Route::Ignore, known: None },
            last_name: (String::new(), 0),
            latest_ns: i64::MIN,
            behind_ns: 0,
        }
    }
}

impl Core {
    /// The class of the line in `payload`, which may be wrapped once more if `inside` allows it.
    fn payload_line(
        &mut self,
        wrapper: Wrapper,
        payload: &mut TextBuffer,
        inside: Option<&mut TextBuffer>,
    ) -> Line<'_> {
        payload.index();
        let (text, end) = (&payload.text(), without_newline(payload));
        let opened = self.opening.open(text, 0, end);
        if wrapper.has_other_programs() && self.is_of_another_program(&opened, text, end) {
            return self.not_object();
        }
        match opened {
            Opened::Trace => self.trace(text, 0, end, None),
            Opened::NotObject => self.not_object(),
            Opened::Bad(problem) => self.bad_envelope(problem, text, 0, end),
            Opened::Wrapped(within) => {
                let Some(inside) = inside else {
                    return self.bad_envelope(Problem::Wrapper("wrapped more than twice"), text, 0, end);
                };
                let (payload, line_break) = self.opening.payload(within);
                match wrapper::unwrap(Scanner { text, end }, within, payload, line_break, inside) {
                    Ok(_) => {
                        self.payload_line(if within.has_other_programs() { within } else { wrapper }, inside, None)
                    }
                    Err(reason) => self.bad_envelope(Problem::Wrapper(reason), text, 0, end),
                }
            }
        }
    }

    /// Whether an object has no property of a node's, not even a time.
    fn is_of_another_program(&mut self, opened: &Opened, text: &Text<'_>, end: usize) -> bool {
        match opened {
            Opened::Trace => !self.opening.is_log_object(),
            Opened::Bad(_) => time::textual(&mut self.clock, text, 0, end).is_none(),
            Opened::NotObject | Opened::Wrapped(_) => false,
        }
    }

    fn count_piece(&mut self) {
        self.tally.raw_lines += 1;
        self.tally.not_objects += 1;
        self.tally.pieces += 1;
    }

    /// The last piece of a line represents the whole line.
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
            self.tally.last_but_one_ns = self.tally.last_ns.replace(at_ns);
        }
        Line::Malformed(problem)
    }

    /// The class of a line that follows from an earlier one.
    #[inline(always)]
    fn known(&mut self, text: &Text<'_>, start: usize, rest: Rest) -> Option<Line<'static>> {
        let repeated = self.repeated(text, start, rest);
        if repeated.is_some() { repeated } else { self.of_shape(text, start, rest) }
    }

    /// The class of a line that equals, after its time, one that was scanned: only the time must be parsed.
    #[inline(always)]
    fn repeated(&mut self, text: &Text<'_>, start: usize, rest: Rest) -> Option<Line<'static>> {
        let (routed, content) = self.repeats.find(text, rest)?;
        let at_ns = self.clock.read(text, start + TIME_LEAD, rest.start)?;
        self.count_object(at_ns);
        self.last_name.1 += 1;
        self.routed = routed;
        match content {
            LineContent::Ignored => {
                self.routes.count_ignored(routed);
                Some(Line::Ignored)
            }
            LineContent::Collected { count } => {
                self.decoded[Message::Collected as usize] += 1;
                Some(Line::Event(Event { at_ns, fact: Fact::TransactionsCollected { count } }))
            }
            LineContent::Processed { accepted, rejected } => {
                self.decoded[Message::Processed as usize] += 1;
                Some(Line::Event(Event { at_ns, fact: Fact::TransactionsProcessed { accepted, rejected } }))
            }
        }
    }

    /// The class of a line that differs from one that was scanned in numbers and texts alone.
    #[inline(always)]
    fn of_shape(&mut self, text: &Text<'_>, start: usize, rest: Rest) -> Option<Line<'static>> {
        let scanner = Scanner { text, end: rest.end };
        let (routed, says, value) = self.shapes.find(scanner, rest.start)?;
        if !is_utf8(text, rest.start, rest.end) {
            return None;
        }
        let fact = match says {
            Says::Ignored => None,
            Says::Number(message) => {
                let number = json::integer(text, value).and_then(|value| u64::try_from(value).ok())?;
                Some((message, fact_of_number(message, number)))
            }
        };
        let at_ns = self.clock.read(text, start + TIME_LEAD, rest.start)?;
        self.count_object(at_ns);
        self.last_name.1 += 1;
        self.routed = routed;
        let Some((message, fact)) = fact else {
            self.repeats.keep(text, rest, routed, LineContent::Ignored);
            self.routes.count_ignored(routed);
            return Some(Line::Ignored);
        };
        self.decoded[message as usize] += 1;
        if let Some(content) = LineContent::of(&fact) {
            self.repeats.keep(text, rest, routed, content);
        }
        Some(Line::Event(Event { at_ns, fact }))
    }

    /// The text after the time of a line that begins with it.
    #[inline(always)]
    fn rest_of(&mut self, text: &Text<'_>, start: usize, end: usize) -> Option<Rest> {
        if text.word(start) & (u64::MAX >> 8) != const { word_of(br#"{"at":""#) } {
            return None;
        }
        let time_end = text.next_special(start + TIME_LEAD);
        (time_end < end).then(|| self.repeats.rest(text, time_end, end))
    }

    #[inline(always)]
    fn count_object(&mut self, at_ns: i64) {
        self.tally.raw_lines += 1;
        self.tally.objects += 1;
        self.tally.count_time(at_ns);
        if at_ns >= self.latest_ns {
            self.latest_ns = at_ns;
        } else {
            self.behind_ns = self.behind_ns.max(self.latest_ns.saturating_sub(at_ns));
        }
    }

    /// A valid object that is not wrapped. Its `rest` is kept if the line is of the usual form: the time is the first
    /// member, and no other one.
    #[inline(always)]
    fn trace(&mut self, text: &Text<'_>, start: usize, end: usize, rest: Option<Rest>) -> Line<'_> {
        let (at_ns, routed) = match self.envelope(text, end) {
            Ok(envelope) => envelope,
            Err(problem) => return self.bad_envelope(problem, text, start, end),
        };
        self.count_object(at_ns);
        let rest = rest.filter(|_| self.opening.envelope.plain);
        let fields = Fields { scanner: Scanner { text, end }, members: &self.opening.members };
        let Route::Decode(message) = routed.route else {
            if let Route::Note(note) = routed.route {
                self.tally.note(note, fields);
            } else if let Some(rest) = rest {
                self.repeats.keep(text, rest, routed, LineContent::Ignored);
                self.shapes.keep(fields.scanner, rest.start, Span::default(), routed, Says::Ignored);
            }
            self.routes.count_ignored(routed);
            return Line::Ignored;
        };
        let line = line_of(message, at_ns, fields, &mut self.peers).unwrap_or_else(Line::Malformed);
        match &line {
            Line::Event(event) => {
                self.decoded[message as usize] += 1;
                if let Some(rest) = rest {
                    if let Some(content) = LineContent::of(&event.fact) {
                        self.repeats.keep(text, rest, routed, content);
                    }
                    if let Some((_, value)) = only_number(message, fields) {
                        self.shapes.keep(fields.scanner, rest.start, value, routed, Says::Number(message));
                    }
                }
                self.tally.count_address(&event.fact);
            }
            Line::Skipped => self.tally.skipped += 1,
            Line::Malformed(_) => self.tally.malformed_body += 1,
            Line::Ignored | Line::NotObject | Line::Piece => self.routes.count_ignored(routed),
        }
        line
    }

    #[inline(always)]
    fn report_host(&mut self, host: &[u8]) {
        if *host == *self.last_name.0.as_bytes() && self.last_name.1 > 0 {
            self.last_name.1 += 1;
        } else {
            count_host(&mut self.tally.names, &mut self.last_name, host);
            self.repeats.clear();
            self.shapes.clear();
        }
    }

    /// Reads the common part of log objects: the time, and how to process the object.
    #[inline(always)]
    fn envelope(&mut self, text: &Text<'_>, end: usize) -> Result<(i64, Routed), Problem> {
        let wanted = |key, wanted| Problem::Envelope { key, wanted };
        let Envelope { at, ns, data, host, thread, env, plain } = self.opening.envelope;
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
        let members = &mut self.opening.members;
        let mut kind = members.string(text, members.get(text, key::KIND)).unwrap_or_default();
        if kind.is_empty() {
            let credentials = members.get(text, key::CREDENTIALS);
            let value = members.get(text, key::VAL);
            if credentials.lead(text) == b'"' && value.lead(text) == b'{' {
                // The members of `data.val` replace those of `data`; it was scanned before and is valid.
                let _ = Scanner { text, end }.members(value.start(), 2, members, key::OF_DATA);
                kind = members.string(text, members.get(text, key::KIND)).unwrap_or_default();
            }
        }
        let routed = self.routes.find(&ns, &kind);
        self.routed = routed;
        self.report_host(&host);
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

/// Bytes before the time of a line that begins with it.
const TIME_LEAD: usize = br#"{"at":""#.len();

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
