//! The HTTP/2 connections of a thread, and the clients that share them.

use super::classes::Kind;
use super::connection::Outcome;
use super::failure::Failure;
use super::io::{HUNG_UP, Io, READS_AT_ONCE};
use super::plan::Plan;
use super::session::Session;
use super::stream::{self, Circumstances, Stream, Woken};
use rustix::event::epoll::EventFlags;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Rings when a connection has something to do that no byte from the server makes it do.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Clients in groups; each group has at most one connection that accepts requests, and possibly others that are ending.
pub(super) struct Sessions {
    /// Clients that share a connection.
    group_size: usize,
    streams: Vec<Stream>,
    sessions: Vec<Option<Session>>,
    /// By group.
    current: Vec<Option<usize>>,
    generation: u32,
    dirty: Vec<usize>,
    /// What has become of requests, and is not yet counted.
    ended: VecDeque<(u32, Outcome)>,
    woken: Woken,
    bell: Arc<Bell>,
    waker: Waker,
    pub server: Option<String>,
}

impl Sessions {
    pub fn new(plan: &Plan, clients: usize) -> Self {
        let woken = Woken::default();
        let bell = Arc::<Bell>::default();
        Self {
            group_size: plan.streams,
            streams: (0..clients as u32).map(|slot| Stream::new(slot, &woken, plan.room.clone())).collect(),
            sessions: Vec::new(),
            current: vec![None; clients.div_ceil(plan.streams)],
            generation: 0,
            dirty: Vec::new(),
            ended: VecDeque::new(),
            woken,
            waker: bell.clone().into(),
            bell,
            server: None,
        }
    }

    pub fn stream(&self, slot: u32) -> &Stream {
        &self.streams[slot as usize]
    }

    /// The next request that has ended.
    pub fn next_ended(&mut self) -> Option<(u32, Outcome)> {
        self.ended.pop_front()
    }

    /// Sends a client's request, over a new connection if its group has none.
    pub fn begin(&mut self, slot: u32, io: &mut Io, request: u32) -> Outcome {
        let group = slot as usize / self.group_size;
        loop {
            let index = match self.current[group] {
                Some(index) => index,
                None => match self.open(group, io) {
                    Ok(index) => index,
                    Err(failure) => {
                        let stream = &mut self.streams[slot as usize];
                        (stream.circumstances, stream.first_byte_ns) = (Circumstances::default(), None);
                        return Some(Err(failure));
                    }
                },
            };
            self.streams[slot as usize].begin(index, request as usize);
            let Some(session) = &mut self.sessions[index] else { unreachable!("a current connection is there") };
            if session.is_connecting() {
                session.waiting.push(slot);
                return None;
            }
            if self.ask(slot, io) {
                if self.group_size == 1 {
                    self.drive(index, io);
                }
                return None;
            }
            // The server has sent GOAWAY on this connection, and the next one is connecting.
            self.count_goaway(index, io);
            self.retire(index);
        }
    }

    fn open(&mut self, group: usize, io: &mut Io) -> Result<usize, Failure> {
        let index = self.sessions.iter().position(Option::is_none).unwrap_or(self.sessions.len());
        self.generation = self.generation.wrapping_add(1);
        let session = Session::dial(group, self.generation, token(self.generation, index), io)?;
        if index == self.sessions.len() {
            self.sessions.push(None);
        }
        self.sessions[index] = Some(session);
        self.current[group] = Some(index);
        Ok(index)
    }

    /// Submits a waiting client's request; false: the connection accepts no more.
    fn ask(&mut self, slot: u32, io: &Io) -> bool {
        let stream = &mut self.streams[slot as usize];
        let index = stream.session;
        let Some(session) = &mut self.sessions[index] else { return false };
        let heard_before = session.heard;
        let Some(answer) = session.ask(io.plan.requests[stream.request()].framed()) else { return false };
        stream.heard_before = heard_before;
        stream.requested(answer);
        if session.begun == io.plan.requests_per_connection {
            session.is_retired = true;
            self.current[session.group] = None;
        }
        self.soil(index);
        true
    }

