//! Classes of failures, distinguished by the server's message.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of classes; all others are counted by kind.
const MAX_CLASSES: usize = 200;

/// What went wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Kind {
    /// Another status than the expected ones.
    Status,
    /// A body of another form than expected.
    Answer,
    /// No connection.
    Connect,
    Reset,
    /// The server closed the connection before the response was complete.
    Closed,
    Timeout,
    /// The bytes are not a response of the protocol.
    Protocol,
    Tls,
    /// A failed check.
    WrongAnswer,
    /// No connection, because this machine lacks resources for another one: no request was sent.
    Generator,
    /// The server closed an idle connection while the next request was in flight.
    IdleClose,
    /// HTTP/2: the server ended the request's stream before the response was complete (`RST_STREAM`).
    StreamReset,
    /// HTTP/2: the server took no further stream (`RST_STREAM` with `REFUSED_STREAM`), and did nothing for the request.
    RefusedStream,
    /// HTTP/2: the server ended the connection (`GOAWAY`).
    GoAway,
}

pub(super) const KINDS: [Kind; 14] = [
    Kind::Status,
    Kind::Answer,
    Kind::Connect,
    Kind::Reset,
    Kind::Closed,
    Kind::Timeout,
    Kind::Protocol,
    Kind::Tls,
    Kind::WrongAnswer,
    Kind::Generator,
    Kind::IdleClose,
    Kind::StreamReset,
    Kind::RefusedStream,
    Kind::GoAway,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Answer => "answer",
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Tls => "tls",
            Self::WrongAnswer => "wrong answer",
            Self::Generator => "generator",
            Self::IdleClose => "idle close",
            Self::StreamReset => "stream reset",
            Self::RefusedStream => "refused stream",
            Self::GoAway => "goaway",
        }
    }

    /// Whether the server received a request, and could have responded: only then is it the server's failure.
    pub fn is_of_server(self) -> bool {
        !matches!(self, Self::Generator | Self::IdleClose)
    }

    /// Whether no part of a response shows that the server is still reachable.
    pub fn is_unanswered(self) -> bool {
        matches!(self, Self::Connect | Self::Tls | Self::Timeout | Self::Reset | Self::Closed)
    }
}

/// Failures that look the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Class {
    pub kind: Kind,
    pub status: Option<u16>,
    /// The error pointers that the body has, with their values.
    pub reported: Map<String, Value>,
    pub detail: String,
    /// Of the first of them.
    pub example: String,
    pub first_ns: i64,
    /// In the warm-up, in the window.
    pub counts: [u64; 2],
}

impl Class {
    pub fn new(kind: Kind, status: Option<u16>, detail: String) -> Self {
        let (reported, example) = (Map::new(), String::new());
        Self { kind, status, reported, detail, example, first_ns: i64::MAX, counts: [0; 2] }
    }

    fn key(&self) -> Key {
        let reported =
            if self.reported.is_empty() { String::new() } else { Value::from(self.reported.clone()).to_string() };
        (self.kind, self.status, reported, self.detail.clone())
    }
}

type Key = (Kind, Option<u16>, String, String);

/// All classes that were met.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Classes {
    list: Vec<Class>,
    /// Empty after parsing; only the list is merged.
    #[serde(skip)]
    numbers: FxHashMap<Key, u32>,
}

impl Classes {
    /// The number of this class, for [`Classes::count`].
    pub fn number(&mut self, class: Class) -> u32 {
        let key = class.key();
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        // The others of a kind need room, too.
        if self.list.len() + KINDS.len() >= MAX_CLASSES && class.detail != OTHERS {
            return self.number(Class::new(class.kind, None, OTHERS.into()));
        }
        let number = self.list.len() as u32;
        self.list.push(class);
        self.numbers.insert(key, number);
        number
    }

    pub fn kind(&self, number: u32) -> Kind {
        self.list[number as usize].kind
    }

    pub fn count(&mut self, number: u32, phase: usize, now_ns: i64) {
        let class = &mut self.list[number as usize];
        class.counts[phase] += 1;
        class.first_ns = class.first_ns.min(now_ns);
    }

    /// The first example in time remains.
    pub fn merge(&mut self, other: Self) {
        for mut class in other.list {
            let (counts, first_ns, example) = (class.counts, class.first_ns, class.example.clone());
            (class.counts, class.first_ns) = ([0; 2], i64::MAX);
            let number = self.number(class);
            let mine = &mut self.list[number as usize];
            if first_ns < mine.first_ns {
                (mine.first_ns, mine.example) = (first_ns, example);
            }
            for (mine, others) in mine.counts.iter_mut().zip(counts) {
                *mine += others;
            }
        }
    }

    /// How many failed in a phase.
    pub fn total(&self, phase: usize) -> u64 {
        self.list.iter().map(|class| class.counts[phase]).sum()
    }

    /// The classes of a phase, the most frequent first.
    pub fn reports(&self, phase: usize) -> Vec<ClassReport> {
        let mut classes: Vec<&Class> = self.list.iter().filter(|class| class.counts[phase] > 0).collect();
        classes.sort_by_cached_key(|class| (std::cmp::Reverse(class.counts[phase]), class.key()));
        classes.into_iter().map(|class| ClassReport::new(class, phase)).collect()
    }
}

const OTHERS: &str = "others";

/// A class in a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassReport {
    pub class: &'static str,
    pub status: Option<u16>,
    pub reported: Map<String, Value>,
    pub detail: String,
    pub example: String,
    pub count: u64,
    /// After the begin of the step, warm-up or not.
    pub first_s: f64,
}

impl ClassReport {
    fn new(class: &Class, phase: usize) -> Self {
        Self {
            class: class.kind.name(),
            status: class.status,
            reported: class.reported.clone(),
            detail: class.detail.clone(),
            example: class.example.clone(),
            count: class.counts[phase],
            first_s: class.first_ns as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_ever_new_messages_fills_no_memory_and_every_failure_counts() {
        let mut classes = Classes::default();
        let mut other = Classes::default();
        for number in 0..1000u64 {
            let part = if number % 2 == 0 { &mut classes } else { &mut other };
            let class = part.number(Class::new(Kind::Status, Some(500), format!("trace {number}")));
            part.count(class, 1, number as i64);
        }
        classes.merge(other);
        assert!(classes.list.len() <= MAX_CLASSES);
        assert_eq!(classes.total(1), 1000);
        let reports = classes.reports(1);
        assert_eq!((reports[0].detail.as_str(), reports[0].class), ("others", "status"));
        assert_eq!(reports.iter().map(|class| class.count).sum::<u64>(), 1000);
    }

    #[test]
    fn the_example_is_the_earliest_one_of_all_threads() {
        let (mut late, mut early) = (Classes::default(), Classes::default());
        for (classes, time_ns, example) in [(&mut late, 9, "late"), (&mut early, 3, "early")] {
            let class = Class { example: example.into(), ..Class::new(Kind::WrongAnswer, Some(200), "x".into()) };
            let number = classes.number(class);
            classes.count(number, 1, time_ns);
        }
        late.merge(early);
        assert_eq!((late.reports(1)[0].example.as_str(), late.reports(1)[0].count), ("early", 2));
    }
}
