//! Checks responses; equal responses to one request once.

use super::check::{Expectation, Fault, first_line};
use super::classes::{Class, Classes, Kind};
use super::coding::Coded;
use rustc_hash::{FxHashMap, FxHasher};
use serde_json::{Map, Value};
use std::hash::{Hash, Hasher};

/// Verdicts that are remembered: about 1 MiB.
const MAX_VERDICTS: usize = 32_768;
/// Number of no class.
const RIGHT: u32 = u32::MAX;

/// A response as received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received<'a> {
    pub status: u16,
    pub coded: Coded,
    pub location: Option<&'a str>,
    pub body: &'a [u8],
}

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

    /// The class of a wrong response to the request with this index in the order; None if it is correct.
    pub fn judge(
        &mut self,
        request: u32,
        expectation: &Expectation,
        received: &Received,
        classes: &mut Classes,
    ) -> Option<u32> {
        let admitted = expectation.admits(received.status);
        if admitted && !expectation.needs_body() {
            return None;
        }
        let key = key(request, received);
        let verdict = match self.verdicts.get(&key) {
            Some(&verdict) => verdict,
            None => {
                let class = self.class(expectation, received, admitted);
                let verdict = class.map_or(RIGHT, |class| classes.number(class));
                self.remember(key, verdict);
                verdict
            }
        };
        (verdict != RIGHT).then_some(verdict)
    }

    /// None: the response is correct.
    fn class(&self, expectation: &Expectation, received: &Received, admitted: bool) -> Option<Class> {
        let status = received.status;
        match (received.coded.decoded(received.body), admitted) {
            (Ok(body), true) => self.find_fault(expectation, status, &body),
            (Err(reason), true) => Some(Class::new(Kind::Answer, Some(status), reason)),
            (body, false) => Some(self.refusal(received, &body.unwrap_or_default())),
        }
    }

    fn remember(&mut self, key: u64, verdict: u32) {
        if self.verdicts.len() >= MAX_VERDICTS {
            self.verdicts.clear();
        }
        self.verdicts.insert(key, verdict);
    }

    /// The error description in the body of another status: the members that distinguish errors, otherwise its first
    /// line.
    fn refusal(&self, received: &Received, body: &[u8]) -> Class {
        let mut class = Class::new(Kind::Status, Some(received.status), String::new());
        if let Some(location) = received.location {
            class.detail = first_line(format!("a redirect to {location}, which is not followed").as_bytes());
            return class;
        }
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        class.reported = self.reported_members(&value);
        if class.reported.is_empty() {
            class.detail = first_line(body);
        }
        class
    }

    /// A wrong response may be an error with a correct status: then its class is that of the error.
    fn find_fault(&self, expectation: &Expectation, status: u16, body: &[u8]) -> Option<Class> {
        let fault = expectation.find_fault(body)?;
        Some(match fault {
            Fault::NotJson { reason } => {
                Class { example: first_line(body), ..Class::new(Kind::Answer, Some(status), reason) }
            }
            Fault::Wrong { what, example } => {
                let reported = self.reported_members(&serde_json::from_slice(body).unwrap_or_default());
                Class { reported, example, ..Class::new(Kind::WrongAnswer, Some(status), what) }
            }
        })
    }

    fn reported_members(&self, value: &Value) -> Map<String, Value> {
        let member = |pointer: &String| value.pointer(pointer).map(|member| (pointer.clone(), member.clone()));
        self.error_pointers.iter().filter_map(member).collect()
    }
}

/// The probability that two different responses of a load are confused is 1 in 2⁶⁴.
fn key(request: u32, received: &Received) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(received.body);
    hasher.write_u32(request);
    hasher.write_u16(received.status);
    received.coded.hash(&mut hasher);
    received.location.hash(&mut hasher);
    hasher.finish()
}
