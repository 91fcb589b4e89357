//! One HTTP/1.1 connection and the request that it carries.
//!
//! Edge-triggered: a socket is registered once, for everything. What has been read short is empty until the next event.

use super::answer::{AnswerParser, Piece};
use super::body::{Collected, Room, Wanted};
use super::classes::Kind;
use super::coding::Coded;
use super::dial::{Dial, Dialled, look_again};
use super::failure::{Failure, reason, tls_reason};
use super::io::{Buffers, HUNG_UP, Io, READS_AT_ONCE};
use crate::socket::has_unacknowledged;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{self, RecvFlags, SendFlags};
use rustls::ClientConnection;
use std::io::{BufRead, Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Connecting,
    /// A request is in flight.
    Busy,
    Idle,
}

/// The position of a complete response's body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// In the buffer of the last read.
    Buffered(Range<usize>),
    /// With the connection, because it came in pieces.
    Collected,
}

/// A complete response.
#[derive(Debug)]
pub(super) struct Answered {
    pub status: u16,
    pub coded: Coded,
    pub body: Body,
    /// Whether the connection may carry another request.
    pub reusable: bool,
}

/// What has become of a request; None: nothing yet.
pub(super) type Outcome = Option<Result<Answered, Failure>>;

/// One connection, which is opened again and again.
pub(super) struct Connection {
    state: State,
    /// The index in the order of the request in flight.
    request: usize,
    /// Complete responses since it was opened.
    pub answers: u32,
    /// Distinguishes events from those of an earlier socket.
    pub generation: u32,
    socket: Option<OwnedFd>,
    tls: Option<Box<ClientConnection>>,
    parser: AnswerParser,
    /// Bytes of the request that are sent; with TLS of `encrypted`.
    sent: usize,
    encrypted: Vec<u8>,
    last: bool,
    wanted: Wanted,
    piece: Option<Range<usize>>,
    collected: Collected,
    dial: Dial,
    /// When the first byte of the response was seen.
    pub first_byte_ns: Option<i64>,
}

impl Connection {
    /// `room`: for the bodies of its responses.
    pub fn new(room: Room) -> Self {
        Self {
            state: State::Closed,
            request: 0,
            answers: 0,
            generation: 0,
            socket: None,
            tls: None,
            parser: AnswerParser::default(),
            sent: 0,
            encrypted: Vec::new(),
            last: false,
            wanted: Wanted::Nothing,
            piece: None,
            collected: Collected::new(room),
            dial: Dial::default(),
            first_byte_ns: None,
        }
    }

    /// Sends the request with this place in the order, over a new connection if there is none.
    pub fn begin(&mut self, slot: u32, io: &mut Io, request: u32) -> Outcome {
        self.request = request as usize;
        self.parser.restart();
        self.collected.clear();
        (self.piece, self.sent, self.first_byte_ns) = (None, 0, None);
        if self.state == State::Idle {
            return self.send_request(io).map(Err);
        }
        self.dial = Dial::new();
        self.connect(slot, io).map(Err)
    }

    /// Completes a response: the connection becomes idle, or is closed.
    pub fn answered(&mut self, reusable: bool) {
        self.answers += 1;
        if reusable {
            self.state = State::Idle;
        } else {
            self.abandon();
        }
    }

    /// Forgets the socket; the server sees an orderly end.
    pub fn close(&mut self) {
        (self.socket, self.tls) = (None, None);
        self.state = State::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.answers = 0;
        self.collected.clear();
    }

