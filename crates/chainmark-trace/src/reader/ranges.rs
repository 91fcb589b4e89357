//! A file whose ranges are looked through apart from each other, on any machines that can open it, and put together on
//! one. The findings of scouts in a range are a small file: only the lines that they leave to the decoder have their
//! text in it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use blake3::hazmat::{
    ChainingValue, Mode, left_subtree_len, max_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Carried, Piece, Pieces, TextPiece};
use crate::accounting::Container;
use crate::control::Control;
use crate::decode::{Findings, Name, PackedFindings, Scout};
use crate::error::{ReadError, Result};
use crate::input::{Finished, Input};
use crate::text::TextBuffer;

/// What to look through, and where to write what is found.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeRequest {
    pub path: PathBuf,
    /// Of a plain file: the lines that begin in it are read. None: the whole file, which may be compressed.
    pub range: Option<Range<u64>>,
    /// Of the file when it was listed; what was appended since is not read.
    pub stored_bytes: u64,
    pub findings_out: PathBuf,
}

impl RangeRequest {
    /// # Errors
    /// The bytes of its range are no subtree of the file's hash.
    pub fn check(&self) -> std::result::Result<(), RangeError> {
        let Some(range) = self.range.clone() else { return Ok(()) };
        let length = range.end.saturating_sub(range.start);
        let is_inside = 0 < length && length < self.stored_bytes && range.end <= self.stored_bytes;
        let is_subtree = || {
            range.start % blake3::CHUNK_LEN as u64 == 0
                && self.stored_bytes > blake3::CHUNK_LEN as u64
                && (length.is_power_of_two() && length >= blake3::CHUNK_LEN as u64 || range.end == self.stored_bytes)
                && length <= max_subtree_len(range.start).unwrap_or_else(|| left_subtree_len(self.stored_bytes))
        };
        if is_inside && is_subtree() { Ok(()) } else { Err(RangeError { path: self.path.clone(), range }) }
    }
}

/// A range that cannot be put together with others.
#[derive(Debug, Error)]
#[error("{} cannot be read from {} to {}: that is no subtree of its hash", path.display(), range.start, range.end)]
pub struct RangeError {
    path: PathBuf,
    range: Range<u64>,
}

impl RangeError {
    pub fn hint(&self) -> &'static str {
        "this is a defect; please report it"
    }
}

/// What follows the pieces.
#[derive(Serialize, Deserialize)]
struct RangeEnd {
    container: Container,
    stored_bytes: u64,
    text_bytes: u64,
    /// Of a whole file the hash, of a range its part of it.
    hash: [u8; 32],
    damage: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum Record {
    /// Lines, and the size of the text of those for the decoder, which follows.
    Lines(PackedFindings, usize),
    /// The beginning of a line that is too long to be read, of this size, follows.
    TooLong(usize),
    End(RangeEnd),
}

/// Decodes the lines of a file that begin in a range; the hash of its bytes, which is the content that was read.
///
/// # Errors
/// The file cannot be read, the result cannot be written, or the reading was cancelled.
pub fn look_through_range(request: &RangeRequest, control: &Control) -> Result<blake3::Hash> {
    let mut out = Records::create(&request.findings_out)?;
    let (input, begins_line) = match request.range.clone() {
        Some(range) => Input::open_range(&request.path, control, range, request.stored_bytes)?,
        None => (Input::open(&request.path, control, true)?, true),
    };
    let end = request.range.as_ref().map_or(u64::MAX, |range| range.end);
    let mut pieces = Pieces::new(input);
    pieces.skipping = !begins_line;
    let mut buffer = pieces.buffer();
    let mut scout = Scout::default();
    let mut findings = Findings::default();
    loop {
        let text_piece = pieces.next(&mut buffer, control)?;
        // In the file, if that is plain; a compressed one is read to its end.
        let begin = pieces.input.position().saturating_sub(buffer.len() as u64);
        if text_piece.too_long {
            if begin < end {
                out.write(&Record::TooLong(buffer.len()), buffer.as_bytes())?;
            }
        } else {
            let text = &buffer.text();
            let lines = text_piece.lines(text).take_while(|(start, _)| begin + (*start as u64) < end);
            let count = scout.look(text, lines, &mut findings);
            control.lines.fetch_add(count, Ordering::Relaxed);
            let mut others = Vec::new();
            let packed = findings.pack(text, &mut others);
            out.write(&Record::Lines(packed, others.len()), &others)?;
        }
        if text_piece.is_last || begin + text_piece.until as u64 >= end {
            break;
        }
        buffer.consume(text_piece.until);
    }
    let end = ended(request, pieces)?;
    let hash = blake3::Hash::from_bytes(end.hash);
    out.write(&Record::End(end), &[])?;
    out.finish()?;
    Ok(hash)
}

fn ended(request: &RangeRequest, mut pieces: Pieces<'_>) -> Result<RangeEnd> {
    let container = pieces.input.container;
    let Some(Range { start, end }) = request.range else {
        let Finished { stored_bytes, blake3, damage } = pieces.input.finish()?;
        let hash = blake3::Hash::from_hex(blake3).expect("the hash of a whole file");
        return Ok(RangeEnd { container, stored_bytes, text_bytes: pieces.text_bytes, hash: hash.into(), damage });
    };
    // A mark of the byte order is no text.
    let mark_bytes = pieces.input.position() - start - pieces.text_bytes;
    let hash = pieces.input.finish_range()?;
    let stored_bytes = end - start;
    Ok(RangeEnd { container, stored_bytes, text_bytes: stored_bytes.saturating_sub(mark_bytes), hash, damage: None })
}

/// Records on their way to a file.
struct Records<'a> {
    path: &'a Path,
    out: zstd::Encoder<'static, BufWriter<File>>,
}

