//! What carries the requests of a thread's clients: a connection each, or streams of shared connections.

use super::connection::{Body, Connection, Outcome};
use super::io::{Buffers, Io};
use super::order::Protocol;
use super::plan::Plan;
use super::sessions::Sessions;

/// By client, whose number is its slot.
pub(super) enum Carrier {
    Http1(Vec<Connection>),
    Http2(Sessions),
}

impl Carrier {
    pub fn new(plan: &Plan, clients: usize) -> Self {
        match plan.protocol {
            Protocol::Http1 => Self::Http1((0..clients).map(|_| Connection::new(plan.room.clone())).collect()),
            Protocol::Http2 => Self::Http2(Sessions::new(plan, clients)),
        }
    }

    /// Sends the request with this place in the order, over a new connection if there is none.
    pub fn begin(&mut self, slot: u32, io: &mut Io, request: u32) -> Outcome {
        match self {
            Self::Http1(connections) => connections[slot as usize].begin(slot, io, request),
            Self::Http2(sessions) => sessions.begin(slot, io, request),
        }
    }

    /// What became of requests while others were begun or sent, one at a time.
    pub fn next_ended(&mut self, io: &mut Io) -> Option<(u32, Outcome)> {
        let Self::Http2(sessions) = self else { return None };
        loop {
            if let Some(ended) = sessions.next_ended() {
                return Some(ended);
            }
            if !sessions.flush(io) {
                return None;
            }
        }
    }

    /// Completes a response.
    pub fn answered(&mut self, slot: u32, reusable: bool) {
        if let Self::Http1(connections) = self {
            connections[slot as usize].answered(reusable);
        }
    }

    /// Discards the rest of a failed request.
    pub fn close(&mut self, slot: u32) {
        match self {
            Self::Http1(connections) => connections[slot as usize].close(),
            Self::Http2(sessions) => sessions.close(slot),
        }
    }

    /// The redirect target of a complete response, if any.
    pub fn location(&self, slot: u32) -> Option<&str> {
        match self {
            Self::Http1(connections) => connections[slot as usize].location(),
            Self::Http2(sessions) => sessions.stream(slot).location(),
        }
    }

    /// The body of a complete response.
    pub fn body<'b>(&'b self, slot: u32, body: &Body, buffers: &'b Buffers) -> &'b [u8] {
        match self {
            Self::Http1(connections) => connections[slot as usize].body(body, buffers),
            Self::Http2(sessions) => sessions.stream(slot).body(),
        }
    }

    /// Number of complete responses on the connection of a failed request.
    pub fn answers(&self, slot: u32) -> u32 {
        match self {
            Self::Http1(connections) => connections[slot as usize].answers,
            Self::Http2(sessions) => sessions.stream(slot).circumstances.answers,
        }
    }

    /// Whether the failed request followed others on its connection, and received no byte.
    pub fn is_reused_and_silent(&self, slot: u32) -> bool {
        match self {
            Self::Http1(connections) => connections[slot as usize].is_reused_and_silent(),
            Self::Http2(sessions) => sessions.stream(slot).circumstances.is_reused_and_silent,
        }
    }

    /// Whether the server's machine never acknowledged the whole request, as when its side was closed before: a server
    /// that read a request has acknowledged it.
    pub fn is_unacknowledged(&self, slot: u32) -> bool {
        match self {
            Self::Http1(connections) => connections[slot as usize].is_unacknowledged(),
            Self::Http2(sessions) => sessions.stream(slot).circumstances.is_unacknowledged,
        }
    }

    /// What a timed-out request was waiting for.
    pub fn waited_for(&self, slot: u32) -> &'static str {
        match self {
            Self::Http1(connections) => connections[slot as usize].waited_for(),
            Self::Http2(sessions) => sessions.waited_for(slot),
        }
    }

    /// When the first byte of the response to the last request was seen.
    pub fn first_byte_ns(&self, slot: u32) -> Option<i64> {
        match self {
            Self::Http1(connections) => connections[slot as usize].first_byte_ns,
            Self::Http2(sessions) => sessions.stream(slot).first_byte_ns,
        }
    }

    /// What the server calls itself.
    pub fn server(&self) -> Option<String> {
        match self {
            Self::Http1(connections) => connections.iter().find_map(Connection::server).map(str::to_owned),
            Self::Http2(sessions) => sessions.server.clone(),
        }
    }
}
