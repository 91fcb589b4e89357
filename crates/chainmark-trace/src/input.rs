//! Stored files as text: recognised by their first bytes, hashed while they are read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use blake3::hazmat::HasherExt as _;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::accounting::Container;
use crate::control::Control;
use crate::error::{ReadError, Result};

/// Compressed bytes that are read at once.
const COMPRESSED: usize = 128 << 10;
/// Amount of text that is decompressed at once. It is lost when damage is met, so it is small; a block of zstd is a
/// multiple of it.
const DECOMPRESSED: usize = 32 << 10;

/// Maximum memory of an xz file: that of zstd's widest window.
const XZ_MEMORY: u64 = 2 << 30;

/// How files of xz begin.
const XZ: &[u8] = b"\xfd7zX";

/// How some editors and shells begin a text; it belongs to no line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes of a file as they are stored.
struct Stored<'a> {
    file: io::Take<File>,
    /// Of the bytes in `counted`.
    hasher: Option<blake3::Hasher>,
    counted: Range<u64>,
    /// In the file, of the next byte.
    position: u64,
    control: &'a Control,
    /// The storage's own failure, which decompressors pass on as if it were theirs.
    failure: Option<io::Error>,
}

impl Read for Stored<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            match self.file.read(buffer) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let passed_on = io::Error::from(error.kind());
                    self.failure = Some(error);
                    return Err(passed_on);
                }
            }
        };
        if let Some(hasher) = &mut self.hasher {
            let counted = &buffer[..self.counted.end.saturating_sub(self.position).min(count as u64) as usize];
            hasher.update(counted);
            self.control.bytes.fetch_add(counted.len() as u64, Ordering::Relaxed);
        }
        self.position += count as u64;
        Ok(count)
    }
}

enum Source<'a> {
    Plain(Box<Stored<'a>>),
    Gzip(Box<MultiGzDecoder<BufReader<Chained<'a>>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Chained<'a>>>>),
    Xz(Box<XzDecoder<BufReader<Chained<'a>>>>),
}

/// The first bytes, which were read to recognise the file, and the rest.
struct Chained<'a> {
    head: Vec<u8>,
    stored: Stored<'a>,
}

impl Read for Chained<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head.is_empty() {
            return self.stored.read(buffer);
        }
        let count = self.head.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.head[..count]);
        self.head.drain(..count);
        Ok(count)
    }
}

/// Facts about a file at its end.
pub struct Finished {
    pub stored_bytes: u64,
    /// In hex; empty when the file was not hashed.
    pub blake3: String,
    pub damage: Option<String>,
}

/// The text of one file.
pub struct Input<'a> {
    path: PathBuf,
    source: Source<'a>,
    /// The first bytes of a plain file, not read yet.
    head: Vec<u8>,
    /// Whether any text was read.
    begun: bool,
    damage: Option<String>,
    pub container: Container,
}

