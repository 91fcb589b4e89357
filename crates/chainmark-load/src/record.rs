//! One record per offered transaction, kept in columns.

use std::collections::BTreeMap;

/// Where an offered transaction ended. Every one ends in exactly one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    Accepted,
    MempoolFull,
    InCache,
    CheckFailed,
    RpcError,
    /// Sent, and not answered in time.
    Timeout,
    /// Not sent before the end of the schedule and its grace.
    Unsent,
}

/// What a class says of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Accepted,
    Rejected,
    /// None in time.
    Missing,
    /// No request was sent.
    Unsent,
}

impl Answer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Missing => "missing",
            Self::Unsent => "unsent",
        }
    }
}

impl Class {
    /// By their numbers in [`Records::class`].
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::MempoolFull,
        Self::InCache,
        Self::CheckFailed,
        Self::RpcError,
        Self::Timeout,
        Self::Unsent,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::MempoolFull => "mempool full",
            Self::InCache => "in cache",
            Self::CheckFailed => "check code",
            Self::RpcError => "rpc error",
            Self::Timeout => "timeout",
            Self::Unsent => "unsent",
        }
    }

    pub fn answer(self) -> Answer {
        match self {
            Self::Accepted => Answer::Accepted,
            Self::MempoolFull | Self::InCache | Self::CheckFailed | Self::RpcError => Answer::Rejected,
            Self::Timeout => Answer::Missing,
            Self::Unsent => Answer::Unsent,
        }
    }
}

/// A time that never came.
pub const NEVER_NS: i64 = -1;
const MAX_DISTINCT_MESSAGES: usize = 20;
const MAX_MESSAGE_CHARACTERS: usize = 300;
const OTHER_MESSAGES: &str = "(other messages)";

/// The records of one load, row by row in the order of connection and sequence. All times are wall nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    pub connection: Vec<u32>,
    pub sequence: Vec<u32>,
    pub due_ns: Vec<i64>,
    /// When the socket had accepted the whole transaction; −1 if unsent.
    pub sent_ns: Vec<i64>,
    /// When the response arrived; −1 if it did not arrive in time.
    pub answered_ns: Vec<i64>,
    pub class: Vec<u8>,
    pub check_code: Vec<u32>,
    /// SHA-256 of the transaction; zero if unsent.
    pub hash: Vec<[u8; 32]>,
    /// Of an unsent one, what was wanted.
    pub size_bytes: Vec<u32>,
}

impl Records {
    pub fn rows(&self) -> usize {
        self.class.len()
    }

    /// Number of transactions that ended in a class.
    pub fn count(&self, class: Class) -> usize {
        self.class.iter().filter(|&&value| value == class as u8).count()
    }

    pub(crate) fn append(&mut self, connection: u32, start_ns: i64, size_bytes: u32, part: ConnectionRecords) {
        let rows = part.due_ns.len();
        self.connection.resize(self.connection.len() + rows, connection);
        self.sequence.extend(0..rows as u32);
        self.due_ns.extend(part.due_ns.iter().map(|due_ns| start_ns + due_ns));
        self.class.extend((0..rows).map(|row| part.final_class(row) as u8));
        self.sent_ns.extend(part.sent_ns);
        self.answered_ns.extend(part.answered_ns);
        self.check_code.extend(part.check_code);
        self.hash.extend(part.hash);
        let sizes = part.size_bytes.iter().map(|&sent| if sent == 0 { size_bytes } else { sent });
        self.size_bytes.extend(sizes);
    }
}

/// Everything that one load leaves behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadResult {
    pub records: Records,
    /// CPU time of the generator's thread from the start of the schedule to the last response.
    pub cpu_s: f64,
    /// Wall time of the same span.
    pub wall_s: f64,
    pub reconnects: u64,
    /// Responses that arrived after their transaction's time-out; those transactions stay in that class.
    pub late_answers: u64,
    /// Messages for no transaction, or for one that already has its response.
    pub unmatched_answers: u64,
    /// The texts of RPC errors, unmatched responses and lost connections, with their counts.
    pub errors: BTreeMap<String, u64>,
}

