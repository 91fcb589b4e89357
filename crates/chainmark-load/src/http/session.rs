//! One HTTP/2 connection: its socket, its TLS, and what speaks HTTP/2 over them.

use super::classes::Kind;
use super::dial::{Dial, Dialled, look_again};
use super::failure::{Failure, reason, tls_reason};
use super::io::{HUNG_UP, Io};
use super::pipe::Port;
use super::request::Framed;
use super::tls::HTTP2;
use crate::socket::has_unacknowledged;
use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{self, RecvFlags, SendFlags};
use rustls::ClientConnection;
use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

/// Limit of unsolicited data from a server. Received data are consumed at once, so this reserves no memory.
const STREAM_WINDOW_BYTES: u32 = 16 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
const MAX_HEAD_BYTES: u32 = 64 << 10;
/// Until the server states its number of streams, only one is opened, since it might refuse a second.
const STREAMS_AT_FIRST: usize = 1;

struct Speech {
    sender: SendRequest<Bytes>,
    connection: client::Connection<Port, Bytes>,
}

/// One connection.
pub(super) struct Session {
    /// Of clients that share it.
    pub group: usize,
    /// Distinguishes its events from those of earlier connections.
    pub generation: u32,
    /// Clients whose requests wait for the connection.
    pub waiting: Vec<u32>,
    /// Requests in flight.
    pub active: usize,
    /// Requests, and complete responses, since it was opened.
    pub begun: u32,
    pub answers: u32,
    /// Number of times that data arrived from the server.
    pub heard: u64,
    /// No data have arrived since it became idle.
    pub is_silent: bool,
    /// It gets no further request.
    pub is_retired: bool,
    /// The server has sent GOAWAY, which is counted.
    pub has_goaway: bool,
    /// It has something to send, or to be looked at.
    pub is_dirty: bool,
    socket: OwnedFd,
    dial: Dial,
    tls: Option<Box<ClientConnection>>,
    pipe: Port,
    speech: Option<Speech>,
    /// Data that the socket has not accepted: from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
}

impl Session {
    /// A connecting one.
    pub fn dial(group: usize, generation: u32, token: u64, io: &mut Io) -> Result<Self, Failure> {
        let mut dial = Dial::new();
        let socket = dial.open(token, io)?;
        Ok(Self {
            group,
            generation,
            waiting: Vec::new(),
            active: 0,
            begun: 0,
            answers: 0,
            heard: 0,
            is_silent: false,
            is_retired: false,
            has_goaway: false,
            is_dirty: false,
            socket,
            dial,
            tls: None,
            pipe: Port::default(),
            speech: None,
            unsent: Vec::new(),
            sent: 0,
        })
    }

    pub fn is_connecting(&self) -> bool {
        self.speech.is_none()
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Whether the server's machine never acknowledged all sent data.
    pub fn is_unacknowledged(&self) -> bool {
        has_unacknowledged(&self.socket)
    }

    /// Handles the end of connecting, or tries the next address; returns whether it can be used.
    pub fn connected(&mut self, token: u64, io: &mut Io) -> Result<bool, Failure> {
        match self.dial.advance(&self.socket, io)? {
            Dialled::Waiting => return Ok(false),
            Dialled::Refused => {
                self.socket = self.dial.open(token, io)?;
                return Ok(false);
            }
            Dialled::Connected => {}
        }
        if let Some(tls) = &io.plan.tls {
            let tls = tls.connection().map_err(|error| Failure::new(Kind::Tls, error.to_string()))?;
            self.tls = Some(Box::new(tls));
        }
        self.speech = Some(Speech::begin(self.pipe.clone())?);
        Ok(true)
    }

    /// Submits a request, to be sent when the connection is polled. None: it accepts no more.
    pub fn ask(&mut self, request: &Framed) -> Option<ResponseFuture> {
        // Only a request that waits to be opened blocks the next one, and each has its own sender.
        let mut sender = self.speech.as_ref()?.sender.clone();
        let ends = request.body.is_empty();
        let (answer, mut body) = sender.send_request(request.head.clone(), ends).ok()?;
        if !ends {
            body.send_data(request.body.clone(), true).ok()?;
        }
        if self.active == 0 {
            self.is_silent = true;
        }
        self.active += 1;
        self.begun += 1;
        Some(answer)
    }

    /// Lets HTTP/2 process the received data, and produce data to send; ready: it has no more.
    pub fn poll(&mut self, context: &mut Context) -> Poll<Result<(), h2::Error>> {
        match &mut self.speech {
            Some(speech) => Pin::new(&mut speech.connection).poll(context),
            None => Poll::Pending,
        }
    }

    /// Why the server ended the connection, if it stated a reason before the end.
    pub fn last_words(&mut self) -> Option<Failure> {
        self.pipe.0.borrow_mut().has_ended = true;
        match self.poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(Err(error)) if error.is_go_away() && error.is_remote() => Some(super::stream::failure(&error)),
            _ => None,
        }
    }

    /// Makes the rest of the data arrive with a later event.
    pub fn look_again(&self, token: u64, io: &Io) {
        look_again(&self.socket, token, io);
    }

