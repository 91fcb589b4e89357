//! One client of an HTTP/2 connection: its request in flight, and the received part of the response.

use super::answer::{MAX_NAME_BYTES, REDIRECTS};
use super::body::{Collected, Room, Wanted};
use super::classes::Kind;
use super::coding::Coded;
use super::connection::{Answered, Body, Outcome};
use super::failure::Failure;
use super::plan::Plan;
use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, LOCATION, SERVER};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The clients of a thread whose streams have events.
pub(super) type Woken = Arc<Mutex<Vec<u32>>>;

struct Bell {
    slot: u32,
    woken: Woken,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}

enum State {
    Resting,
    /// For its connection.
    Waiting,
    Requested(ResponseFuture),
    Reading(RecvStream),
}

/// The state of the connection when a request on it failed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Circumstances {
    /// Number of earlier complete responses.
    pub answers: u32,
    /// The request found the connection at rest after others, and nothing has come since.
    pub is_reused_and_silent: bool,
    pub is_unacknowledged: bool,
}

/// One client.
pub(super) struct Stream {
    state: State,
    /// The connection that carries the request; of no meaning at rest.
    pub session: usize,
    /// The amount that its connection had received before the request.
    pub heard_before: u64,
    pub circumstances: Circumstances,
    request: usize,
    status: u16,
    coded: Coded,
    location: Option<Box<str>>,
    wanted: Wanted,
    /// A body that comes in one piece is not copied.
    piece: Option<Bytes>,
    collected: Collected,
    waker: Waker,
    /// When the head of the response was seen.
    pub first_byte_ns: Option<i64>,
}

impl Stream {
    pub fn new(slot: u32, woken: &Woken, room: Room) -> Self {
        Self {
            state: State::Resting,
            session: 0,
            heard_before: 0,
            circumstances: Circumstances::default(),
            request: 0,
            status: 0,
            coded: Coded::Plain,
            location: None,
            wanted: Wanted::Nothing,
            piece: None,
            collected: Collected::new(room),
            waker: Arc::new(Bell { slot, woken: woken.clone() }).into(),
            first_byte_ns: None,
        }
    }

    pub fn request(&self) -> usize {
        self.request
    }

    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }

    pub fn body(&self) -> &[u8] {
        self.piece.as_deref().unwrap_or_else(|| self.collected.bytes())
    }

    /// Accepts a request, which waits for its connection.
    pub fn begin(&mut self, session: usize, request: usize) {
        self.state = State::Waiting;
        (self.session, self.request) = (session, request);
        (self.status, self.coded, self.location, self.piece) = (0, Coded::Plain, None, None);
        self.first_byte_ns = None;
        self.collected.clear();
    }

    /// The request is being sent. The first poll of the response registers for events.
    pub fn requested(&mut self, answer: ResponseFuture) {
        self.state = State::Requested(answer);
        self.waker.wake_by_ref();
    }

    /// Discards the request; a response in flight is cancelled.
    pub fn end(&mut self) {
        self.state = State::Resting;
    }

    pub fn is_resting(&self) -> bool {
        matches!(self.state, State::Resting)
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting)
    }

    /// Whether no part of a response has arrived.
    pub fn is_untouched(&self) -> bool {
        self.status == 0
    }

    /// Processes the received part of the response. `server`: the server's name, once known.
    pub fn advance(&mut self, plan: &Plan, now_ns: i64, server: &mut Option<String>) -> Outcome {
        let waker = self.waker.clone();
        let mut context = Context::from_waker(&waker);
        loop {
            match &mut self.state {
                State::Resting | State::Waiting => return None,
                State::Requested(answer) => match Pin::new(answer).poll(&mut context) {
                    Poll::Pending => return None,
                    Poll::Ready(Err(error)) => return Some(Err(failure(&error))),
                    Poll::Ready(Ok(answer)) => {
                        self.first_byte_ns = Some(now_ns);
                        let (head, body) = answer.into_parts();
                        self.take_head(head.status.as_u16(), &head.headers, plan, server);
                        self.state = State::Reading(body);
                    }
                },
                State::Reading(body) => match body.poll_data(&mut context) {
                    Poll::Pending => return None,
                    Poll::Ready(None) => return Some(Ok(self.answered())),
                    Poll::Ready(Some(Err(error))) => return Some(Err(failure(&error))),
                    Poll::Ready(Some(Ok(data))) => {
                        // Releasing capacity only fails on a stream that has ended.
                        let _ = body.flow_control().release_capacity(data.len());
                        if let Err(failure) = self.take_data(data) {
                            return Some(Err(failure));
                        }
                    }
                },
            }
        }
    }

    fn take_head(&mut self, status: u16, headers: &HeaderMap, plan: &Plan, server: &mut Option<String>) {
        self.status = status;
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        self.coded = match (codings.next(), codings.next()) {
            (None, _) => Coded::Plain,
            (Some(one), None) => Coded::of(one.as_bytes()),
            _ => Coded::SEVERAL,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if REDIRECTS.contains(&status) {
            self.location = headers.get(LOCATION).map(|value| text(value.as_bytes()).into());
        }
        if server.is_none() {
            let name = headers.get(SERVER).map(http::HeaderValue::as_bytes);
            *server = name.map(|name| text(&name[..name.len().min(MAX_NAME_BYTES)]));
        }
        let expectation = &plan.requests[self.request].expectation;
        self.wanted = Wanted::of(expectation, status);
    }

    fn take_data(&mut self, data: Bytes) -> Result<(), Failure> {
        if self.wanted == Wanted::Nothing || data.is_empty() {
            return Ok(());
        }
        if self.piece.is_none() && self.collected.bytes().is_empty() {
            self.piece = Some(data);
            return Ok(());
        }
        if let Some(piece) = self.piece.take() {
            self.collected.add(&piece, self.wanted)?;
        }
        self.collected.add(&data, self.wanted)
    }

    fn answered(&self) -> Answered {
        // A stream ends with its response; its connection remains.
        Answered { status: self.status, coded: self.coded, body: Body::Collected, reusable: true }
    }
}

/// Why a stream, or the connection of all of them, has ended.
pub(super) fn failure(error: &h2::Error) -> Failure {
    let Some(reason) = error.reason() else {
        return Failure::new(Kind::Protocol, format!("HTTP/2 failed: {error}"));
    };
    if !error.is_remote() {
        return Failure::new(Kind::Protocol, format!("the server violates the HTTP/2 protocol ({reason:?})"));
    }
    if error.is_go_away() {
        let mut failure = Failure::new(Kind::GoAway, format!("GOAWAY with {reason:?}"));
        failure.is_unprocessed = reason == Reason::NO_ERROR;
        return failure;
    }
    let kind = if reason == Reason::REFUSED_STREAM { Kind::RefusedStream } else { Kind::StreamReset };
    Failure::new(kind, format!("RST_STREAM with {reason:?}"))
}