/// The records of one connection while the load runs.
#[derive(Debug)]
pub(crate) struct ConnectionRecords {
    /// After the start of the schedule.
    due_ns: std::sync::Arc<Vec<i64>>,
    sent_ns: Vec<i64>,
    answered_ns: Vec<i64>,
    class: Vec<Option<Class>>,
    check_code: Vec<u32>,
    hash: Vec<[u8; 32]>,
    /// 0 until sent.
    size_bytes: Vec<u32>,
    sent: u32,
}

impl ConnectionRecords {
    pub fn new(due_ns: std::sync::Arc<Vec<i64>>) -> Self {
        let rows = due_ns.len();
        Self {
            due_ns,
            sent_ns: vec![NEVER_NS; rows],
            answered_ns: vec![NEVER_NS; rows],
            class: vec![None; rows],
            check_code: vec![0; rows],
            hash: vec![[0; 32]; rows],
            size_bytes: vec![0; rows],
            sent: 0,
        }
    }

    /// The next transaction to send and its due time after the start.
    pub fn next_unsent(&self) -> Option<(u32, i64)> {
        self.due_ns.get(self.sent as usize).map(|&due_ns| (self.sent, due_ns))
    }

    /// Transactions are sent in the order of their due times, so the row is the next one.
    pub fn record_sent(&mut self, sent_ns: i64, hash: [u8; 32], size_bytes: u32) {
        let row = self.sent as usize;
        self.sent_ns[row] = sent_ns;
        self.hash[row] = hash;
        self.size_bytes[row] = size_bytes;
        self.sent += 1;
    }

    pub fn sent(&self) -> u32 {
        self.sent
    }

    pub fn sent_ns(&self, sequence: u32) -> Option<i64> {
        (sequence < self.sent).then(|| self.sent_ns[sequence as usize])
    }

    pub fn is_answered(&self, sequence: u32) -> bool {
        self.class[sequence as usize].is_some()
    }

    pub fn record_answer(&mut self, sequence: u32, answered_ns: i64, class: Class, check_code: u32) {
        let row = sequence as usize;
        self.answered_ns[row] = answered_ns;
        self.class[row] = Some(class);
        self.check_code[row] = check_code;
    }

    /// Fixes the class of a transaction whose response was late, so that a second late one is detected.
    pub fn record_timeout(&mut self, sequence: u32) {
        self.class[sequence as usize] = Some(Class::Timeout);
    }

    fn final_class(&self, row: usize) -> Class {
        let unanswered = if self.sent_ns[row] == NEVER_NS { Class::Unsent } else { Class::Timeout };
        self.class[row].unwrap_or(unanswered)
    }
}

/// Counts distinct messages, the first few by their text and the rest together.
#[derive(Debug, Default)]
pub(crate) struct MessageCounts {
    counts: BTreeMap<String, u64>,
}

impl MessageCounts {
    pub fn add(&mut self, message: &str) {
        let text: String = message.chars().take(MAX_MESSAGE_CHARACTERS).collect();
        let known = self.counts.contains_key(&text) || self.counts.len() < MAX_DISTINCT_MESSAGES;
        *self.counts.entry(if known { text } else { OTHER_MESSAGES.into() }).or_default() += 1;
    }

    pub fn add_if_any(&mut self, message: Option<&str>) {
        message.into_iter().for_each(|message| self.add(message));
    }

    pub fn into_counts(self) -> BTreeMap<String, u64> {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_in_the_list_at_the_index_in_records() {
        for (number, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number, "{}", class.name());
        }
        assert_eq!(Class::Unsent as usize + 1, Class::ALL.len(), "the last class is the last of the list");
    }

    #[test]
    fn classes_have_the_names_and_the_response_kinds_that_events_are_stored_with() {
        let named: Vec<_> = Class::ALL.into_iter().map(|class| (class.name(), class.answer().name())).collect();
        assert_eq!(
            named,
            [
                ("accepted", "accepted"),
                ("mempool full", "rejected"),
                ("in cache", "rejected"),
                ("check code", "rejected"),
                ("rpc error", "rejected"),
                ("timeout", "missing"),
                ("unsent", "unsent"),
            ]
        );
    }