impl<'a> Records<'a> {
    fn create(path: &'a Path) -> Result<Self> {
        let encoder = |file| {
            let mut out = zstd::Encoder::new(BufWriter::new(file), 1)?;
            out.include_checksum(true)?;
            Ok(out)
        };
        let out = File::create(path).and_then(encoder);
        Ok(Self { path, out: out.map_err(|error| ReadError::storage(path, error))? })
    }

    fn write(&mut self, record: &Record, text: &[u8]) -> Result<()> {
        let record = postcard::to_allocvec(record).expect("records consist of numbers and texts");
        let parts = [&(record.len() as u32).to_le_bytes()[..], &record, text];
        parts.iter().try_for_each(|part| self.out.write_all(part)).map_err(|error| ReadError::storage(self.path, error))
    }

    fn finish(self) -> Result<()> {
        let path = self.path;
        let flushed = self.out.finish().and_then(|mut out| out.flush());
        flushed.map_err(|error| ReadError::storage(path, error))
    }
}

/// The lines of a file, as those who looked through its ranges found them.
pub(super) struct RangeLines<'a> {
    findings: &'a [PathBuf],
    ends: Vec<RangeEnd>,
}

impl<'a> RangeLines<'a> {
    pub(super) fn new(findings: &'a [PathBuf]) -> Self {
        Self { findings, ends: Vec::new() }
    }

    /// Reports every line until there is none, or `tell` stops.
    pub(super) fn each(
        &mut self,
        control: &Control,
        tell: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        for path in self.findings {
            let mut names = Vec::new();
            let mut records = RecordReader::open(path)?;
            loop {
                if control.is_cancelled() {
                    return Err(ReadError::Cancelled);
                }
                match records.next(&mut names)? {
                    Found::Piece(piece) => {
                        if piece.tell(&names, control, tell).is_break() {
                            return Ok(());
                        }
                    }
                    Found::End(end) => {
                        control.bytes.fetch_add(end.stored_bytes, Ordering::Relaxed);
                        break self.ends.push(end);
                    }
                }
            }
        }
        Ok(())
    }

    /// How the file was stored, the size of its text, and its hash.
    pub(super) fn finish(self) -> Result<(Container, u64, Finished)> {
        let Self { findings, ends } = self;
        let hashes: Vec<(u64, ChainingValue)> = ends.iter().map(|end| (end.stored_bytes, end.hash)).collect();
        let hash = root(&hashes).ok_or_else(|| damaged(findings.first(), "its ranges do not fit together"))?;
        let stored_bytes = ends.iter().map(|end| end.stored_bytes).sum();
        let text_bytes = ends.iter().map(|end| end.text_bytes).sum();
        let container = ends.first().map_or(Container::Plain, |end| end.container);
        let damage = ends.into_iter().find_map(|end| end.damage);
        Ok((container, text_bytes, Finished { stored_bytes, blake3: hash.to_hex().to_string(), damage }))
    }
}