    /// Notes that a connection is to be driven.
    fn soil(&mut self, index: usize) {
        if let Some(session) = &mut self.sessions[index]
            && !session.is_dirty
        {
            session.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Drives the connections that have data to send; returns whether there were any.
    pub fn flush(&mut self, io: &mut Io) -> bool {
        let dirty = std::mem::take(&mut self.dirty);
        for &index in &dirty {
            if self.sessions[index].as_ref().is_some_and(|session| session.is_dirty) {
                self.drive(index, io);
            }
        }
        !dirty.is_empty()
    }

    pub fn event(&mut self, token: u64, io: &mut Io, flags: EventFlags) {
        let index = token as u32 as usize;
        let Some(Some(session)) = self.sessions.get_mut(index) else { return };
        if session.generation != (token >> 32) as u32 {
            return;
        }
        if session.is_connecting() {
            match session.connected(token, io) {
                Err(failure) => return self.fail(index, &failure, io),
                Ok(false) => return,
                Ok(true) => self.ask_all_waiting(index, io),
            }
        }
        self.drive(index, io);
        if flags.intersects(EventFlags::IN | HUNG_UP) {
            self.receive(index, io, flags);
        }
    }

    fn ask_all_waiting(&mut self, index: usize, io: &mut Io) {
        let Some(session) = &mut self.sessions[index] else { return };
        for slot in std::mem::take(&mut session.waiting) {
            if !self.ask(slot, io) {
                let failure = Failure::new(Kind::Protocol, "a new HTTP/2 connection does not accept a request");
                self.end(slot, Some(Err(failure)));
            }
        }
    }

    fn receive(&mut self, index: usize, io: &mut Io, flags: EventFlags) {
        for _ in 0..READS_AT_ONCE {
            let Some(session) = &mut self.sessions[index] else { return };
            let received = session.receive(io, flags);
            self.drive(index, io);
            match received {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => return self.fail(index, &failure, io),
            }
        }
        if let Some(session) = &self.sessions[index] {
            session.look_again(token(session.generation, index), io);
        }
    }

    /// Lets HTTP/2 and the clients process received data, and sends data, until there is nothing left to do.
    fn drive(&mut self, index: usize, io: &mut Io) {
        loop {
            let Some(session) = &mut self.sessions[index] else { return };
            session.is_dirty = false;
            self.bell.0.store(false, Relaxed);
            let polled = session.poll(&mut Context::from_waker(&self.waker));
            let has_news = self.advance_woken(index, io);
            let Some(session) = &mut self.sessions[index] else { return };
            let sent = session.send(io);
            if let Poll::Ready(result) = polled {
                let failure = result.map_or_else(|error| stream::failure(&error), |()| gone());
                if failure.is_unprocessed {
                    self.count_goaway(index, io);
                }
                return self.fail(index, &failure, io);
            }
            match sent {
                Err(failure) => return self.fail(index, &failure, io),
                Ok(is_full) if !is_full && !has_news && !self.bell.0.load(Relaxed) => break,
                Ok(_) => {}
            }
        }
        self.remove_if_over(index);
    }

    /// Lets the clients of a connection process their events; returns whether there were any.
    fn advance_woken(&mut self, index: usize, io: &mut Io) -> bool {
        let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        for &slot in &woken {
            let stream = &mut self.streams[slot as usize];
            if stream.is_resting() || stream.session != index {
                continue;
            }
            let outcome = stream.advance(io.plan, io.looked_ns, &mut self.server);
            if outcome.is_some() {
                self.end(slot, outcome);
            }
        }
        !woken.is_empty()
    }

    /// Ends a client's request.
    fn end(&mut self, slot: u32, outcome: Outcome) {
        let stream = &mut self.streams[slot as usize];
        let was_waiting = stream.is_waiting();
        stream.end();
        let index = stream.session;
        if let Some(session) = &mut self.sessions[index] {
            stream.circumstances = Circumstances { answers: session.answers, ..Circumstances::default() };
            if !was_waiting {
                session.active -= 1;
            }
            match &outcome {
                Some(Ok(_)) => session.answers += 1,
                Some(Err(failure)) if failure.is_unprocessed => self.stop_using(index),
                _ => {}
            }
        }
        if outcome.is_some() {
            self.ended.push_back((slot, outcome));
        }
    }

    fn count_goaway(&mut self, index: usize, io: &mut Io) {
        if let Some(session) = &mut self.sessions[index] {
            io.counts.goaway_closed += u64::from(!session.has_goaway);
            session.has_goaway = true;
        }
    }

    fn stop_using(&mut self, index: usize) {
        if let Some(session) = &mut self.sessions[index] {
            session.is_retired = true;
            if self.current[session.group] == Some(index) {
                self.current[session.group] = None;
            }
        }
    }

    /// A connection is lost, with all its requests in flight.
    fn fail(&mut self, index: usize, failure: &Failure, io: &mut Io) {
        // Errors of single streams are more specific than the end of all of them.
        self.advance_woken(index, io);
        let Some(mut session) = self.sessions[index].take() else { return };
        let last_words = session.last_words();
        let failure = last_words.as_ref().unwrap_or(failure);
        if self.current[session.group] == Some(index) {
            self.current[session.group] = None;
        }
        let begin = session.group * self.group_size;
        for slot in begin..(begin + self.group_size).min(self.streams.len()) {
            let stream = &mut self.streams[slot];
            if stream.is_resting() || stream.session != index {
                continue;
            }
            let is_untouched = stream.is_untouched();
            stream.circumstances = Circumstances {
                answers: session.answers,
                is_reused_and_silent: session.answers > 0 && session.is_silent && is_untouched,
                is_unacknowledged: session.is_unacknowledged(),
            };
            stream.end();
            let failure = in_words(failure, is_untouched, session.answers);
            self.ended.push_back((slot as u32, Some(Err(failure))));
        }
    }

    /// Discards the rest of a client's request: it timed out.
    pub fn close(&mut self, slot: u32) {
        let stream = &mut self.streams[slot as usize];
        if stream.is_resting() {
            return;
        }
        let (index, heard_before, was_waiting) = (stream.session, stream.heard_before, stream.is_waiting());
        self.end(slot, None);
        let Some(session) = &mut self.sessions[index] else { return };
        if was_waiting {
            session.waiting.retain(|&other| other != slot);
            if session.waiting.is_empty() {
                self.retire(index);
            }
            return;
        }
        // The owner may be gone.
        if session.heard == heard_before {
            self.retire(index);
        }
        self.soil(index);
    }

    /// A connection gets no further request, and is closed when the last one has ended.
    fn retire(&mut self, index: usize) {
        self.stop_using(index);
        self.remove_if_over(index);
    }

    fn remove_if_over(&mut self, index: usize) {
        if let Some(session) = &self.sessions[index]
            && session.is_retired
            && session.active == 0
            && session.waiting.is_empty()
        {
            session.abandon();
            self.sessions[index] = None;
        }
    }

    /// What a timed-out request was waiting for.
    pub fn waited_for(&self, slot: u32) -> &'static str {
        let stream = &self.streams[slot as usize];
        match &self.sessions[stream.session] {
            _ if stream.is_waiting() => "no connection within the timeout",
            Some(session) if session.is_handshaking() => "the TLS handshake was not complete within the timeout",
            _ if stream.is_untouched() => "no response within the timeout",
            _ => "the response was not complete within the timeout",
        }
    }
}

fn token(generation: u32, index: usize) -> u64 {
    u64::from(generation) << 32 | index as u64
}

/// All streams have ended, and the server has sent GOAWAY on the connection.
fn gone() -> Failure {
    Failure { is_unprocessed: true, ..Failure::new(Kind::GoAway, "GOAWAY with NO_ERROR") }
}

/// Where in a request the loss of its connection was met.
fn in_words(failure: &Failure, is_untouched: bool, answers: u32) -> Failure {
    if !failure.detail.is_empty() {
        return failure.clone();
    }
    let detail = match (is_untouched, answers) {
        (true, 0) => "before any response",
        (true, _) => "before the response, on a kept-alive connection",
        (false, _) => "in the middle of a response",
    };
    Failure::new(failure.kind, detail)
}
