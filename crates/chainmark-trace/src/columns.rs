//! Tables as Parquet files, written in groups of rows, so that memory does not grow with them.
//!
//! A file is written under a temporary name and renamed when it is complete. The same rows give the same bytes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::error::{ReadError, Result};
use crate::event::Hash;
use crate::pages::{self, Coded, Pages};

/// A text that many rows can share; a clone is cheap.
pub type Text = ByteArray;

const CREATED_BY: &str = "chainmark";
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
    Smalls(Vec<i64>),
    Numbers(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<Text>),
    /// The names, and which of them every row has: a byte for what would be thirty.
    Names(&'static [&'static str], Vec<u8>),
    Hashes(Vec<[u8; HASH_BYTES]>),
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integers(Vec::new()),
            Kind::Small => Self::Smalls(Vec::new()),
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Flag => Self::Flags(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
            Kind::Name(names) => Self::Names(names, Vec::new()),
            Kind::Hash => Self::Hashes(Vec::new()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Integers(values) | Self::Smalls(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Flags(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::Names(_, rows) => rows.len(),
            Self::Hashes(values) => values.len(),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Integers(values) | Self::Smalls(values) => values.clear(),
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
    /// Of an optional one: a bit for every row, set for those that have a value.
    present: Vec<u64>,
    values: Values,
}

impl Column {
    /// Appends the column to the current page.
    fn code(&self, rows: usize, page: &mut Vec<u8>) -> Coded {
        if !self.required {
            pages::levels(&self.present, self.values.len(), rows, page);
        }
        let nulls = Some((rows - self.values.len()) as u64);
        if self.values.len() == 0 {
            return Coded::new(Encoding::PLAIN, None);
        }
        match &self.values {
            Values::Integers(values) => {
                pages::differences(values, |step| step, page);
                let (least, greatest) = (values.iter().min().copied(), values.iter().max().copied());
                let statistics = Statistics::int64(least, greatest, None, nulls, false);
                Coded::new(Encoding::DELTA_BINARY_PACKED, Some(statistics))
            }
            Values::Smalls(values) => {
                pages::differences(values, |step| i64::from(step as i32), page);
                let small = |value: Option<&i64>| value.map(|&value| value as i32);
                let (least, greatest) = (small(values.iter().min()), small(values.iter().max()));
                let statistics = Statistics::int32(least, greatest, None, nulls, false);
                Coded::new(Encoding::DELTA_BINARY_PACKED, Some(statistics))
            }
            Values::Numbers(values) => {
                pages::numbers(values, page);
                Coded::new(Encoding::PLAIN, None)
            }
            Values::Flags(values) => {
                pages::flags(values, page);
                Coded::new(Encoding::PLAIN, None)
            }
            Values::Texts(values) => pages::by_dictionary(values.iter().map(|text| text.data()), pages::text, page),
            Values::Names(names, rows) => pages::by_name(names, rows, page),
            Values::Hashes(values) => {
                pages::by_dictionary(values.iter(), |hash, page| page.extend_from_slice(hash), page)
            }
        }
    }

    fn clear(&mut self) {
        self.present.clear();
        self.values.clear();
    }
}

/// A table being written, row by row: values of one row in any order, each at most once, then `end_row`.
pub struct Table {
    path: PathBuf,
    part: PathBuf,
    file: Option<SerializedFileWriter<File>>,
    columns: Vec<Column>,
    pages: Pages,
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
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties())).map_err(broken)?;
        let column =
            |field: &Field| Column { required: field.required, present: Vec::new(), values: Values::new(field.kind) };
        let columns = fields.iter().map(column).collect();
        let pages = Pages::new().map_err(|source| ReadError::storage(&part, source))?;
        Ok(Self { path: path.to_owned(), part, file: Some(file), columns, pages, rows: 0, group_rows })
    }

    #[inline(always)]
    fn at(&mut self, column: usize) -> &mut Values {
        let Column { required, present, values } = &mut self.columns[column];
        if !*required {
            let (word, bit) = (self.rows / 64, 1 << (self.rows % 64));
            match present.get_mut(word) {
                Some(word) => *word |= bit,
                None => extend(present, word, bit),
            }
        }
        values
    }

    #[inline(always)]
    pub fn integer(&mut self, column: usize, value: i64) {
        match self.at(column) {
            Values::Integers(values) => values.push(value),
            _ => holds_no("integers", column),
        }
    }

    #[inline(always)]
    pub fn small(&mut self, column: usize, value: i32) {
        match self.at(column) {
            Values::Smalls(values) => values.push(i64::from(value)),
            _ => holds_no("small integers", column),
        }
    }

    #[inline(always)]
    pub fn number(&mut self, column: usize, value: f64) {
        match self.at(column) {
            Values::Numbers(values) => values.push(value),
            _ => holds_no("numbers", column),
        }
    }

    #[inline(always)]
    pub fn flag(&mut self, column: usize, value: bool) {
        match self.at(column) {
            Values::Flags(values) => values.push(value),
            _ => holds_no("flags", column),
        }
    }

    #[inline]
    pub fn text(&mut self, column: usize, value: Text) {
        match self.at(column) {
            Values::Texts(values) => values.push(value),
            _ => holds_no("texts", column),
        }
    }

    /// The name at this place among those of the column.
    #[inline(always)]
    pub fn name(&mut self, column: usize, place: u8) {
        match self.at(column) {
            Values::Names(_, rows) => rows.push(place),
            _ => holds_no("names", column),
        }
    }

    #[inline(always)]
    pub fn hash(&mut self, column: usize, value: &Hash) {
        match self.at(column) {
            Values::Hashes(values) => values.push(value.0),
            _ => holds_no("hashes", column),
        }
    }

    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows < self.group_rows { Ok(()) } else { self.end_group() }
    }

    /// Write the rest and rename the file to its final name.
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
        write_group(file, &mut self.columns, &mut self.pages, self.rows).map_err(|error| broken(&self.path, error))?;
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