    /// Reads once; returns whether there may be more.
    pub fn receive(&mut self, io: &mut Io, flags: EventFlags) -> Result<bool, Failure> {
        let read = match net::recv(&self.socket, &mut io.buffers.wire[..], RecvFlags::empty()) {
            Ok((0, _)) => return Err(self.closed()),
            Ok((read, _)) => read,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(self.lost(error)),
        };
        io.counts.bytes_in += read as u64;
        if self.tls.is_some() {
            self.decrypt(io, read)?;
        } else {
            self.hear(&io.buffers.wire[..read])?;
        }
        Ok(read == io.buffers.wire.len() || flags.intersects(HUNG_UP))
    }

    /// Passes received bytes to TLS, and the decrypted ones to HTTP/2.
    fn decrypt(&mut self, io: &mut Io, read: usize) -> Result<(), Failure> {
        let Some(mut tls) = self.tls.take() else { return Ok(()) };
        let mut wire = &io.buffers.wire[..read];
        let mut outcome = Ok(());
        while outcome.is_ok() && !wire.is_empty() {
            outcome = match tls.read_tls(&mut wire) {
                Err(error) => Err(Failure::new(Kind::Tls, error.to_string())),
                Ok(_) => self.take_plain(&mut tls, &mut io.buffers.plain),
            };
        }
        self.tls = Some(tls);
        outcome
    }

    fn take_plain(&mut self, tls: &mut ClientConnection, plain: &mut [u8]) -> Result<(), Failure> {
        let state = tls.process_new_packets().map_err(|error| refusal(&error))?;
        if !tls.is_handshaking() && tls.alpn_protocol() != Some(HTTP2) {
            return Err(no_common_protocol());
        }
        while let Ok(count @ 1..) = tls.reader().read(plain) {
            self.hear(&plain[..count])?;
        }
        if state.peer_has_closed() { Err(self.closed()) } else { Ok(()) }
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.heard == 0 {
            match bytes {
                [b'H', b'T', b'T', b'P', b'/', b'1', ..] => {
                    return Err(Failure::new(
                        Kind::Protocol,
                        "the server uses HTTP/1, but the request was sent in HTTP/2",
                    ));
                }
                [0x15 | 0x16, 3, ..] => {
                    return Err(Failure::new(
                        Kind::Protocol,
                        "the server uses TLS, but the request was sent without TLS",
                    ));
                }
                _ => {}
            }
        }
        self.heard += 1;
        self.is_silent = false;
        self.pipe.0.borrow_mut().receive(bytes);
        Ok(())
    }

    /// Sends as much as the socket accepts; returns whether HTTP/2 has more than fits now.
    pub fn send(&mut self, io: &mut Io) -> Result<bool, Failure> {
        loop {
            if self.sent == self.unsent.len() {
                self.unsent.clear();
                self.sent = 0;
                self.take_outgoing();
                if self.unsent.is_empty() {
                    return Ok(std::mem::take(&mut self.pipe.0.borrow_mut().is_full));
                }
            }
            match net::send(&self.socket, &self.unsent[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.sent += count;
                    io.counts.bytes_out += count as u64;
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    fn take_outgoing(&mut self) {
        let mut pipe = self.pipe.0.borrow_mut();
        let Some(tls) = &mut self.tls else {
            std::mem::swap(&mut pipe.outgoing, &mut self.unsent);
            return;
        };
        tls.writer().write_all(&pipe.outgoing).expect("its buffer has no limit");
        pipe.outgoing.clear();
        while tls.wants_write() {
            tls.write_tls(&mut self.unsent).expect("a vector takes any number of bytes");
        }
    }

    /// Ends the socket with a reset, which frees this machine's port, which would otherwise stay in use for a minute.
    pub fn abandon(&self) {
        let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    fn closed(&self) -> Failure {
        if self.is_handshaking() {
            return Failure::new(Kind::Tls, "the server closed the connection during the handshake");
        }
        Failure::new(Kind::Closed, "")
    }

    fn lost(&self, error: Errno) -> Failure {
        match error {
            Errno::CONNRESET | Errno::PIPE if self.is_handshaking() => {
                Failure::new(Kind::Tls, "the server reset the connection during the handshake")
            }
            Errno::CONNRESET | Errno::PIPE => Failure::new(Kind::Reset, ""),
            error => Failure::new(Kind::Reset, reason(error)),
        }
    }
}

impl Speech {
    fn begin(port: Port) -> Result<Self, Failure> {
        let mut builder = client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(MAX_HEAD_BYTES)
            .initial_max_send_streams(STREAMS_AT_FIRST);
        let begun = pin!(builder.handshake(port)).poll(&mut Context::from_waker(std::task::Waker::noop()));
        match begun {
            Poll::Ready(Ok((sender, connection))) => Ok(Self { sender, connection }),
            Poll::Ready(Err(error)) => Err(super::stream::failure(&error)),
            Poll::Pending => unreachable!("a preface waits for nobody"),
        }
    }
}

fn refusal(error: &rustls::Error) -> Failure {
    match error {
        rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => no_common_protocol(),
        error => Failure::new(Kind::Tls, tls_reason(error)),
    }
}

fn no_common_protocol() -> Failure {
    Failure::new(Kind::Tls, "the server does not agree to HTTP/2 (ALPN)")
}