impl<'a> Input<'a> {
    /// Opens a file. `whole` files are read to their end and hashed, and their bytes reported to `control`.
    pub fn open(path: &Path, control: &'a Control, whole: bool) -> Result<Self> {
        let failed = |error| ReadError::storage(path, error);
        let file = File::open(path).map_err(failed)?.take(u64::MAX);
        let hasher = whole.then(blake3::Hasher::new);
        let mut stored = Stored { file, hasher, counted: 0..u64::MAX, position: 0, control, failure: None };
        let mut head = Vec::new();
        while head.len() < 4 {
            let mut bytes = [0; 4];
            let wanted = 4 - head.len();
            let count = stored.read(&mut bytes[..wanted]);
            let count = count.map_err(|error| failed(stored.failure.take().unwrap_or(error)))?;
            if count == 0 {
                break;
            }
            head.extend_from_slice(&bytes[..count]);
        }
        let mut plain_head = Vec::new();
        let (source, container) = if head.starts_with(&[0x1f, 0x8b]) {
            let stored = BufReader::with_capacity(COMPRESSED, Chained { head, stored });
            (Source::Gzip(Box::new(MultiGzDecoder::new(stored))), Container::Gzip)
        } else if is_zstd(&head) {
            let stored = BufReader::with_capacity(COMPRESSED, Chained { head, stored });
            let mut decoder = zstd::Decoder::with_buffer(stored).map_err(failed)?;
            // Files of `zstd --long` need more than the usual window.
            decoder.window_log_max(31).map_err(failed)?;
            (Source::Zstd(Box::new(decoder)), Container::Zstd)
        } else if head.starts_with(XZ) {
            let stored = BufReader::with_capacity(COMPRESSED, Chained { head, stored });
            let decoder = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED).map_err(|error| failed(error.into()))?;
            (Source::Xz(Box::new(XzDecoder::new_stream(stored, decoder))), Container::Xz)
        } else {
            plain_head = head;
            (Source::Plain(Box::new(stored)), Container::Plain)
        };
        Ok(Self { path: path.to_owned(), source, head: plain_head, begun: false, damage: None, container })
    }

    /// Opens a plain file of this size at a range, whose bytes are hashed as a part of the file's; also whether a line
    /// begins there.
    pub fn open_range(path: &Path, control: &'a Control, range: Range<u64>, size: u64) -> Result<(Self, bool)> {
        let failed = |error| ReadError::storage(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let mut before = [b'\n'];
        if range.start > 0 {
            file.seek(SeekFrom::Start(range.start - 1)).map_err(failed)?;
            file.read_exact(&mut before).map_err(failed)?;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(range.start);
        let stored = Stored {
            file: file.take(size - range.start),
            hasher: Some(hasher),
            position: range.start,
            counted: range.clone(),
            control,
            failure: None,
        };
        let input = Self {
            path: path.to_owned(),
            source: Source::Plain(Box::new(stored)),
            head: Vec::new(),
            begun: range.start > 0,
            damage: None,
            container: Container::Plain,
        };
        Ok((input, before == *b"\n"))
    }

    /// In a plain file, of the next byte of text.
    pub fn position(&mut self) -> u64 {
        let unread = self.head.len() as u64;
        self.stored().position - unread
    }

    /// Fills `buffer` as far as there is text; it is only partly filled at the end.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let filled = self.fill_any(buffer)?;
        if std::mem::replace(&mut self.begun, true) || !buffer[..filled].starts_with(BYTE_ORDER_MARK) {
            return Ok(filled);
        }
        buffer.copy_within(BYTE_ORDER_MARK.len()..filled, 0);
        let filled = filled - BYTE_ORDER_MARK.len();
        Ok(filled + self.fill_any(&mut buffer[filled..])?)
    }

    fn fill_any(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = self.head.len().min(buffer.len());
        buffer[..filled].copy_from_slice(&self.head[..filled]);
        self.head.drain(..filled);
        while filled < buffer.len() && self.damage.is_none() {
            let rest = &mut buffer[filled..];
            let little = rest.len().min(DECOMPRESSED);
            let read = match &mut self.source {
                Source::Plain(stored) => stored.read(rest),
                Source::Gzip(decoder) => decoder.read(&mut rest[..little]),
                Source::Zstd(decoder) => decoder.read(&mut rest[..little]),
                Source::Xz(decoder) => {
                    let before = decoder.total_out();
                    let read = decoder.read(&mut rest[..little]);
                    // It reports damage at once, although it decoded the text before it.
                    filled += if read.is_err() { (decoder.total_out() - before) as usize } else { 0 };
                    read
                }
            };
            match read {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => match self.stored().failure.take() {
                    Some(failure) => return Err(ReadError::storage(&self.path, failure)),
                    None => self.damage = Some(error.to_string()),
                },
            }
        }
        Ok(filled)
    }

    /// Bytes to the next multiple of `block` in a plain file, which is hashed while it is read: whole blocks at aligned
    /// positions are whole trees of BLAKE3, others leave pieces at both ends that take longer.
    pub fn to_next(&self, block: usize) -> usize {
        match &self.source {
            Source::Plain(stored) => block - (stored.position as usize - self.head.len()) % block,
            _ => block,
        }
    }

    fn stored(&mut self) -> &mut Stored<'a> {
        match &mut self.source {
            Source::Plain(stored) => stored,
            Source::Gzip(decoder) => &mut decoder.get_mut().get_mut().stored,
            Source::Zstd(decoder) => &mut decoder.get_mut().get_mut().stored,
            Source::Xz(decoder) => &mut decoder.get_mut().get_mut().stored,
        }
    }

    /// Ends the reading. Bytes behind damage, or behind the compressed text, belong to the hash too.
    pub fn finish(mut self) -> Result<Finished> {
        let path = self.path.clone();
        let damage = self.damage.take();
        let stored = self.stored();
        if stored.hasher.is_some() {
            let mut buffer = vec![0; COMPRESSED];
            loop {
                match stored.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => return Err(ReadError::storage(&path, stored.failure.take().unwrap_or(error))),
                }
            }
        }
        let blake3 = stored.hasher.take().map(|hasher| hasher.finalize().to_hex().to_string());
        Ok(Finished { stored_bytes: stored.position, blake3: blake3.unwrap_or_default(), damage })
    }

    /// Ends the reading of a range; the hash of its bytes as a subtree of the file's.
    pub fn finish_range(mut self) -> Result<[u8; 32]> {
        let path = self.path.clone();
        let stored = self.stored();
        let is_complete = stored.position >= stored.counted.end;
        let hasher = stored.hasher.take().filter(|_| is_complete).ok_or_else(|| {
            let shorter = io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read");
            ReadError::storage(&path, shorter)
        })?;
        Ok(hasher.finalize_non_root())
    }
}

/// A frame of zstd, or one that it skips.
fn is_zstd(head: &[u8]) -> bool {
    head == [0x28, 0xb5, 0x2f, 0xfd] || (head.len() == 4 && head[0] & 0xf0 == 0x50 && head[1..] == [0x2a, 0x4d, 0x18])
}