/// Rows without a value until the word that has one.
#[cold]
fn extend(present: &mut Vec<u64>, word: usize, bits: u64) {
    present.resize(word, 0);
    present.push(bits);
}

#[cold]
fn holds_no(what: &str, column: usize) -> ! {
    unreachable!("column {column} holds no {what}")
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

/// Without the places of pages: a column has one in every group.
fn properties() -> WriterProperties {
    WriterProperties::builder().set_offset_index_disabled(true).set_created_by(CREATED_BY.to_owned()).build()
}

fn write_group(
    file: &mut SerializedFileWriter<File>,
    columns: &mut [Column],
    pages: &mut Pages,
    rows: usize,
) -> std::result::Result<(), ParquetError> {
    let schema = file.schema_descr().clone();
    let mut group = file.next_row_group()?;
    for (place, column) in columns.iter_mut().enumerate() {
        let coded = column.code(rows, &mut pages.page);
        column.clear();
        let (chunk, close) = pages.chunk(schema.column(place), rows, coded)?;
        group.append_column(&chunk, close)?;
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use proptest::option::of as present;
    use proptest::prelude::*;

    use super::*;

    fn fields() -> Vec<Field> {
        vec![
            Field::required("at_ns", Kind::Integer),
            Field::optional("file", Kind::Small),
            Field::optional("density", Kind::Number),
            Field::optional("reported", Kind::Flag),
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
    fn every_value_is_read_back_from_its_row_and_absent_ones_are_null() {
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

    /// A row of the optional columns.
    type Row = (Option<i64>, Option<i32>, Option<f64>, Option<bool>, Option<String>, Option<[u8; 4]>, u8);

    fn row() -> impl Strategy<Value = Row> {
        let integer = prop_oneof![-3_i64..3, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
        let small = prop_oneof![-3_i32..3, any::<i32>(), Just(i32::MIN), Just(i32::MAX)];
        (
            present(integer),
            present(small),
            present(any::<f64>().prop_filter("a number", |number| !number.is_nan())),
            present(any::<bool>()),
            present("[a-c]{0,2}|.{0,40}"),
            present(prop::array::uniform4(0_u8..3)),
            0_u8..2,
        )
    }

    fn whole(hash: [u8; 4]) -> Hash {
        Hash(std::array::from_fn(|place| hash[place % 4]))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn any_values_are_read_back_unchanged(
            rows in prop::collection::vec(row(), 0..700),
            columns in 0_u8..64,
            group_rows in 1_usize..400,
        ) {
            let folder = folder("any");
            let path = folder.join("table.parquet");
            // Columns without any value, too.
            let rows: Vec<Row> = rows
                .into_iter()
                .map(|(one, two, three, four, five, six, name)| {
                    let reported = |column: u8| columns & (1 << column) != 0;
                    (
                        one.filter(|_| reported(0)),
                        two.filter(|_| reported(1)),
                        three.filter(|_| reported(2)),
                        four.filter(|_| reported(3)),
                        five.filter(|_| reported(4)),
                        six.filter(|_| reported(5)),
                        name,
                    )
                })
                .collect();
            let fields = [
                Field::optional("integer", Kind::Integer),
                Field::optional("small", Kind::Small),
                Field::optional("number", Kind::Number),
                Field::optional("flag", Kind::Flag),
                Field::optional("text", Kind::Text),
                Field::optional("hash", Kind::Hash),
                Field::required("name", Kind::Name(&["forged", "sent"])),
            ];
            let mut table = Table::create(&path, &fields, group_rows).unwrap();
            for (integer, small, number, flag, text, hash, name) in &rows {
                integer.iter().for_each(|&value| table.integer(0, value));
                small.iter().for_each(|&value| table.small(1, value));
                number.iter().for_each(|&value| table.number(2, value));
                flag.iter().for_each(|&value| table.flag(3, value));
                text.iter().for_each(|value| table.text(4, Text::from(value.as_str())));
                hash.iter().for_each(|&value| table.hash(5, &whole(value)));
                table.name(6, *name);
                table.end_row().unwrap();
            }
            table.finish().unwrap();
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            prop_assert_eq!(reader.metadata().num_row_groups(), rows.len().div_ceil(group_rows));
            let mut read = reader.get_row_iter(None).unwrap();
            for (integer, small, number, flag, text, hash, name) in &rows {
                let record = read.next().unwrap().unwrap();
                prop_assert_eq!(record.get_long(0).ok(), *integer);
                prop_assert_eq!(record.get_int(1).ok(), *small);
                prop_assert_eq!(record.get_double(2).ok(), *number);
                prop_assert_eq!(record.get_bool(3).ok(), *flag);
                prop_assert_eq!(record.get_string(4).ok(), text.as_ref());
                let hash = hash.map(|hash| whole(hash).0.to_vec());
                prop_assert_eq!(record.get_bytes(5).ok().map(|hash| hash.data().to_vec()), hash);
                prop_assert_eq!(record.get_string(6).unwrap(), ["forged", "sent"][usize::from(*name)]);
            }
            prop_assert!(read.next().is_none());
            for (group, rows) in rows.chunks(group_rows).enumerate() {
                let integers: Vec<i64> = rows.iter().filter_map(|row| row.0).collect();
                let column = reader.metadata().row_group(group).column(0);
                let reported = column.statistics().and_then(|all| Some((all.min_bytes_opt()?, all.max_bytes_opt()?)));
                let reported = reported.map(|(least, greatest)| {
                    [least, greatest].map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()))
                });
                let expected = integers.iter().min().zip(integers.iter().max()).map(|(&one, &other)| [one, other]);
                prop_assert_eq!(reported, expected);
            }
            fs::remove_dir_all(folder).unwrap();
        }
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
    fn an_unfinished_table_leaves_no_file() {
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
