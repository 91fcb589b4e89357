//! What faults do to a finished line, and lines that other programs wrote.

use crate::logs::fault::{Fault, Kind};
use crate::random::{Draws, Purpose};

/// Lines of other programs in the same file: plain text, JSON that is not a log object, empty lines.
const FOREIGN: [&[u8]; 6] = [
    b"\n",
    b"[ 8123.400417] systemd[1]: Started Session 7 of user benchmark.\n",
    b"{\"level\":\"info\",\"ts\":1770317536.25,\"msg\":\"scrape finished\",\"targets\":3}\n",
    b"supervisord: node stdout reopened\n",
    b"Warning: truncated metric name\tkept 64 characters\n",
    b"{}\n",
];
/// Neither UTF-8 nor anything that JSON allows inside a string.
const BINARY: [u8; 8] = [0xff, 0xfe, 0x00, 0x9c, 0x01, 0xc0, 0x80, 0x1b];

/// Draws about all lines of a block have these indices.
const WHOLE_BLOCK: u32 = 1 << 20;

/// The position of a line in its host's log, for the draws about it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub draws: Draws,
    pub host: u32,
}

/// The faults of one host, with how many lines each took, added or damaged one by one.
#[derive(Debug, Default)]
pub struct Damage {
    pub faults: Vec<Fault>,
    pub lines: Vec<u64>,
}

/// The identity of a finished line: its time, and its block if it reports sending or announcing.
#[derive(Debug, Clone, Copy)]
pub struct LineFacts {
    pub at_ns: i64,
    pub announces: bool,
    pub sends: bool,
    /// Draws that concern its block.
    pub block_draws: Draws,
}

impl Damage {
    pub fn new(mut faults: Vec<Fault>) -> Self {
        // A line is lost, or corrupted, before it is doubled, and another program's line comes behind it.
        faults.sort_by_key(|fault| match fault.kind {
            Kind::Corrupt => 1,
            Kind::Duplicated => 2,
            Kind::Foreign => 3,
            _ => 0,
        });
        let lines = vec![0; faults.len()];
        Self { faults, lines }
    }

    /// The first fault of a kind that holds now.
    pub fn holding(&self, kind: Kind, at_ns: i64) -> Option<usize> {
        self.faults.iter().position(|fault| fault.kind == kind && fault.at(at_ns))
    }

    /// Damage the line that begins at `start`. Returns the number of lines that are in the buffer from there on, and
    /// how often the line is among them and can be read.
    pub fn apply(&mut self, out: &mut Vec<u8>, start: usize, place: Place, line: &LineFacts) -> (u64, u32) {
        let (mut lines, mut copies) = (1, 1);
        for index in 0..self.faults.len() {
            let fault = &self.faults[index];
            if !fault.at(line.at_ns) {
                continue;
            }
            let draw = |purpose: u32| place.draws.unit(place.host, Purpose::Fault, index as u32 * 4 + purpose);
            let whole_block =
                |draws: Draws| draws.unit(place.host, Purpose::Fault, WHOLE_BLOCK + index as u32) < fault.value;
            let mut hit = true;
            match fault.kind {
                Kind::Gap => (lines, copies) = (0, 0),
                Kind::NoAnnouncement if line.announces && whole_block(line.block_draws) => (lines, copies) = (0, 0),
                Kind::NoSend if line.sends && whole_block(line.block_draws) => (lines, copies) = (0, 0),
                Kind::Dropped if draw(0) < fault.value => (lines, copies) = (0, 0),
                Kind::Corrupt if lines > 0 && draw(0) < fault.value => {
                    corrupt(out, start, draw(1), draw(2) < 0.5);
                    copies = 0;
                }
                Kind::Duplicated if lines > 0 && draw(0) < fault.value => {
                    out.extend_from_within(start..);
                    (lines, copies) = (lines + 1, copies * 2);
                }
                Kind::Foreign if lines > 0 && draw(0) < fault.value => {
                    out.extend_from_slice(FOREIGN[(draw(1) * FOREIGN.len() as f64) as usize]);
                    lines += 1;
                }
                _ => hit = false,
            }
            if lines == 0 {
                out.truncate(start);
            }
            self.lines[index] += u64::from(hit);
            if hit && lines == 0 {
                break;
            }
        }
        (lines, copies)
    }
}

/// Make the line that begins at `start` unreadable: cut it, or overwrite a part with binary bytes.
fn corrupt(out: &mut Vec<u8>, start: usize, drawn: f64, cut: bool) {
    let length = out.len() - start - 1;
    let at = start + 1 + ((length - 1) as f64 * drawn) as usize;
    if cut {
        out.truncate(at);
        out.push(b'\n');
    } else {
        let end = (at + BINARY.len()).min(out.len() - 1);
        out[at..end].copy_from_slice(&BINARY[..end - at]);
    }
}

/// Cut the last line off somewhere behind its time.
pub fn truncate(out: &mut Vec<u8>, start: usize, drawn: f64) {
    let length = out.len() - start;
    let least = length.min(60);
    out.truncate(start + least + ((length.saturating_sub(least + 2)) as f64 * drawn) as usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrupt_line_is_never_valid_json() {
        let line = b"{\"at\":\"2026-02-05T19:00:00Z\",\"data\":{\"kind\":\"X\"},\"host\":\"node-0\"}\n";
        for step in 0..200 {
            for cut in [false, true] {
                let mut out = b"before\n".to_vec();
                out.extend_from_slice(line);
                corrupt(&mut out, 7, f64::from(step) / 200.0, cut);
                assert_eq!(&out[..7], b"before\n");
                assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2, "still one line");
                assert_eq!(out.last(), Some(&b'\n'));
                assert!(serde_json::from_slice::<serde_json::Value>(&out[7..]).is_err());
            }
        }
    }

    #[test]
    fn foreign_lines_are_complete_lines() {
        for line in FOREIGN {
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(line.last(), Some(&b'\n'));
        }
    }
}
