//! Judges answers; equal answers to one request once.

use super::check::{Expectation, Fault, first_line};
use super::classes::{Class, Classes, Kind};
use rustc_hash::{FxHashMap, FxHasher};
use serde_json::{Map, Value};
use std::hash::Hasher;

/// Verdicts that are remembered: about 1 MiB.
const MAX_VERDICTS: usize = 32_768;
/// Number of no class.
const RIGHT: u32 = u32::MAX;

/// The verdicts of one thread.
#[derive(Debug)]
pub(super) struct Judge {
    error_pointers: Vec<String>,
    verdicts: FxHashMap<u64, u32>,
}

impl Judge {
    pub fn new(error_pointers: Vec<String>) -> Self {
        Self { error_pointers, verdicts: FxHashMap::default() }
    }

    /// The class of a wrong answer to the request with this place in the order; None if it is right.
    pub fn judge(
        &mut self,
        request: u32,
        expectation: &Expectation,
        (status, body): (u16, &[u8]),
        classes: &mut Classes,
    ) -> Option<u32> {
        let admitted = expectation.admits(status);
        if admitted && !expectation.needs_body() {
            return None;
        }
        let key = key(request, status, body);
        let verdict = match self.verdicts.get(&key) {
            Some(&verdict) => verdict,
            None => {
                let class = if admitted {
                    self.find_fault(expectation, status, body)
                } else {
                    Some(self.refusal(status, body))
                };
                let verdict = class.map_or(RIGHT, |class| classes.number(class));
                self.remember(key, verdict);
                verdict
            }
        };
        (verdict != RIGHT).then_some(verdict)
    }

    fn remember(&mut self, key: u64, verdict: u32) {
        if self.verdicts.len() >= MAX_VERDICTS {
            self.verdicts.clear();
        }
        self.verdicts.insert(key, verdict);
    }

    /// What the body of another status says: the members that tell errors apart, or else its first line.
    fn refusal(&self, status: u16, body: &[u8]) -> Class {
        let mut class = Class::new(Kind::Status, Some(status), String::new());
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        class.told = self.told(&value);
        if class.told.is_empty() {
            class.detail = first_line(body);
        }
        class
    }

    /// A wrong answer may be an error under a right status: then it says which, as another status would.
    fn find_fault(&self, expectation: &Expectation, status: u16, body: &[u8]) -> Option<Class> {
        let fault = expectation.find_fault(body)?;
        Some(match fault {
            Fault::NotJson { reason } => {
                Class { example: first_line(body), ..Class::new(Kind::Answer, Some(status), reason) }
            }
            Fault::Wrong { what, example } => {
                let told = self.told(&serde_json::from_slice(body).unwrap_or_default());
                Class { told, example, ..Class::new(Kind::WrongAnswer, Some(status), what) }
            }
        })
    }

    fn told(&self, value: &Value) -> Map<String, Value> {
        let found = |pointer: &String| value.pointer(pointer).map(|found| (pointer.clone(), found.clone()));
        self.error_pointers.iter().filter_map(found).collect()
    }
}

/// Two answers of a load are taken for the same with a chance of 1 to 2⁶⁴.
fn key(request: u32, status: u16, body: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(body);
    hasher.write_u32(request);
    hasher.write_u16(status);
    hasher.finish()
}
