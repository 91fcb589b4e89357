//! The values of a column as the pages of a Parquet file, one data page per group of rows.
//!
//! The library's column writer uses a level for every row of an optional column, a separate compressor for every column
//! of every group, and a pass for each count: for mostly empty columns, as in tables of events, that was most of the
//! writing time. Here the rows with a value are bits, and there is one compressor.

use std::hash::Hash;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rustc_hash::FxHashMap;
use zstd::bulk::Compressor;

type Result<T> = std::result::Result<T, ParquetError>;

/// Differences that share their least one, and those of them that share a width.
const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;

/// The data page's content, and its header.
#[derive(Debug, Clone, PartialEq)]
pub struct Coded {
    pub encoding: Encoding,
    pub dictionary: Option<Dictionary>,
    pub statistics: Option<Statistics>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Dictionary {
    page: Vec<u8>,
    values: u32,
}

impl Coded {
    pub fn new(encoding: Encoding, statistics: Option<Statistics>) -> Self {
        Self { encoding, dictionary: None, statistics }
    }
}

/// Makes pages.
pub struct Pages {
    compressor: Compressor<'static>,
    /// The current data page.
    pub page: Vec<u8>,
}

impl Pages {
    /// # Errors
    /// There is no memory for a compressor.
    pub fn new() -> std::io::Result<Self> {
        let compressor = Compressor::new(ZstdLevel::default().compression_level())?;
        Ok(Self { compressor, page: Vec::new() })
    }

    /// The chunk of a column whose data page is finished.
    ///
    /// # Errors
    /// A page is longer than Parquet allows.
    pub fn chunk(&mut self, column: ColumnDescPtr, rows: usize, coded: Coded) -> Result<(Bytes, ColumnCloseResult)> {
        let Coded { encoding, dictionary, statistics } = coded;
        let mut sink = TrackedWrite::new(Vec::new());
        let mut writer = SerializedPageWriter::new(&mut sink);
        let mut encodings = vec![Encoding::RLE, encoding];
        let (mut stored, mut uncompressed, mut begin) = (0, 0, None);
        if let Some(Dictionary { page, values }) = dictionary {
            encodings.push(Encoding::PLAIN);
            let buf = self.compressor.compress(&page)?.into();
            let dictionary =
                Page::DictionaryPage { buf, num_values: values, encoding: Encoding::PLAIN, is_sorted: false };
            let written = writer.write_page(CompressedPage::new(dictionary, page.len()))?;
            (stored, uncompressed, begin) = (written.compressed_size, written.uncompressed_size, Some(0));
        }
        let data = Page::DataPage {
            buf: self.compressor.compress(&self.page)?.into(),
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let written = writer.write_page(CompressedPage::new(data, self.page.len()))?;
        self.page.clear();
        let data_offset = stored as i64;
        stored += written.compressed_size;
        uncompressed += written.uncompressed_size;
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_encodings(encodings)
            .set_num_values(rows as i64)
            .set_total_compressed_size(stored as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(begin);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: stored as u64,
            rows_written: rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((sink.into_inner()?.into(), close))
    }
}

/// Which of the rows of an optional column have a value: a bit for each, the first one lowest.
pub fn levels(present: &[u64], values: usize, rows: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    if values == 0 || values == rows {
        varint((rows as u64) << 1, out);
        out.push(u8::from(values > 0));
    } else {
        let bytes = rows.div_ceil(8);
        varint((bytes as u64) << 1 | 1, out);
        let until = out.len() + bytes;
        present.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.resize(until, 0);
    }
    let length = (out.len() - begin - 4) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// Integers as differences, packed. Those of 32 bits wrap around as such.
pub fn differences(values: &[i64], wrap: impl Fn(i64) -> i64, out: &mut Vec<u8>) {
    let Some((&first, rest)) = values.split_first() else { return };
    for figure in [BLOCK, BLOCK / MINIBLOCK, values.len()] {
        varint(figure as u64, out);
    }
    varint(zigzag(first), out);
    let mut before = first;
    for block in rest.chunks(BLOCK) {
        let mut steps = [0; BLOCK];
        let steps = &mut steps[..block.len()];
        for (step, &value) in steps.iter_mut().zip(block) {
            *step = wrap(value.wrapping_sub(before));
            before = value;
        }
        let least = steps.iter().copied().min().unwrap_or(0);
        varint(zigzag(least), out);
        let mut above = [0; BLOCK];
        above.iter_mut().zip(steps).for_each(|(above, step)| *above = step.wrapping_sub(least) as u64);
        let width = |part: &[u64]| u64::BITS - part.iter().fold(0, |all, one| all | one).leading_zeros();
        out.extend(above.chunks(MINIBLOCK).map(|part| width(part) as u8));
        for part in above.as_chunks().0 {
            pack_miniblock(part, width(part), out);
        }
    }
}

pub fn numbers(values: &[f64], out: &mut Vec<u8>) {
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

pub fn flags(values: &[bool], out: &mut Vec<u8>) {
    pack(values.iter().map(|&value| u64::from(value)), 1, out);
}

/// The values by their places among the different ones.
pub fn by_dictionary<T: Copy + Eq + Hash>(
    values: impl Iterator<Item = T>,
    write: impl Fn(T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) -> Coded {
    let (mut places, mut page) = (FxHashMap::default(), Vec::new());
    let rows: Vec<u64> = values
        .map(|value| {
            let next = places.len() as u64;
            *places.entry(value).or_insert_with(|| {
                write(value, &mut page);
                next
            })
        })
        .collect();
    if rows.is_empty() {
        return Coded::new(Encoding::PLAIN, None);
    }
    of_places(rows.into_iter(), Dictionary { page, values: places.len() as u32 }, out)
}

/// The names, and which of them every row has.
pub fn by_name(names: &[&str], rows: &[u8], out: &mut Vec<u8>) -> Coded {
    let mut page = Vec::new();
    names.iter().for_each(|name| text(name.as_bytes(), &mut page));
    of_places(rows.iter().map(|&place| u64::from(place)), Dictionary { page, values: names.len() as u32 }, out)
}

/// A text as in a dictionary.
pub fn text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

fn of_places(places: impl ExactSizeIterator<Item = u64>, dictionary: Dictionary, out: &mut Vec<u8>) -> Coded {
    let width = (u32::BITS - (dictionary.values - 1).leading_zeros()).max(1);
    out.push(width as u8);
    let bytes = places.len().div_ceil(8);
    varint((bytes as u64) << 1 | 1, out);
    let until = out.len() + bytes * width as usize;
    pack(places, width, out);
    // Rows are packed by eight.
    out.resize(until, 0);
    Coded { encoding: Encoding::RLE_DICTIONARY, dictionary: Some(dictionary), statistics: None }
}

/// The same as `pack`, for a known number of values: words are assembled outside the page.
fn pack_miniblock(values: &[u64; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut packed = [0; MINIBLOCK * 8];
    let (mut word, mut filled) = (0, 0);
    let mut rest = packed.as_chunks_mut().0.iter_mut();
    for &value in values {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            let Some(place) = rest.next() else { break };
            *place = word.to_le_bytes();
            filled -= u64::BITS;
            word = if filled == 0 { 0 } else { value >> (width - filled) };
        }
    }
    if let Some(place) = rest.next() {
        *place = word.to_le_bytes();
    }
    out.extend_from_slice(&packed[..MINIBLOCK / 8 * width as usize]);
}

/// Numbers of `width` bits each, the first one lowest, to whole bytes.
fn pack(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0, 0);
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            word = if filled == 0 { 0 } else { value >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
