//! The files of one host, line by line, in time order.

mod ranges;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde::Serialize;

use crate::accounting::{Container, FileCounts, HostCounts, MAX_EXAMPLE_CHARS, MAX_MALFORMED_EXAMPLES, Malformed};
use crate::control::Control;
use crate::decode::{Decoder, Findings, Line, MAX_LINE, Name, Problem, Scout, Scouted};
use crate::error::{ReadError, Result};
use crate::event::{Event, Fact, Place};
use crate::input::{Finished, Input};
use crate::text::{Text, TextBuffer};
use crate::wrapper::Wrapper;
use ranges::RangeLines;
pub use ranges::{RangeError, RangeRequest, look_through_range};

/// Size of text that is read together; a processor's second-level cache holds it and its bitmaps.
const CHUNK: usize = 256 << 10;
/// Room for the beginning of a line before a chunk that ends it.
const BEGUN: usize = 32 << 10;
/// Threads that decode one file: more wait for the one that reads and the one that puts together.
const MOST_SCOUTS: usize = 2;
/// Pieces that wait for each thread.
const AHEAD: usize = 4;

/// How the reading of one host is divided among threads. No result depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Division {
    /// One does everything; of two, one reads ahead of the other; of more, one reads, others decode pieces of the file,
    /// and one puts together what they found.
    pub threads: usize,
    /// Size of text that is read together. Files are divided at line ends.
    pub piece_bytes: usize,
}

impl Division {
    pub fn new(threads: usize) -> Self {
        Self { threads, piece_bytes: CHUNK }
    }

    fn scouts(self) -> usize {
        if self.threads > 2 { (self.threads - 1).min(MOST_SCOUTS) } else { 0 }
    }
}

/// Where a file is read.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Stored(&'a Path),
    /// Others looked through its ranges.
    Ranges(&'a Path, &'a [PathBuf]),
}

impl<'a> Source<'a> {
    fn path(self) -> &'a Path {
        match self {
            Self::Stored(path) | Self::Ranges(path, _) => path,
        }
    }

    fn open(self, control: &'a Control, whole: bool) -> Result<Lines<'a>> {
        match self {
            Self::Stored(path) => Lines::open(path, control, whole),
            Self::Ranges(_, findings) => Ok(Lines::Ranges(RangeLines::new(findings))),
        }
    }
}

/// Reads the files of one host, in the order of the first time stamps in them, and passes every event to `listen` in
/// line order. The file of a position is an index into the accounting's files.
///
/// # Errors
/// A file cannot be read, or the reading was cancelled.
pub fn read_host(
    files: &[PathBuf],
    division: Division,
    control: &Control,
    listen: &mut dyn FnMut(&Event<'_>, Place),
) -> Result<HostCounts> {
    read_ranges(files, &BTreeMap::new(), division, control, listen)
}

/// The same; a file with `findings`, the results of `look_through_range` for all its ranges in order, is not opened.
///
/// # Errors
/// A file cannot be read, or the reading was cancelled.
pub fn read_ranges(
    files: &[PathBuf],
    findings: &BTreeMap<PathBuf, Vec<PathBuf>>,
    division: Division,
    control: &Control,
    listen: &mut dyn FnMut(&Event<'_>, Place),
) -> Result<HostCounts> {
    let source = |path| findings.get(path).map_or(Source::Stored(path), |ranges| Source::Ranges(path, ranges));
    let sources: Vec<Source<'_>> = files.iter().map(|path| source(path)).collect();
    let mut reader = HostReader {
        decoder: Decoder::default(),
        division,
        control,
        listen,
        tally: LineTally::default(),
        malformed_lines: Vec::new(),
        files: Vec::new(),
    };
    for (first_ns, source) in in_time_order(&sources, control)? {
        reader.file(source, first_ns)?;
    }
    reader.end();
    let mut counts = reader.decoder.counts();
    counts.files = reader.files;
    counts.malformed_examples = reader.malformed_lines;
    (counts.decoded, counts.ignored, counts.malformed) =
        (reader.tally.decoded, reader.tally.ignored, reader.tally.malformed);
    counts.check()?;
    Ok(counts)
}

/// Files without any time stamp come last.
fn in_time_order<'a>(sources: &[Source<'a>], control: &'a Control) -> Result<Vec<(Option<i64>, Source<'a>)>> {
    let mut ordered = Vec::with_capacity(sources.len());
    for source in sources {
        let mut decoder = Decoder::default();
        let mut lines = source.open(control, false)?;
        lines.each(control, |piece| {
            piece.decode(&mut decoder);
            if decoder.first_ns().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        ordered.push((decoder.first_ns(), *source));
    }
    ordered.sort_by_key(|(first_ns, source)| (first_ns.is_none(), *first_ns, source.path()));
    Ok(ordered)
}

/// The decoder's results for the lines, counted by the receiver: its own counts, by message and kind, must agree.
#[derive(Default)]
struct LineTally {
    decoded: u64,
    ignored: u64,
    malformed: u64,
}

impl LineTally {
    #[inline(always)]
    fn count(&mut self, line: &Line<'_>) {
        match line {
            Line::Event(_) => self.decoded += 1,
            Line::Ignored => self.ignored += 1,
            Line::Malformed(_) => self.malformed += 1,
            Line::Skipped | Line::NotObject | Line::Piece => {}
        }
    }
}

struct HostReader<'a> {
    decoder: Decoder,
    division: Division,
    control: &'a Control,
    listen: &'a mut dyn FnMut(&Event<'_>, Place),
    tally: LineTally,
    malformed_lines: Vec<Malformed>,
    files: Vec<FileCounts>,
}

