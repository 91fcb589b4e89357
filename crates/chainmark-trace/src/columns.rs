//! Tables as Parquet files, written in groups of rows, so that memory does not grow with them.
//!
//! A file is written beside its place and renamed when it is whole. The same rows give the same bytes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::error::{ReadError, Result};
use crate::event::Hash;

/// A text that many rows can share; a clone is cheap.
pub type Text = ByteArray;

const CREATED_BY: &str = "chainmark";
/// Rows that are written at a time.
const BATCH_ROWS: usize = 16 * 1024;
const HASH_BYTES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits, signed.
    Integer,
    /// 32 bits, signed.
    Small,
    /// A double.
    Number,
    Flag,
    /// UTF-8.
    Text,
    /// UTF-8, one of these; never absent.
    Name(&'static [&'static str]),
    /// 32 bytes.
    Hash,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
}

impl Field {
    pub fn required(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, required: true }
    }

    pub fn optional(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, required: false }
    }

    fn definition(&self) -> String {
        let repetition = if self.required { "required" } else { "optional" };
        let name = &self.name;
        match self.kind {
            Kind::Integer => format!("{repetition} int64 {name};"),
            Kind::Small => format!("{repetition} int32 {name};"),
            Kind::Number => format!("{repetition} double {name};"),
            Kind::Flag => format!("{repetition} boolean {name};"),
            Kind::Text | Kind::Name(_) => format!("{repetition} binary {name} (UTF8);"),
            Kind::Hash => format!("{repetition} fixed_len_byte_array({HASH_BYTES}) {name};"),
        }
    }
}

enum Values {
    Integers(Vec<i64>),
    Smalls(Vec<i32>),
    Numbers(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<Text>),
    /// The names, and which of them every row has: a byte for what would be thirty.
    Names(Vec<Text>, Vec<u8>),
    Hashes(Vec<u8>),
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integers(Vec::new()),
            Kind::Small => Self::Smalls(Vec::new()),
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Flag => Self::Flags(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
            Kind::Name(names) => {
                // Static ones, which are cloned without a count.
                let text = |name: &&'static str| Text::from(Bytes::from_static(name.as_bytes()));
                Self::Names(names.iter().map(text).collect(), Vec::new())
            }
            Kind::Hash => Self::Hashes(Vec::new()),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Integers(values) => values.clear(),
            Self::Smalls(values) => values.clear(),
            Self::Numbers(values) => values.clear(),
            Self::Flags(values) => values.clear(),
            Self::Texts(values) => values.clear(),
            Self::Names(_, rows) => rows.clear(),
            Self::Hashes(values) => values.clear(),
        }
    }
}

/// A column of the group that is being filled.
struct Column {
    required: bool,
    /// Of an optional one: the rows that have a value.
    rows: Vec<u32>,
    values: Values,
}

impl Column {
    /// Whether every row has a value, as Parquet wants to be told of an optional column.
    fn levels<'a>(&self, rows: usize, levels: &'a mut Vec<i16>) -> Option<&'a [i16]> {
        if self.required {
            return None;
        }
        levels.clear();
        levels.resize(rows, 0);
        for row in &self.rows {
            levels[*row as usize] = 1;
        }
        Some(levels)
    }
}

/// A table being written, row by row: values of one row in any order, each at most once, then `end_row`.
pub struct Table {
    path: PathBuf,
    part: PathBuf,
    file: Option<SerializedFileWriter<File>>,
    columns: Vec<Column>,
    rows: usize,
    group_rows: usize,
}

