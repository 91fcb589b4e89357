//! The output of a host's log: one file, or several consecutive ones, plain or compressed.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use flate2::write::GzEncoder;

use crate::error::{Result, SimulationError};
use crate::logs::order::Compression;

/// Fast levels: logs are long.
const GZIP_LEVEL: u32 = 4;
const ZSTD_LEVEL: i32 = 3;

/// Buffers data until they are encoded, and encoded data until they are stored.
enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// None: nothing is to be encoded.
    fn new(compression: Compression) -> io::Result<Option<Self>> {
        Ok(match compression {
            Compression::None => None,
            Compression::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL)))),
            Compression::Zstd => Some(Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// What can be stored already.
    fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// The files of one host. No file stays open between writes, so that a thousand hosts need no thousand of them.
pub struct Sink {
    directory: PathBuf,
    compression: Compression,
    /// The current file, without the suffix of its compression.
    name: String,
    encoder: Option<Encoder>,
    /// The error of a rotation, returned by the next write.
    failed: Option<SimulationError>,
    /// Bytes in files.
    pub stored: u64,
}

impl Sink {
    /// Make the folder; the first file is called `stdout` unless it is rotated before anything is written.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(directory: PathBuf, compression: Compression) -> Result<Self> {
        std::fs::create_dir_all(&directory)
            .map_err(|source| SimulationError::Storage { path: directory.display().to_string(), source })?;
        let name = "stdout".to_owned();
        Ok(Self { directory, compression, name, encoder: None, failed: None, stored: 0 })
    }

    /// Append to the current file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.encode(bytes).map_err(|source| self.storage(source))
    }

    /// End the current file with these bytes; the next write begins another one.
    pub fn rotate(&mut self, last: &[u8], next: String) {
        let ended = if last.is_empty() { Ok(()) } else { self.write(last) };
        self.failed = ended.and_then(|()| self.finish()).err().or(self.failed.take());
        self.name = next;
    }

    /// End the current file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        encoder.finish().and_then(|rest| self.store(&rest)).map_err(|source| self.storage(source))
    }

    fn encode(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.encoder.is_none() {
            self.encoder = Encoder::new(self.compression)?;
        }
        let Some(encoder) = &mut self.encoder else { return self.store(bytes) };
        encoder.write(bytes)?;
        let ready = std::mem::take(encoder.ready());
        self.store(&ready)
    }

    fn store(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let path = self.directory.join(format!("{}{}", self.name, self.compression.suffix()));
        OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)?;
        self.stored += bytes.len() as u64;
        Ok(())
    }

    fn storage(&self, source: io::Error) -> SimulationError {
        let path = self.directory.join(&self.name);
        SimulationError::Storage { path: path.display().to_string(), source }
    }
}