impl HostReader<'_> {
    fn file(&mut self, source: Source<'_>, first_ns: Option<i64>) -> Result<()> {
        let mut place = Place { file: self.files.len() as u32, line: 0 };
        let name = source.path().to_string_lossy();
        let mut lines = source.open(self.control, true)?;
        lines.divide(self.division);
        lines.each(self.control, |piece| {
            place.line += 1;
            let line = piece.decode(&mut self.decoder);
            self.tally.count(&line);
            match line {
                Line::Event(event) => (self.listen)(&event, place),
                Line::Malformed(problem) if self.malformed_lines.len() < MAX_MALFORMED_EXAMPLES => {
                    self.malformed_lines.push(malformed(&name, place, problem, piece.bytes()));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        let (container, text_bytes, finished) = lines.finish()?;
        self.files.push(FileCounts {
            path: name.into_owned(),
            stored_bytes: finished.stored_bytes,
            text_bytes,
            lines: place.line,
            blake3: finished.blake3,
            first_ns,
            container,
            wrapper: self.decoder.take_wrapper(),
            damage: finished.damage,
        });
        Ok(())
    }

    /// Reports the lines whose last piece is missing, at the end of the text.
    fn end(&mut self) {
        let Some(file) = self.files.last() else { return };
        let place = Place { file: self.files.len() as u32 - 1, line: file.lines };
        while let Some(line) = self.decoder.end() {
            self.tally.count(&line);
            match line {
                Line::Event(event) => (self.listen)(&event, place),
                Line::Malformed(problem) if self.malformed_lines.len() < MAX_MALFORMED_EXAMPLES => {
                    self.malformed_lines.push(malformed(
                        &file.path,
                        place,
                        problem,
                        b"(pieces of a line that does not end)",
                    ));
                }
                _ => {}
            }
        }
    }
}

fn malformed(file: &str, place: Place, problem: Problem, text: &[u8]) -> Malformed {
    // No character is longer than four bytes.
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MAX_EXAMPLE_CHARS)]);
    Malformed {
        file: file.to_owned(),
        line: place.line,
        reason: problem.to_string(),
        text: text.chars().take(MAX_EXAMPLE_CHARS).collect(),
    }
}

/// A line without its newline, or the beginning of a too long one.
enum Piece<'a> {
    Line {
        text: &'a Text<'a>,
        start: usize,
        end: usize,
    },
    /// One that a scout has decoded.
    Scouted(Scouted<'a>),
    TooLong {
        text: &'a Text<'a>,
    },
}

