//! Log lines in the documented shapes, and files of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use chainmark_trace::accounting::{Container, HostCounts};
use chainmark_trace::control::Control;
use chainmark_trace::event::{Event, Place};
use chainmark_trace::reader::{Division, RangeRequest, look_through_range, read_host, read_ranges, scan_head};

pub const HASH: &str = "a1e88dba00b72362da126842045a0155b72f358656e69a81d60cfd25f81b7ccd";
pub const PARENT: &str = "140dd66638889ddac93bec38b560e021f4a535b935911a7e909cb86f26c0788e";

/// A line of today's nodes.
pub fn line(ns: &str, data: &str) -> String {
    line_at("2026-02-05T19:00:00.000905Z", ns, data)
}

pub fn line_at(at: &str, ns: &str, data: &str) -> String {
    format!(r#"{{"at":"{at}","ns":"{ns}","data":{data},"sev":"Info","thread":"147","host":"node-7"}}"#)
}

/// A line of the nodes before them.
pub fn legacy(ns: &str, data: &str) -> String {
    let rest = r#""loc":null,"msg":"","pid":"1662080","sev":"Info","thread":"17608""#;
    let env = r#""env":"8.1.1:ea2c0","host":"mainnetf""#;
    format!(r#"{{"app":[],"at":"2023-09-01T14:14:24.55Z","data":{data},{env},"ns":["{ns}"],{rest}}}"#)
}

/// A string as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("strings are JSON")
}

/// A folder that is removed when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("chainmark-trace-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("the temporary folder can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An event as text, so that it outlives its line.
pub fn event_text(event: &Event<'_>) -> String {
    format!("{event:?}")
}

/// The events of the files as text with their places, and the counts; the same however the reading is divided.
pub fn read(files: &[PathBuf]) -> (Vec<(String, Place)>, HostCounts) {
    let result = read_divided(files, Division::new(1));
    assert_eq!(result, read_divided(files, Division::new(2)));
    assert_eq!(result, read_divided(files, Division::new(3)));
    // How much of a damaged packed file can be saved depends on how much of it is unpacked at once.
    if result.1.files.iter().all(|file| file.container == Container::Plain) {
        assert_eq!(result, read_divided(files, Division { threads: 3, piece_bytes: 700 }));
    }
    let most_bytes = result.1.files.iter().map(|file| file.stored_bytes).max().unwrap_or_default();
    assert_eq!(result, read_in_ranges(files, (most_bytes / 16).next_power_of_two().max(1 << 10)));
    result
}

/// The same, of plain files looked through range by range, and of others each by itself.
pub fn read_in_ranges(files: &[PathBuf], range_bytes: u64) -> (Vec<(String, Place)>, HostCounts) {
    let folder = Folder::new();
    let mut findings = BTreeMap::new();
    for (number, path) in files.iter().enumerate() {
        let stored_bytes = std::fs::metadata(path).expect("the file can be read").len();
        let is_plain = scan_head(path, 1).expect("the file can be read").container == Container::Plain;
        let ranges: Vec<_> = match is_plain && stored_bytes > range_bytes {
            true => {
                let begins = (0..stored_bytes).step_by(range_bytes as usize);
                begins.map(|begin| Some(begin..stored_bytes.min(begin + range_bytes))).collect()
            }
            false => vec![None],
        };
        // The last one first: none knows of another.
        for (place, range) in ranges.iter().enumerate().rev() {
            let findings_out = folder.path(&format!("{number}-{place}"));
            let request = RangeRequest { path: path.clone(), range: range.clone(), stored_bytes, findings_out };
            request.check().expect("the range is a subtree");
            look_through_range(&request, &Control::default()).expect("the range can be read");
        }
        let outs = (0..ranges.len()).map(|place| folder.path(&format!("{number}-{place}")));
        findings.insert(path.clone(), outs.collect());
    }
    let mut events = Vec::new();
    let mut listen = |event: &Event<'_>, place| events.push((event_text(event), place));
    let (division, control) = (Division::new(1), Control::default());
    let counts = read_ranges(files, &findings, division, &control, &mut listen).expect("the findings can be read");
    (events, counts)
}

pub fn read_divided(files: &[PathBuf], division: Division) -> (Vec<(String, Place)>, HostCounts) {
    let mut events = Vec::new();
    let mut listen = |event: &Event<'_>, place| events.push((event_text(event), place));
    let counts = read_host(files, division, &Control::default(), &mut listen).expect("the files can be read");
    (events, counts)
}

/// The result for `text` as a file of its own.
pub fn read_text(text: &[u8]) -> (Vec<String>, HostCounts) {
    let folder = Folder::new();
    let (events, counts) = read(&[folder.write("log", text)]);
    (events.into_iter().map(|(event, _)| event).collect(), counts)
}

/// The content of a line as a `Fact`, in its debug form; None if it has none.
pub fn fact(line: &str) -> Option<String> {
    let (events, _) = read_text(line.as_bytes());
    assert!(events.len() <= 1);
    let event = events.into_iter().next()?;
    let fact = event.split_once("fact: ").expect("an event has a fact").1;
    Some(fact.strip_suffix(" }").expect("an event ends").to_owned())
}

/// Why a line is malformed; none if it is not.
pub fn problem(line: &str) -> Option<String> {
    let (_, counts) = read_text(line.as_bytes());
    counts.malformed_examples.into_iter().next().map(|kept| kept.reason)
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = flate2::bufread::GzEncoder::new(bytes, flate2::Compression::fast());
    std::io::Read::read_to_end(&mut encoder, &mut out).expect("memory can be compressed");
    out
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory can be compressed")
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    liblzma::encode_all(bytes, 1).expect("memory can be compressed")
}

pub fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