impl Table {
    /// Begin a table whose groups have `group_rows` rows.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, fields: &[Field], group_rows: usize) -> Result<Self> {
        let part = part_of(path);
        let broken = |error| broken(path, error);
        let definitions: Vec<String> = fields.iter().map(Field::definition).collect();
        let schema = parse_message_type(&format!("message table {{ {} }}", definitions.join(" "))).map_err(broken)?;
        let file = File::create(&part).map_err(|source| ReadError::storage(&part, source))?;
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties(fields))).map_err(broken)?;
        let column =
            |field: &Field| Column { required: field.required, rows: Vec::new(), values: Values::new(field.kind) };
        let columns = fields.iter().map(column).collect();
        Ok(Self { path: path.to_owned(), part, file: Some(file), columns, rows: 0, group_rows })
    }

    #[inline]
    fn at(&mut self, column: usize) -> &mut Values {
        let column = &mut self.columns[column];
        if !column.required {
            column.rows.push(self.rows as u32);
        }
        &mut column.values
    }

    #[inline]
    pub fn integer(&mut self, column: usize, value: i64) {
        match self.at(column) {
            Values::Integers(values) => values.push(value),
            _ => unreachable!("column {column} holds no integers"),
        }
    }

    #[inline]
    pub fn small(&mut self, column: usize, value: i32) {
        match self.at(column) {
            Values::Smalls(values) => values.push(value),
            _ => unreachable!("column {column} holds no small integers"),
        }
    }

    #[inline]
    pub fn number(&mut self, column: usize, value: f64) {
        match self.at(column) {
            Values::Numbers(values) => values.push(value),
            _ => unreachable!("column {column} holds no numbers"),
        }
    }

    #[inline]
    pub fn flag(&mut self, column: usize, value: bool) {
        match self.at(column) {
            Values::Flags(values) => values.push(value),
            _ => unreachable!("column {column} holds no flags"),
        }
    }

    #[inline]
    pub fn text(&mut self, column: usize, value: Text) {
        match self.at(column) {
            Values::Texts(values) => values.push(value),
            _ => unreachable!("column {column} holds no texts"),
        }
    }

    /// The name at this place among those of the column.
    #[inline]
    pub fn name(&mut self, column: usize, place: u8) {
        match self.at(column) {
            Values::Names(_, rows) => rows.push(place),
            _ => unreachable!("column {column} holds no names"),
        }
    }

    #[inline]
    pub fn hash(&mut self, column: usize, value: &Hash) {
        match self.at(column) {
            Values::Hashes(values) => values.extend_from_slice(&value.0),
            _ => unreachable!("column {column} holds no hashes"),
        }
    }

    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows < self.group_rows { Ok(()) } else { self.end_group() }
    }

    /// Write what is left and put the file in its place.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.end_group()?;
        if let Some(file) = self.file.take() {
            file.close().map_err(|error| broken(&self.path, error))?;
        }
        fs::rename(&self.part, &self.path).map_err(|source| ReadError::storage(&self.path, source))
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(file) = self.file.as_mut().filter(|_| self.rows > 0) else { return Ok(()) };
        write_group(file, &mut self.columns, self.rows).map_err(|error| broken(&self.path, error))?;
        self.rows = 0;
        Ok(())
    }
}

impl Drop for Table {
    /// A table that was not finished leaves nothing behind.
    fn drop(&mut self) {
        if self.file.take().is_some() || self.part.exists() {
            let _ = fs::remove_file(&self.part);
        }
    }
}

fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

fn broken(path: &Path, error: ParquetError) -> ReadError {
    let source = match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    ReadError::storage(path, source)
}

/// Integers as differences, texts and hashes by dictionary, all through a fast zstd.
fn properties(fields: &[Field]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false)
        .set_write_batch_size(BATCH_ROWS)
        .set_created_by(CREATED_BY.to_owned());
    for field in fields {
        let path = ColumnPath::from(field.name.as_str());
        properties = match field.kind {
            Kind::Integer | Kind::Small => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Kind::Text => properties.set_column_dictionary_enabled(path, true),
            // The least and the greatest of hashes, or of a few names, rule out nothing, and take a comparison a row.
            Kind::Name(_) | Kind::Hash => properties
                .set_column_dictionary_enabled(path.clone(), true)
                .set_column_statistics_enabled(path, EnabledStatistics::None),
            Kind::Number | Kind::Flag => properties,
        };
    }
    properties.build()
}

fn write_group(
    file: &mut SerializedFileWriter<File>,
    columns: &mut [Column],
    rows: usize,
) -> std::result::Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let mut levels = Vec::new();
    let mut columns = columns.iter_mut();
    while let (Some(mut writer), Some(column)) = (group.next_column()?, columns.next()) {
        let levels = column.levels(rows, &mut levels);
        match &mut column.values {
            Values::Integers(values) => writer.typed::<Int64Type>().write_batch(values, levels, None)?,
            Values::Smalls(values) => writer.typed::<Int32Type>().write_batch(values, levels, None)?,
            Values::Numbers(values) => writer.typed::<DoubleType>().write_batch(values, levels, None)?,
            Values::Flags(values) => writer.typed::<BoolType>().write_batch(values, levels, None)?,
            Values::Texts(values) => writer.typed::<ByteArrayType>().write_batch(values, levels, None)?,
            Values::Names(names, rows) => {
                let mut values = Vec::with_capacity(BATCH_ROWS.min(rows.len()));
                for rows in rows.chunks(BATCH_ROWS) {
                    values.clear();
                    values.extend(rows.iter().map(|&place| names[usize::from(place)].clone()));
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                rows.len()
            }
            Values::Hashes(bytes) => {
                let values = shared_hashes(bytes);
                writer.typed::<FixedLenByteArrayType>().write_batch(&values, levels, None)?
            }
        };
        writer.close()?;
        column.values.clear();
        column.rows.clear();
    }
    group.close()?;
    Ok(())
}