impl<'a> Piece<'a> {
    #[inline(always)]
    fn decode<'d>(&self, decoder: &'d mut Decoder) -> Line<'d>
    where
        'a: 'd,
    {
        match self {
            Self::Line { text, start, end } => decoder.line(text, *start, *end),
            Self::Scouted(scouted) => decoder.scouted(scouted),
            Self::TooLong { text } => decoder.too_long(text),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match *self {
            Self::Line { text, start, end } => &text.bytes[start..end],
            // Only unreadable lines are worth showing.
            Self::Scouted(_) => &[],
            Self::TooLong { text } => &text.bytes[..text.len],
        }
    }
}

/// The lines of one file.
enum Lines<'a> {
    Stored(Pieces<'a>, Division),
    Ranges(RangeLines<'a>),
}

impl<'a> Lines<'a> {
    fn open(path: &Path, control: &'a Control, whole: bool) -> Result<Self> {
        Ok(Self::Stored(Pieces::new(Input::open(path, control, whole)?), Division::new(1)))
    }

    fn divide(&mut self, wanted: Division) {
        if let Self::Stored(pieces, division) = self {
            *division = wanted;
            pieces.piece_bytes = wanted.piece_bytes.max(1);
        }
    }

    fn finish(self) -> Result<(Container, u64, Finished)> {
        match self {
            Self::Stored(pieces, _) => Ok((pieces.input.container, pieces.text_bytes, pieces.input.finish()?)),
            Self::Ranges(ranges) => ranges.finish(),
        }
    }

    /// Reports every line until there is none, or `tell` stops.
    fn each(&mut self, control: &Control, mut tell: impl FnMut(Piece<'_>) -> ControlFlow<()>) -> Result<()> {
        let (pieces, division) = match self {
            Self::Stored(pieces, division) => (pieces, *division),
            Self::Ranges(ranges) => return ranges.each(control, &mut tell),
        };
        if division.threads > 1 {
            return each_divided(pieces, division.scouts(), control, &mut tell);
        }
        let mut buffer = pieces.buffer();
        loop {
            let text_piece = pieces.next(&mut buffer, control)?;
            if text_piece.tell(&buffer, control, &mut tell).is_break() || text_piece.is_last {
                return Ok(());
            }
            buffer.consume(text_piece.until);
        }
    }
}

/// A piece in transit. Buffers are reused: freeing another thread's allocation makes both wait.
struct Carried {
    buffer: TextBuffer,
    text_piece: TextPiece,
    findings: Findings,
    /// Whether the findings are those of this piece.
    is_looked_through: bool,
}

/// Reports the lines that another thread reads, hashes, decompresses and marks meanwhile, and that others decode: each
/// the next piece in turn, so that they are reported in order, and nothing depends on the threads.
fn each_divided(
    pieces: &mut Pieces<'_>,
    scouts: usize,
    control: &Control,
    tell: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let (give_back, take_back) = sync_channel::<Carried>(2 * AHEAD * scouts.max(1));
    std::thread::scope(|scope| {
        let (mut to_others, mut from_others) = (Vec::new(), Vec::new());
        for _ in 0..scouts.max(1) {
            let (give_read, take_read) = sync_channel::<Result<Carried>>(AHEAD);
            to_others.push(give_read);
            if scouts == 0 {
                from_others.push((take_read, Vec::new()));
                break;
            }
            let (give, take) = sync_channel::<Result<Carried>>(AHEAD);
            from_others.push((take, Vec::new()));
            scope.spawn(move || look_through(take_read, give));
        }
        scope.spawn(move || read_through(pieces, &to_others, take_back, control));
        let mut turn = 0;
        // None comes behind the last one.
        while let Ok(looked) = from_others[turn].0.recv() {
            let mut piece = looked?;
            let names: &mut Vec<Name> = &mut from_others[turn].1;
            names.extend(piece.findings.take_names());
            if piece.tell(names, control, tell).is_break() {
                break;
            }
            // A buffer that is not needed any more is dropped.
            let _ = give_back.try_send(piece);
            turn = (turn + 1) % from_others.len();
        }
        Ok(())
    })
}

/// Reads a file, and passes the next piece to each of the others in turn, until the last one, or until the reading was
/// stopped at an earlier line.
fn read_through(
    pieces: &mut Pieces<'_>,
    to_others: &[SyncSender<Result<Carried>>],
    take_back: Receiver<Carried>,
    control: &Control,
) {
    let mut left = Vec::new();
    for to_other in to_others.iter().cycle() {
        let used = take_back.try_recv().map(|piece| (piece.buffer, piece.findings));
        let (mut buffer, findings) = used.unwrap_or_else(|_| (pieces.buffer(), Findings::default()));
        buffer.clear();
        buffer.append(&left);
        let text_piece = pieces.next(&mut buffer, control);
        let is_last = text_piece.as_ref().map_or(true, |text_piece| text_piece.is_last);
        if let Ok(text_piece) = &text_piece {
            left.clear();
            left.extend_from_slice(&buffer.as_bytes()[text_piece.until..]);
        }
        let piece = text_piece.map(|text_piece| Carried { buffer, text_piece, findings, is_looked_through: false });
        if to_other.send(piece).is_err() || is_last {
            return;
        }
    }
}

fn look_through(take: Receiver<Result<Carried>>, give: SyncSender<Result<Carried>>) {
    let mut scout = Scout::default();
    for mut read in take {
        if let Ok(piece) = &mut read {
            piece.look(&mut scout);
        }
        if give.send(read).is_err() {
            return;
        }
    }
}

impl Carried {
    fn look(&mut self, scout: &mut Scout) {
        let text = &self.buffer.text();
        // What cannot be read has no lines.
        if !self.text_piece.too_long {
            scout.look(text, self.text_piece.lines(text), &mut self.findings);
            self.is_looked_through = true;
        }
    }

    /// Reports the lines, in order.
    fn tell(
        &self,
        names: &[Name],
        control: &Control,
        tell: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.is_looked_through {
            return self.text_piece.tell(&self.buffer, control, tell);
        }
        let text = &self.buffer.text();
        let mut count = 0;
        for (start, end, scouted) in self.findings.lines(names) {
            count += 1;
            tell(scouted.map_or(Piece::Line { text, start, end }, Piece::Scouted))?;
        }
        control.lines.fetch_add(count, Ordering::Relaxed);
        ControlFlow::Continue(())
    }
}

/// A file's text in pieces of whole lines.
struct Pieces<'a> {
    input: Input<'a>,
    piece_bytes: usize,
    text_bytes: u64,
    /// Whether the text until the next newline belongs to a line that was reported as too long.
    skipping: bool,
}

/// What a buffer holds.
struct TextPiece {
    /// Where its last whole line ends; what follows begins the next piece.
    until: usize,
    is_last: bool,
    /// Whether its first line is the end of one that was reported as too long.
    skip_first: bool,
    /// Whether all of it begins one unreadable line.
    too_long: bool,
}

impl<'a> Pieces<'a> {
    fn new(input: Input<'a>) -> Self {
        Self { input, piece_bytes: CHUNK, text_bytes: 0, skipping: false }
    }

    fn buffer(&self) -> TextBuffer {
        TextBuffer::new(self.piece_bytes + BEGUN)
    }

    /// Appends text to a buffer, which begins with the rest of the previous piece, until a line ends in it.
    fn next(&mut self, buffer: &mut TextBuffer, control: &Control) -> Result<TextPiece> {
        loop {
            if control.is_cancelled() {
                return Err(ReadError::Cancelled);
            }
            let is_last = self.read(buffer)?;
            let until = memchr::memrchr(b'\n', buffer.as_bytes()).map_or(0, |newline| newline + 1);
            if is_last || until > 0 {
                let skip_first = std::mem::take(&mut self.skipping);
                return Ok(TextPiece { until, is_last, skip_first, too_long: false });
            }
            if self.skipping {
                buffer.clear();
            } else if buffer.len() == buffer.capacity() && buffer.capacity() >= MAX_LINE {
                self.skipping = true;
                return Ok(TextPiece { until: buffer.len(), is_last, skip_first: false, too_long: true });
            } else if buffer.len() == buffer.capacity() {
                // A line that fills the whole buffer gets a larger one, up to the limit.
                buffer.grow((2 * buffer.capacity()).min(MAX_LINE));
            }
        }
    }

    /// Appends text to a buffer and marks it; returns whether it is the file's last.
    fn read(&mut self, buffer: &mut TextBuffer) -> Result<bool> {
        let is_long = buffer.len() > BEGUN;
        let free = buffer.free();
        let wanted = if is_long { free.len() } else { self.input.to_next(self.piece_bytes).min(free.len()) };
        let added = self.input.fill(&mut free[..wanted])?;
        self.text_bytes += added as u64;
        buffer.extend(added);
        buffer.index();
        Ok(added < wanted)
    }
}

impl TextPiece {
    /// Reports the lines in a buffer; the last one of a file may lack its newline.
    fn tell(
        &self,
        buffer: &TextBuffer,
        control: &Control,
        tell: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let text = &buffer.text();
        if self.too_long {
            // Reading does not stop at an unreadable line.
            let _ = tell(Piece::TooLong { text });
            return ControlFlow::Continue(());
        }
        let mut count = 0;
        for (start, end) in self.lines(text) {
            count += 1;
            tell(Piece::Line { text, start, end })?;
        }
        control.lines.fetch_add(count, Ordering::Relaxed);
        ControlFlow::Continue(())
    }

    /// The bounds of the lines in a buffer.
    fn lines(&self, text: &Text<'_>) -> impl Iterator<Item = (usize, usize)> {
        let until = if self.is_last { text.len } else { self.until };
        let mut start = if self.skip_first { text.next_newline(0) + 1 } else { 0 };
        std::iter::from_fn(move || {
            let line = (start < until).then(|| (start, text.next_newline(start)))?;
            start = line.1 + 1;
            Some(line)
        })
    }
}

/// The facts in a file's first lines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Head {
    pub container: Container,
    pub wrapper: Wrapper,
    pub lines: u64,
    /// Lines with a readable envelope.
    pub objects: u64,
    pub decoded: u64,
    pub malformed: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Slots of the first rounds of the forge loop, and when they began.
    pub starts: Vec<(u64, i64)>,
    pub names: BTreeMap<String, u64>,
    pub node_version: Option<String>,
    pub node_revision: Option<String>,
    pub compiler_version: Option<String>,
    pub network_magic: Option<String>,
    /// Why the first line that cannot be read cannot.
    pub problem: Option<String>,
    /// Lines with a time earlier than that of the previous line.
    pub backward: u64,
    pub damage: Option<String>,
}

