//! What the tests of the folds share: tables read back.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use chainmark_trace::event::Hash;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

pub type Row = BTreeMap<String, Value>;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Number(f64),
    Flag(bool),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Null, Self::Number)
    }
}

pub fn hash(number: u8) -> Hash {
    Hash([number; 32])
}

/// A path that no other test has; `read` removes the file.
pub fn fresh_path() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("chainmark-folds-{}-{number}.parquet", std::process::id()))
}

pub fn read(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let rows = rows.map(|row| {
        let row = row.unwrap();
        row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
    });
    let rows = rows.collect();
    fs::remove_file(path).unwrap();
    rows
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => Value::Flag(*flag),
        Field::Int(number) => Value::Integer(i64::from(*number)),
        Field::Long(number) => Value::Integer(*number),
        Field::Double(number) => Value::Number(*number),
        Field::Str(text) => Value::Text(text.clone()),
        Field::Bytes(bytes) => Value::Bytes(bytes.data().to_vec()),
        other => panic!("no column holds {other}"),
    }
}