/// The hashes as slices of one allocation.
fn shared_hashes(bytes: &mut Vec<u8>) -> Vec<FixedLenByteArray> {
    let count = bytes.len() / HASH_BYTES;
    let all = ByteArray::from(std::mem::take(bytes));
    (0..count).map(|place| all.slice(place * HASH_BYTES, HASH_BYTES).into()).collect()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    fn fields() -> Vec<Field> {
        vec![
            Field::required("at_ns", Kind::Integer),
            Field::optional("file", Kind::Small),
            Field::optional("density", Kind::Number),
            Field::optional("told", Kind::Flag),
            Field::optional("peer", Kind::Text),
            Field::optional("block", Kind::Hash),
            Field::required("message", Kind::Name(&["forged", "sent"])),
        ]
    }

    fn write(path: &Path, rows: i64) {
        let mut table = Table::create(path, &fields(), 7).unwrap();
        for row in 0..rows {
            table.integer(0, row * 1000 - 5000);
            table.name(6, (row % 2) as u8);
            if row % 3 == 1 {
                table.hash(5, &Hash([row as u8; 32]));
                table.text(4, Text::from(if row % 2 == 0 { "even" } else { "odd" }));
            }
            if row % 4 == 2 {
                table.small(1, -(row as i32));
                table.number(2, row as f64 / 3.0);
                table.flag(3, row % 8 == 2);
            }
            table.end_row().unwrap();
        }
        table.finish().unwrap();
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("chainmark-columns-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn every_value_comes_back_from_its_row_and_absent_ones_are_null() {
        let folder = folder("values");
        let path = folder.join("table.parquet");
        write(&path, 40);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 6);
        for (row, record) in reader.get_row_iter(None).unwrap().enumerate() {
            let record = record.unwrap();
            assert_eq!(record.get_long(0).unwrap(), row as i64 * 1000 - 5000);
            let sparse = row % 4 == 2;
            assert_eq!(record.get_int(1).ok(), sparse.then_some(-(row as i32)));
            assert_eq!(record.get_double(2).ok(), sparse.then_some(row as f64 / 3.0));
            assert_eq!(record.get_bool(3).ok(), sparse.then_some(row % 8 == 2));
            let named = row % 3 == 1;
            let peer = if row % 2 == 0 { "even" } else { "odd" };
            assert_eq!(record.get_string(4).ok().map(String::as_str), named.then_some(peer));
            assert_eq!(record.get_string(6).unwrap(), if row % 2 == 0 { "forged" } else { "sent" });
            assert_eq!(record.get_bytes(5).ok().map(|hash| hash.data()), named.then_some(&[row as u8; 32][..]));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_same_rows_give_the_same_bytes() {
        let folder = folder("bytes");
        write(&folder.join("one"), 30);
        write(&folder.join("two"), 30);
        assert_eq!(fs::read(folder.join("one")).unwrap(), fs::read(folder.join("two")).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_table_left_unfinished_leaves_no_file() {
        let folder = folder("unfinished");
        let mut table = Table::create(&folder.join("table.parquet"), &fields(), 2).unwrap();
        for row in 0..5 {
            table.integer(0, row);
            table.name(6, 0);
            table.end_row().unwrap();
        }
        assert!(folder.join("table.parquet.part").exists());
        drop(table);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn a_table_without_rows_can_be_read() {
        let folder = folder("empty");
        write(&folder.join("table.parquet"), 0);
        let reader = SerializedFileReader::new(File::open(folder.join("table.parquet")).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(reader.metadata().file_metadata().schema_descr().num_columns(), 7);
        fs::remove_dir_all(folder).unwrap();
    }
}
