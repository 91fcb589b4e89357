//! One connection of a load: sends what is due, reads responses, reconnects after a loss.

use super::{Command, Plan};
use crate::clock::monotonic_ns;
use crate::cometbft::answer::{Answer, parse};
use crate::cometbft::broadcast_request;
use crate::record::{Class, ConnectionRecords, MessageCounts};
use crate::timer::Timer;
use crate::transactions::Maker;
use crate::websocket::{Socket, dial};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

const REDIAL_PERIOD: Duration = Duration::from_secs(1);

/// Why a connection was lost.
struct Lost(String);

/// What a connection leaves behind.
pub(super) struct Outcome {
    pub records: ConnectionRecords,
    pub messages: MessageCounts,
    pub reconnects: u64,
    pub late_answers: u64,
    pub unmatched_answers: u64,
}

/// A transaction made ahead of its due time.
struct Prepared {
    request: String,
    hash: [u8; 32],
    size_bytes: u32,
    /// Monotonic.
    due_ns: i64,
}

/// The sending and the reading half run in one task and share this.
pub(super) struct Connection {
    plan: Rc<Plan>,
    index: usize,
    timer: Timer,
    records: RefCell<ConnectionRecords>,
    maker: RefCell<Maker>,
    messages: RefCell<MessageCounts>,
    /// The first sequence number that the current socket may carry.
    first_of_session: Cell<u32>,
    /// Sent over the current socket and without a response.
    in_flight: Cell<u32>,
    all_answered: Notify,
    last_sent_ns: Cell<i64>,
    reconnects: Cell<u64>,
    late_answers: Cell<u64>,
    unmatched_answers: Cell<u64>,
}

impl Connection {
    pub fn new(plan: Rc<Plan>, index: usize, timer: Timer, records: ConnectionRecords) -> Self {
        let config = &plan.config;
        let (connections, number) = (config.connections() as usize, config.number(index) as usize);
        let maker = Maker::new(&config.transactions, connections, config.rate_per_connection, config.seed, number);
        Self {
            plan,
            index,
            timer,
            records: RefCell::new(records),
            maker: RefCell::new(maker),
            messages: RefCell::default(),
            first_of_session: Cell::new(0),
            in_flight: Cell::new(0),
            all_answered: Notify::new(),
            last_sent_ns: Cell::new(0),
            reconnects: Cell::new(0),
            late_answers: Cell::new(0),
            unmatched_answers: Cell::new(0),
        }
    }

    pub async fn run(self, socket: Socket) -> Outcome {
        let mut socket = Some(socket);
        while let Some(current) = socket.take() {
            let dialled_ns = monotonic_ns();
            if let Err(Lost(reason)) = self.session(current).await {
                self.messages.borrow_mut().add(&format!("connection lost: {reason}"));
                socket = self.redial(dialled_ns).await;
            }
        }
        Outcome {
            records: self.records.into_inner(),
            messages: self.messages.into_inner(),
            reconnects: self.reconnects.get(),
            late_answers: self.late_answers.get(),
            unmatched_answers: self.unmatched_answers.get(),
        }
    }

    /// Uses one socket until the load's end. What was in flight on an earlier socket will never get a response.
    async fn session(&self, socket: Socket) -> Result<(), Lost> {
        self.first_of_session.set(self.records.borrow().sent());
        self.in_flight.set(0);
        let (mut sink, mut stream) = socket.split();
        tokio::select! {
            lost = self.receive(&mut stream) => Err(lost),
            done = async {
                self.send_due(&mut sink).await?;
                self.wait_for_answers().await
            } => done,
            () = self.aborted() => Ok(()),
        }
    }

    /// Sends every transaction at its due time, or as soon after it as the socket accepts it.
    async fn send_due(&self, sink: &mut SplitSink<Socket, Message>) -> Result<(), Lost> {
        let last_chance_ns = self.schedule_end_ns() + self.plan.config.send_grace_ns;
        while let Some(prepared) = self.prepare_next() {
            if !self.wait_until_or_command(prepared.due_ns).await? || monotonic_ns() > last_chance_ns {
                return Ok(());
            }
            // A transaction that the socket has taken in part must be completed, or the node would read garbage. It is
            // the only one with an open outcome at the end, and gets the response timeout.
            tokio::select! {
                biased;
                sent = sink.send(Message::text(prepared.request)) => sent.map_err(|error| Lost(error.to_string()))?,
                given_up = self.answer_deadline(last_chance_ns) => return given_up,
            }
            self.record_sent(prepared.hash, prepared.size_bytes);
        }
        Ok(())
    }

    fn prepare_next(&self) -> Option<Prepared> {
        let (sequence, due_ns) = self.records.borrow().next_unsent()?;
        let time_ns = self.plan.start_ns + due_ns;
        let transaction = self.maker.borrow().make(sequence, time_ns)?;
        Some(Prepared {
            request: broadcast_request(self.plan.config.method, sequence, &transaction),
            hash: Sha256::digest(&transaction).into(),
            size_bytes: transaction.len() as u32,
            due_ns: self.plan.clock.to_monotonic_ns(time_ns),
        })
    }