/// The hash of a file from those of its ranges.
fn root(parts: &[(u64, ChainingValue)]) -> Option<blake3::Hash> {
    match parts {
        [(_, whole)] => Some(blake3::Hash::from_bytes(*whole)),
        _ => {
            let (left, right) = halves(parts)?;
            Some(merge_subtrees_root(&subtree(left)?, &subtree(right)?, Mode::Hash))
        }
    }
}

fn subtree(parts: &[(u64, ChainingValue)]) -> Option<ChainingValue> {
    match parts {
        [(_, part)] => Some(*part),
        _ => {
            let (left, right) = halves(parts)?;
            Some(merge_subtrees_non_root(&subtree(left)?, &subtree(right)?, Mode::Hash))
        }
    }
}

/// The parts of a tree's left and right subtree; None where one is in both.
#[expect(clippy::type_complexity, reason = "two slices of the same kind")]
fn halves(parts: &[(u64, ChainingValue)]) -> Option<(&[(u64, ChainingValue)], &[(u64, ChainingValue)])> {
    let sum = |parts: &[(u64, ChainingValue)]| parts.iter().map(|part| part.0).sum::<u64>();
    let total = sum(parts);
    let left_bytes = if total > blake3::CHUNK_LEN as u64 { left_subtree_len(total) } else { return None };
    (1..parts.len()).map(|place| parts.split_at(place)).find(|(left, _)| sum(left) == left_bytes)
}

enum Found {
    Piece(Carried),
    End(RangeEnd),
}

/// Records on their way from a file.
struct RecordReader<'a> {
    path: &'a PathBuf,
    source: zstd::Decoder<'static, BufReader<File>>,
}

impl<'a> RecordReader<'a> {
    fn open(path: &'a PathBuf) -> Result<Self> {
        let source = File::open(path).and_then(zstd::Decoder::new);
        Ok(Self { path, source: source.map_err(|error| ReadError::storage(path, error))? })
    }

    /// The next piece, as if it had been looked through here; `names` receives the new ones.
    fn next(&mut self, names: &mut Vec<Name>) -> Result<Found> {
        let mut size = [0; 4];
        self.source.read_exact(&mut size).map_err(|error| self.unreadable(&error))?;
        let record = self.bytes(u32::from_le_bytes(size) as usize)?;
        let record = postcard::from_bytes(&record).map_err(|error| self.unreadable(&error))?;
        let (findings, too_long, text) = match record {
            Record::Lines(packed, size) => {
                let unpacked = packed.unpack(names.len(), size);
                let findings = unpacked.ok_or_else(|| self.unreadable(&"its columns do not fit together"))?;
                (findings, false, self.bytes(size)?)
            }
            Record::TooLong(size) => (Findings::default(), true, self.bytes(size)?),
            Record::End(end) => {
                // The checksum of everything follows.
                let rest = io::copy(&mut self.source, &mut io::sink()).map_err(|error| self.unreadable(&error))?;
                return if rest == 0 { Ok(Found::End(end)) } else { Err(self.unreadable(&"it does not end")) };
            }
        };
        let mut buffer = TextBuffer::new(text.len());
        buffer.append(&text);
        buffer.index();
        let mut piece = Carried {
            text_piece: TextPiece { until: buffer.len(), is_last: false, skip_first: false, too_long },
            buffer,
            findings,
            is_looked_through: !too_long,
        };
        names.extend(piece.findings.take_names());
        Ok(Found::Piece(piece))
    }

    fn bytes(&mut self, size: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.source).take(size as u64).read_to_end(&mut bytes);
        match read {
            Ok(count) if count == size => Ok(bytes),
            Ok(_) => Err(self.unreadable(&io::Error::from(io::ErrorKind::UnexpectedEof))),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    fn unreadable(&self, reason: &dyn std::fmt::Display) -> ReadError {
        damaged(Some(self.path), &reason.to_string())
    }
}

fn damaged(path: Option<&PathBuf>, message: &str) -> ReadError {
    ReadError::Damaged { path: path.cloned().unwrap_or_default(), message: message.to_owned() }
}