    /// Five are due and four sent: accepted, too late, refused with a code, never answered.
    fn connection() -> ConnectionRecords {
        let mut part = ConnectionRecords::new(std::sync::Arc::new(vec![10, 20, 30, 40, 50]));
        for sequence in 0..4 {
            assert_eq!(part.next_unsent(), Some((sequence, 10 * (i64::from(sequence) + 1))));
            assert_eq!((part.sent(), part.sent_ns(sequence)), (sequence, None));
            part.record_sent(1_000 + i64::from(sequence), [sequence as u8 + 1; 32], 200 + sequence);
            assert_eq!((part.sent(), part.sent_ns(sequence)), (sequence + 1, Some(1_000 + i64::from(sequence))));
            assert!(!part.is_answered(sequence));
        }
        part.record_answer(0, 2_000, Class::Accepted, 0);
        part.record_timeout(1);
        part.record_answer(2, 2_002, Class::CheckFailed, 7);
        assert_eq!([0, 1, 2, 3].map(|sequence| part.is_answered(sequence)), [true, true, true, false]);
        part
    }

    #[test]
    fn every_offered_transaction_ends_in_one_class_with_its_own_times() {
        let mut records = Records::default();
        records.append(6, 100, 512, ConnectionRecords::new(std::sync::Arc::new(vec![5])));
        records.append(3, 100, 256, connection());
        assert_eq!(records.rows(), 6);
        assert_eq!(Class::ALL.map(|class| records.count(class)), [1, 0, 0, 1, 0, 2, 2]);
        assert_eq!(records.connection, [6, 3, 3, 3, 3, 3]);
        assert_eq!(records.sequence, [0, 0, 1, 2, 3, 4]);
        assert_eq!(records.due_ns, [105, 110, 120, 130, 140, 150]);
        // Readers of the records interpret values below 0 as "never".
        assert_eq!(records.sent_ns, [-1, 1_000, 1_001, 1_002, 1_003, -1]);
        assert_eq!(records.answered_ns, [-1, 2_000, -1, 2_002, -1, -1]);
        let ends = [Class::Unsent, Class::Accepted, Class::Timeout, Class::CheckFailed, Class::Timeout, Class::Unsent];
        assert_eq!(records.class, ends.map(|class| class as u8));
        assert_eq!(records.check_code, [0, 0, 0, 7, 0, 0]);
        assert_eq!(records.hash, [0, 1, 2, 3, 4, 0].map(|byte| [byte; 32]));
        assert_eq!(records.size_bytes, [512, 200, 201, 202, 203, 256]);
    }

    #[test]
    fn a_connection_that_sent_everything_has_no_next_transaction() {
        let mut part = ConnectionRecords::new(std::sync::Arc::new(vec![5]));
        part.record_sent(6, [1; 32], 84);
        assert_eq!(part.next_unsent(), None);
    }

    #[test]
    fn a_known_message_is_counted_by_its_text_even_when_the_limit_is_reached() {
        let mut messages = MessageCounts::default();
        for number in 0..MAX_DISTINCT_MESSAGES {
            messages.add_if_any(Some(&format!("error {number}")));
        }
        messages.add_if_any(None);
        messages.add("error 0");
        messages.add("another");
        let counts = messages.into_counts();
        assert_eq!((counts["error 0"], counts["error 1"], counts[OTHER_MESSAGES]), (2, 1, 1));
        assert_eq!(counts.len(), MAX_DISTINCT_MESSAGES + 1);
    }

    #[test]
    fn many_different_error_texts_use_bounded_memory_and_are_all_counted() {
        let mut messages = MessageCounts::default();
        for number in 0..1000 {
            messages.add(&format!("error {number} {}", "é".repeat(1000)));
        }
        let counts = messages.into_counts();
        assert_eq!(counts.len(), MAX_DISTINCT_MESSAGES + 1);
        assert_eq!(counts.values().sum::<u64>(), 1000);
    }
}