/// Rounds of the forge loop that `scan_head` returns.
const STARTS: usize = 20;

/// Looks at a file's first lines.
pub fn scan_head(path: &Path, max_lines: u64) -> Result<Head> {
    let control = Control::default();
    let mut decoder = Decoder::default();
    let mut lines = Lines::open(path, &control, false)?;
    let mut starts = Vec::new();
    let (mut count, mut backward, mut problem) = (0, 0, None);
    if max_lines > 0 {
        lines.each(&control, |piece| {
            count += 1;
            let before_ns = decoder.last_ns();
            match piece.decode(&mut decoder) {
                Line::Event(Event { at_ns, fact: Fact::LoopStart { slot, .. } }) if starts.len() < STARTS => {
                    starts.push((slot, at_ns));
                }
                Line::Malformed(why) if problem.is_none() => problem = Some(why.to_string()),
                _ => {}
            }
            backward += u64::from(decoder.last_ns() < before_ns);
            if count < max_lines { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    let wrapper = decoder.take_wrapper();
    let counts = decoder.counts();
    let (container, _, finished) = lines.finish()?;
    Ok(Head {
        container,
        wrapper,
        lines: count,
        objects: counts.objects,
        decoded: counts.decoded,
        malformed: counts.malformed,
        first_ns: counts.first_ns,
        last_ns: counts.last_ns,
        starts,
        names: counts.names,
        node_version: counts.node_version,
        node_revision: counts.node_revision,
        compiler_version: counts.compiler_version,
        network_magic: counts.network_magic,
        problem,
        backward,
        damage: finished.damage,
    })
}