    /// Closes a connection after its last response. If the server has not closed it yet, a reset frees this machine's
    /// port, which would otherwise stay in use for a minute; there are only about 28,000.
    fn abandon(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
        }
        self.close();
    }

    /// The redirect target of a complete response, if any.
    pub fn location(&self) -> Option<&str> {
        self.parser.location()
    }

    /// What the server calls itself.
    pub fn server(&self) -> Option<&str> {
        self.parser.server()
    }

    /// The body of a complete response.
    pub fn body<'b>(&'b self, body: &Body, buffers: &'b Buffers) -> &'b [u8] {
        match body {
            Body::Collected => self.collected.bytes(),
            Body::Buffered(range) if self.tls.is_some() => &buffers.plain[range.clone()],
            Body::Buffered(range) => &buffers.wire[range.clone()],
        }
    }

    /// Whether the request followed others on this connection, and received no byte of its response.
    pub fn is_reused_and_silent(&self) -> bool {
        self.answers > 0 && self.parser.is_untouched()
    }

    /// Whether the server's machine never acknowledged the whole request, as when its side was closed before: a server
    /// that read a request has acknowledged it.
    pub fn is_unacknowledged(&self) -> bool {
        self.socket.as_ref().is_some_and(has_unacknowledged)
    }

    /// What a timed-out request was waiting for.
    pub fn waited_for(&self) -> &'static str {
        match self.state {
            State::Connecting => "no connection within the timeout",
            _ if self.is_handshaking() => "the TLS handshake was not complete within the timeout",
            _ if self.parser.is_untouched() => "no response within the timeout",
            _ => "the response was not complete within the timeout",
        }
    }

    /// Handles an event. An idle connection that is closed or receives data is finished.
    pub fn event(&mut self, slot: u32, io: &mut Io, flags: EventFlags) -> Outcome {
        match self.state {
            State::Closed => None,
            State::Idle => {
                if flags.intersects(HUNG_UP | EventFlags::IN) {
                    self.idle_event(io);
                }
                None
            }
            State::Connecting => {
                if let Some(failure) = self.connecting_event(slot, io) {
                    return Some(Err(failure));
                }
                if self.state == State::Busy && flags.intersects(EventFlags::IN | HUNG_UP) {
                    return self.receive(slot, io, flags);
                }
                None
            }
            State::Busy => {
                if !self.is_sent(io)
                    && flags.contains(EventFlags::OUT)
                    && let Some(failure) = self.send(io)
                    && !flags.intersects(EventFlags::IN | HUNG_UP)
                {
                    return Some(Err(failure));
                }
                if flags.intersects(EventFlags::IN | HUNG_UP) { self.receive(slot, io, flags) } else { None }
            }
        }
    }

    /// TLS may need to send data between requests, such as another session ticket.
    fn idle_event(&mut self, io: &mut Io) {
        let Some(tls) = &mut self.tls else { return self.close() };
        let Some(socket) = &self.socket else { return };
        let read = match net::recv(socket, &mut io.buffers.wire[..], RecvFlags::empty()) {
            Ok((read, _)) => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => return self.close(),
        };
        io.counts.bytes_in += read as u64;
        let mut wire = &io.buffers.wire[..read];
        let quiet = read > 0
            && tls.read_tls(&mut wire).is_ok()
            && wire.is_empty()
            && tls
                .process_new_packets()
                .is_ok_and(|state| state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed());
        if !quiet {
            self.close();
        }
    }

    fn connect(&mut self, slot: u32, io: &mut Io) -> Option<Failure> {
        match self.dial.open(self.token(slot), io) {
            Ok(socket) => (self.socket, self.state) = (Some(socket), State::Connecting),
            Err(failure) => return Some(failure),
        }
        None
    }

    fn connecting_event(&mut self, slot: u32, io: &mut Io) -> Option<Failure> {
        let socket = self.socket.as_ref()?;
        match self.dial.advance(socket, io) {
            Err(failure) => return Some(failure),
            Ok(Dialled::Waiting) => return None,
            Ok(Dialled::Refused) => {
                self.socket = None;
                self.generation = self.generation.wrapping_add(1);
                return self.connect(slot, io);
            }
            Ok(Dialled::Connected) => {}
        }
        if let Some(tls) = &io.plan.tls {
            match tls.connection() {
                Ok(connection) => self.tls = Some(Box::new(connection)),
                Err(error) => return Some(Failure::new(Kind::Tls, error.to_string())),
            }
        }
        self.send_request(io)
    }

    fn send_request(&mut self, io: &mut Io) -> Option<Failure> {
        self.state = State::Busy;
        let limit = io.plan.requests_per_connection;
        self.last = limit > 0 && self.answers + 1 >= limit;
        if let Some(tls) = &mut self.tls {
            let request = io.plan.requests[self.request].bytes(self.last);
            tls.writer().write_all(request).expect("its buffer has no limit");
        }
        self.send(io)
    }

    fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    fn is_sent(&self, io: &Io) -> bool {
        match &self.tls {
            Some(tls) => !tls.wants_write() && self.sent == self.encrypted.len(),
            None => self.sent == io.plan.requests[self.request].bytes(self.last).len(),
        }
    }

    /// Sends as much as the socket accepts.
    fn send(&mut self, io: &mut Io) -> Option<Failure> {
        let socket = self.socket.as_ref()?;
        loop {
            if let Some(tls) = &mut self.tls
                && self.sent == self.encrypted.len()
            {
                self.encrypted.clear();
                self.sent = 0;
                while tls.wants_write() {
                    tls.write_tls(&mut self.encrypted).expect("a vector takes any number of bytes");
                }
            }
            let bytes = match &self.tls {
                Some(_) => &self.encrypted[self.sent..],
                None => &io.plan.requests[self.request].bytes(self.last)[self.sent..],
            };
            if bytes.is_empty() {
                return None;
            }
            match net::send(socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.sent += count;
                    io.counts.bytes_out += count as u64;
                    if self.tls.is_none() && count == bytes.len() {
                        return None;
                    }
                }
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                Err(error) => return Some(self.lost(error)),
            }
        }
    }

    fn receive(&mut self, slot: u32, io: &mut Io, flags: EventFlags) -> Outcome {
        for _ in 0..READS_AT_ONCE {
            let Some(socket) = &self.socket else { return None };
            let read = match net::recv(socket, &mut io.buffers.wire[..], RecvFlags::empty()) {
                Ok((0, _)) => return Some(self.end_of_stream()),
                Ok((read, _)) => read,
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => continue,
                Err(error) => return Some(Err(self.lost(error))),
            };
            io.counts.bytes_in += read as u64;
            let outcome =
                if self.tls.is_some() { self.decrypt(io, read) } else { self.feed(io, |buffers| &buffers.wire, read) };
            if let Some(result) = outcome {
                return Some(result.map(|answered| self.check_end(io, answered, flags)));
            }
            if read < io.buffers.wire.len() && !flags.intersects(HUNG_UP) {
                return None;
            }
        }
        if let Some(socket) = &self.socket {
            look_again(socket, self.token(slot), io);
        }
        None
    }

    /// Identifies its events in the queue, as opposed to those of the slot's previous connection.
    fn token(&self, slot: u32) -> u64 {
        u64::from(self.generation) << 32 | u64::from(slot)
    }

    /// A server that has closed its side, or has responded before reading the request, accepts no further request.
    fn check_end(&self, io: &Io, answered: Answered, flags: EventFlags) -> Answered {
        let reusable = answered.reusable && !flags.intersects(HUNG_UP) && self.is_sent(io);
        Answered { reusable, ..answered }
    }

    /// Passes `read` bytes of a buffer to the parser.
    fn feed(&mut self, io: &Io, buffer: impl Fn(&Buffers) -> &[u8], read: usize) -> Outcome {
        self.first_byte_ns.get_or_insert(io.looked_ns);
        let input = &buffer(&io.buffers)[..read];
        let mut at = 0;
        loop {
            match self.parser.advance(input, &mut at) {
                Err(malformed) => return Some(Err(malformed.into())),
                Ok(Piece::Head) => {
                    let expectation = &io.plan.requests[self.request].expectation;
                    self.wanted = Wanted::of(expectation, self.parser.status());
                }
                Ok(Piece::Body(range)) => {
                    if self.wanted != Wanted::Nothing
                        && let Err(failure) = self.keep(input, range)
                    {
                        return Some(Err(failure));
                    }
                }
                Ok(Piece::More) => return self.collect_piece(input).err().map(Err),
                Ok(Piece::Done) => return Some(self.complete(input, at == input.len())),
            }
        }
    }

    /// A body that comes in one piece is not copied.
    fn keep(&mut self, input: &[u8], range: Range<usize>) -> Result<(), Failure> {
        if self.piece.is_none() && self.collected.bytes().is_empty() {
            self.piece = Some(range);
            return Ok(());
        }
        self.collect_piece(input)?;
        self.collected.add(&input[range], self.wanted)
    }

    fn collect_piece(&mut self, input: &[u8]) -> Result<(), Failure> {
        self.piece.take().map_or(Ok(()), |range| self.collected.add(&input[range], self.wanted))
    }

    fn complete(&mut self, input: &[u8], nothing_follows: bool) -> Result<Answered, Failure> {
        let body = match self.piece.take() {
            Some(range) if self.collected.bytes().is_empty() => Body::Buffered(range),
            piece => {
                self.piece = piece;
                self.collect_piece(input)?;
                Body::Collected
            }
        };
        let reusable = self.parser.keep_alive() && nothing_follows && !self.last;
        Ok(Answered { status: self.parser.status(), coded: self.parser.coded(), body, reusable })
    }

    fn end_of_stream(&mut self) -> Result<Answered, Failure> {
        if self.parser.ends_with_connection() && self.tls.is_none() {
            return Ok(Answered {
                status: self.parser.status(),
                coded: self.parser.coded(),
                body: Body::Collected,
                reusable: false,
            });
        }
        if self.is_handshaking() {
            return Err(Failure::new(Kind::Tls, "the server closed the connection during the handshake"));
        }
        let detail = match (self.parser.is_untouched(), self.answers) {
            _ if self.parser.ends_with_connection() => "TLS did not confirm the end of the response",
            (true, 0) => "before any response",
            (true, _) => "before the response, on a kept-alive connection",
            (false, _) => "in the middle of a response",
        };
        Err(Failure::new(Kind::Closed, detail))
    }

    fn lost(&self, error: Errno) -> Failure {
        match error {
            Errno::CONNRESET | Errno::PIPE if self.is_handshaking() => {
                Failure::new(Kind::Tls, "the server reset the connection during the handshake")
            }
            Errno::CONNRESET | Errno::PIPE if self.parser.is_untouched() && self.answers > 0 => {
                Failure::new(Kind::Reset, "before the response, on a kept-alive connection")
            }
            Errno::CONNRESET | Errno::PIPE if self.parser.is_untouched() => {
                Failure::new(Kind::Reset, "before any response")
            }
            Errno::CONNRESET | Errno::PIPE => Failure::new(Kind::Reset, "in the middle of a response"),
            error => Failure::new(Kind::Reset, reason(error)),
        }
    }

    /// Passes received bytes to TLS, and the decrypted ones to the parser.
    fn decrypt(&mut self, io: &mut Io, read: usize) -> Outcome {
        let mut tls = self.tls.take()?;
        let outcome = self.decrypt_with(&mut tls, io, read);
        self.tls = Some(tls);
        // The handshake's next step, or an alert.
        match (self.send(io), outcome) {
            (Some(failure), None) => Some(Err(failure)),
            (_, outcome) => outcome,
        }
    }

    fn decrypt_with(&mut self, tls: &mut ClientConnection, io: &mut Io, read: usize) -> Outcome {
        let mut outcome: Outcome = None;
        let mut begin = 0;
        while begin < read {
            let mut wire = &io.buffers.wire[begin..read];
            let before = wire.len();
            let taken = tls.read_tls(&mut wire).map_err(|error| Failure::new(Kind::Tls, error.to_string()));
            let state = taken
                .and_then(|_| tls.process_new_packets().map_err(|error| Failure::new(Kind::Tls, tls_reason(&error))));
            begin += before - wire.len();
            let state = match state {
                Ok(state) => state,
                Err(failure) => return Some(Err(failure)),
            };
            while outcome.is_none() {
                match tls.reader().read(&mut io.buffers.plain) {
                    Ok(count @ 1..) => outcome = self.feed(io, |buffers| &buffers.plain, count),
                    _ => break,
                }
            }
            // Bytes after a complete response make the connection unusable, as without TLS.
            if let Some(Ok(answered)) = &mut outcome {
                answered.reusable &= tls.reader().fill_buf().is_err() && !state.peer_has_closed();
            }
            if state.peer_has_closed() && outcome.is_none() {
                return Some(match self.parser.ends_with_connection() {
                    true => Ok(Answered {
                        status: self.parser.status(),
                        coded: self.parser.coded(),
                        body: Body::Collected,
                        reusable: false,
                    }),
                    false => self.end_of_stream(),
                });
            }
        }
        outcome
    }
}
