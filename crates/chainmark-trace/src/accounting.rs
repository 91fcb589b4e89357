//! What was read of one host's logs: every line in one class.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{ReadError, Result};
use crate::wrapper::Wrapper;

/// Malformed lines that are kept.
pub const MAX_MALFORMED_EXAMPLES: usize = 5;
/// Characters of a malformed line that are kept.
pub const MAX_EXAMPLE_CHARS: usize = 200;
/// Maximum number of distinct host names.
pub const MAX_NAMES: usize = 16;
/// Maximum number of distinct local addresses.
pub const MAX_ADDRESSES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Container {
    Plain,
    Gzip,
    Zstd,
    Xz,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileCounts {
    pub path: String,
    pub stored_bytes: u64,
    /// Bytes after decompression.
    pub text_bytes: u64,
    pub lines: u64,
    /// Hash of the stored bytes, in hex.
    pub blake3: String,
    /// Time stamp of its first readable line.
    pub first_ns: Option<i64>,
    pub container: Container,
    /// What most of its lines are wrapped in.
    pub wrapper: Wrapper,
    /// Why its end could not be read, if so.
    pub damage: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Malformed {
    pub file: String,
    /// From 1.
    pub line: u64,
    pub reason: String,
    pub text: String,
}

/// One host: its files in time order and the classes of their lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostCounts {
    pub files: Vec<FileCounts>,
    pub raw_lines: u64,
    /// Lines with a readable envelope, in the published reports "emitted".
    pub objects: u64,
    /// Lines that became events, "analysed". Among them `SwitchedToAFork` and the renamed ledger snapshot, which the
    /// published analysis does not know; `decoded_by_message` has their numbers.
    pub decoded: u64,
    pub ignored: u64,
    /// Lines that do not begin with a brace, pieces of lines that a wrapper cut, and objects of other programs in a
    /// wrapper that holds lines of several.
    pub not_objects: u64,
    pub malformed: u64,
    pub malformed_envelope: u64,
    pub malformed_body: u64,
    /// Announcements that are none: falling edges, reads that do not block, rollbacks.
    pub skipped: u64,
    /// Pieces of cut lines but the last one of each; they are among `not_objects`.
    pub pieces: u64,
    pub decoded_by_message: BTreeMap<String, u64>,
    pub ignored_by_message: BTreeMap<String, u64>,
    /// The first few.
    pub malformed_examples: Vec<Malformed>,
    /// Time stamp of the first readable line.
    pub first_ns: Option<i64>,
    /// Time stamp of the last line that has one, even if it was cut off.
    pub last_ns: Option<i64>,
    /// Those of the lines next to these two.
    #[serde(skip)]
    pub second_ns: Option<i64>,
    #[serde(skip)]
    pub last_but_one_ns: Option<i64>,
    /// How far at most a line's time stamp is before that of a line above it.
    pub seconds_before_order: f64,
    /// Host names in the lines.
    pub names: BTreeMap<String, u64>,
    pub node_version: Option<String>,
    pub node_revision: Option<String>,
    pub compiler_version: Option<String>,
    pub network_magic: Option<String>,
    /// The host's own addresses by its connections.
    pub local_addresses: BTreeMap<String, u64>,
}

impl HostCounts {
    /// The time of a line, in the order of the lines.
    #[inline(always)]
    pub(crate) fn count_time(&mut self, at_ns: i64) {
        if self.second_ns.is_none() {
            let place = if self.first_ns.is_none() { &mut self.first_ns } else { &mut self.second_ns };
            *place = Some(at_ns);
        }
        self.last_but_one_ns = self.last_ns.replace(at_ns);
    }

    /// A log neither begins nor ends with a single line whose time is far from that of its neighbour.
    pub(crate) fn correct_ends(&mut self, limit_ns: i64) {
        let is_far = |a: i64, b: i64| a.abs_diff(b) > limit_ns.unsigned_abs();
        let [Some(first), Some(second)] = [self.first_ns, self.second_ns] else { return };
        let [Some(last_but_one), Some(last)] = [self.last_but_one_ns, self.last_ns] else { return };
        if self.objects > 2 {
            self.first_ns = Some(if is_far(first, second) { second } else { first });
            self.last_ns = Some(if is_far(last, last_but_one) { last_but_one } else { last });
        }
    }

    /// Whether every line is in exactly one class.
    pub fn check(&self) -> Result<()> {
        let classes = self.decoded + self.ignored + self.skipped + self.malformed + self.not_objects;
        let lines: u64 = self.files.iter().map(|file| file.lines).sum();
        let decoded: u64 = self.decoded_by_message.values().sum();
        let ignored: u64 = self.ignored_by_message.values().sum();
        let laws = [
            ("lines", self.raw_lines, classes),
            ("lines of the files", lines, self.raw_lines),
            ("malformed lines", self.malformed, self.malformed_envelope + self.malformed_body),
            ("log objects", self.objects, self.decoded + self.ignored + self.skipped + self.malformed_body),
            ("decoded lines", self.decoded, decoded),
            ("ignored lines", self.ignored, ignored),
        ];
        match laws.into_iter().find(|(_, whole, parts)| whole != parts) {
            None => Ok(()),
            Some((what, whole, parts)) => Err(ReadError::Sums { what, whole, parts }),
        }
    }
}

/// Counts by name, up to a maximum number of names.
pub(crate) fn count_name(counts: &mut BTreeMap<String, u64>, name: &str, most: usize) {
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
    } else if counts.len() < most {
        counts.insert(name.to_owned(), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut HostCounts);

    fn sound() -> HostCounts {
        let file = |lines| FileCounts {
            path: String::new(),
            stored_bytes: 0,
            text_bytes: 0,
            lines,
            blake3: String::new(),
            first_ns: None,
            container: Container::Plain,
            wrapper: Wrapper::None,
            damage: None,
        };
        HostCounts {
            files: vec![file(20), file(8)],
            raw_lines: 28,
            objects: 18,
            decoded: 9,
            ignored: 6,
            skipped: 2,
            not_objects: 8,
            pieces: 1,
            malformed: 3,
            malformed_envelope: 2,
            malformed_body: 1,
            decoded_by_message: BTreeMap::from([("ForgedBlock".to_owned(), 4), ("AddedToCurrentChain".to_owned(), 5)]),
            ignored_by_message: BTreeMap::from([("Peers".to_owned(), 6)]),
            ..HostCounts::default()
        }
    }

    #[test]
    fn each_sum_can_fail() {
        sound().check().unwrap();
        let broken: [(&str, Change); 12] = [
            ("lines", |counts| counts.raw_lines += 1),
            ("lines", |counts| counts.not_objects += 1),
            ("lines", |counts| counts.skipped -= 1),
            ("lines", |counts| counts.decoded += 1),
            ("lines", |counts| counts.ignored -= 1),
            ("lines", |counts| counts.malformed += 1),
            ("lines of the files", |counts| counts.files[1].lines -= 1),
            ("lines of the files", |counts| counts.files.truncate(1)),
            ("malformed lines", |counts| counts.malformed_envelope += 1),
            ("log objects", |counts| counts.objects += 1),
            ("decoded lines", |counts| counts.decoded_by_message.clear()),
            ("ignored lines", |counts| *counts.ignored_by_message.entry("Peers".to_owned()).or_default() += 1),
        ];
        for (expected, change) in broken {
            let mut counts = sound();
            change(&mut counts);
            let error = counts.check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("the {expected} do not add up")), "{expected}: {error}");
        }
    }
}