    fn record_sent(&self, hash: [u8; 32], size_bytes: u32) {
        let sent_ns = self.plan.clock.now_ns();
        let mut records = self.records.borrow_mut();
        self.maker.borrow_mut().sent(records.sent());
        records.record_sent(sent_ns, hash, size_bytes);
        self.last_sent_ns.set(self.plan.clock.to_monotonic_ns(sent_ns));
        self.in_flight.set(self.in_flight.get() + 1);
        self.plan.counters.sent.fetch_add(1, Relaxed);
    }

    /// Returns only when the connection is lost.
    async fn receive(&self, stream: &mut SplitStream<Socket>) -> Lost {
        loop {
            let message = match stream.next().await {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Lost(error.to_string()),
                None => return Lost("the node closed it".into()),
            };
            let answered_ns = self.plan.clock.now_ns();
            match message {
                Message::Text(text) => self.take_answer(answered_ns, text.as_str().as_bytes()),
                Message::Binary(bytes) => self.take_answer(answered_ns, &bytes),
                Message::Close(_) => return Lost("the node closed it".into()),
                // The library itself replies to pings.
                _ => {}
            }
        }
    }

    fn take_answer(&self, answered_ns: i64, bytes: &[u8]) {
        match parse(bytes) {
            Answer::Matched { sequence, class, check_code, message } => {
                self.messages.borrow_mut().add_if_any(message.as_deref());
                if self.match_answer(answered_ns, sequence, class, check_code) {
                    self.maker.borrow_mut().answered(sequence, class, message.as_deref().unwrap_or(""));
                }
            }
            Answer::Unmatched(description) => self.add_unmatched(&description),
        }
    }

    /// Whether it is the response to a transaction of ours, late or not.
    fn match_answer(&self, answered_ns: i64, sequence: u32, class: Class, check_code: u32) -> bool {
        let mut records = self.records.borrow_mut();
        let sent_ns = records.sent_ns(sequence).filter(|_| sequence >= self.first_of_session.get());
        let Some(sent_ns) = sent_ns else {
            self.add_unmatched("answer to a request that this connection has not sent");
            return false;
        };
        if records.is_answered(sequence) {
            self.add_unmatched("second answer to the same request");
            return false;
        }
        if answered_ns - sent_ns > self.plan.config.answer_timeout_ns {
            records.record_timeout(sequence);
            self.late_answers.set(self.late_answers.get() + 1);
        } else {
            records.record_answer(sequence, answered_ns, class, check_code);
            self.plan.counters.answered.fetch_add(1, Relaxed);
            self.plan.counters.accepted.fetch_add(u64::from(class == Class::Accepted), Relaxed);
        }
        self.in_flight.set(self.in_flight.get() - 1);
        if self.in_flight.get() == 0 {
            self.all_answered.notify_one();
        }
        true
    }

    fn add_unmatched(&self, description: &str) {
        self.messages.borrow_mut().add(description);
        self.unmatched_answers.set(self.unmatched_answers.get() + 1);
    }

    async fn wait_for_answers(&self) -> Result<(), Lost> {
        while self.in_flight.get() > 0 {
            tokio::select! {
                () = self.all_answered.notified() => {}
                passed = self.timer.until(self.last_sent_ns.get() + self.plan.config.answer_timeout_ns) => {
                    return passed.map_err(|error| Lost(error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Passes when a transaction that was begun before the end has waited for the response timeout.
    async fn answer_deadline(&self, last_chance_ns: i64) -> Result<(), Lost> {
        let timeout_ns = self.plan.config.answer_timeout_ns;
        if self.wait_until_or_command(last_chance_ns + timeout_ns).await? {
            return Ok(());
        }
        let command = *self.plan.command.borrow();
        match command {
            Command::Stop(stopped_ns) => {
                self.timer.until(stopped_ns + timeout_ns).await.map_err(|error| Lost(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Waits for a monotonic time; `false` if a command came before it.
    async fn wait_until_or_command(&self, time_ns: i64) -> Result<bool, Lost> {
        if *self.plan.command.borrow() != Command::Run {
            return Ok(false);
        }
        let mut command = self.plan.command.clone();
        tokio::select! {
            biased;
            passed = self.timer.until(time_ns) => passed.map(|()| true).map_err(|error| Lost(error.to_string())),
            _ = command.wait_for(|command| *command != Command::Run) => Ok(false),
        }
    }

    async fn aborted(&self) {
        let mut command = self.plan.command.clone();
        // An error means that the owner is gone, which is a reason to end as well.
        let _ = command.wait_for(|command| *command == Command::Abort).await;
    }

    /// Reconnects once a second until the end of the schedule; `None` if nothing is left to send or all attempts
    /// failed.
    async fn redial(&self, mut dialled_ns: i64) -> Option<Socket> {
        self.records.borrow().next_unsent()?;
        let period_ns = REDIAL_PERIOD.as_nanos() as i64;
        loop {
            dialled_ns = monotonic_ns().max(dialled_ns + period_ns);
            if dialled_ns >= self.schedule_end_ns() || !self.wait_until_or_command(dialled_ns).await.unwrap_or(false) {
                return None;
            }
            if let Ok(socket) = dial(&self.plan.config.targets[self.index], REDIAL_PERIOD).await {
                self.reconnects.set(self.reconnects.get() + 1);
                return Some(socket);
            }
        }
    }

    /// Monotonic.
    fn schedule_end_ns(&self) -> i64 {
        self.plan.clock.to_monotonic_ns(self.plan.start_ns) + self.plan.config.duration_ns
    }
}
