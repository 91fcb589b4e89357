//! Subscribes to a node's events and stamps every message on arrival.

use crate::clock::WallClock;
use crate::error::LoadError;
use crate::sender::lock;
use crate::websocket::{Socket, check_url, dial};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(10);
const RECONNECT_PERIOD: Duration = Duration::from_millis(500);
const SUBSCRIPTION_ID: u64 = 0;

/// One message of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEvent {
    /// Wall nanoseconds since 1970.
    pub received_ns: i64,
    pub message: Vec<u8>,
}

/// A subscription on a thread of its own: made, started once, stopped once. Dropping it ends its thread.
pub struct EventObserver {
    url: String,
    query: String,
    reconnects: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
    begun: AtomicBool,
    thread: Mutex<Option<JoinHandle<Vec<ReceivedEvent>>>>,
}

impl EventObserver {
    /// # Errors
    /// A URL that is not a `ws://` one.
    pub fn new(url: &str, query: &str) -> Result<Self, LoadError> {
        check_url(url)?;
        Ok(Self {
            url: url.into(),
            query: query.into(),
            reconnects: Arc::default(),
            stop: watch::channel(false).0,
            begun: AtomicBool::new(false),
            thread: Mutex::default(),
        })
    }

    /// Returns when the node has confirmed the subscription.
    ///
    /// # Errors
    /// [`LoadError::Connect`] or [`LoadError::Subscribe`].
    pub fn start(&self) -> Result<(), LoadError> {
        if self.begun.swap(true, Relaxed) {
            return Err(LoadError::State { what: "start", object: "observer", state: "has been started already" });
        }
        let (report, confirmed) = mpsc::channel();
        let subscription = Subscription {
            url: self.url.clone(),
            query: self.query.clone(),
            clock: WallClock::anchor(),
            reconnects: self.reconnects.clone(),
            events: Vec::new(),
        };
        let stop = self.stop.subscribe();
        let builder = std::thread::Builder::new().name("chainmark-observe".into());
        let thread = builder
            .spawn(move || subscription.run(&report, stop))
            .map_err(|error| LoadError::OperatingSystem { what: "threads", reason: error.to_string() })?;
        let lost_thread = LoadError::State { what: "start", object: "observer", state: "has lost its thread" };
        confirmed.recv().unwrap_or(Err(lost_thread))?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Ends the subscription and returns the messages in the order of their arrival, without the confirmations.
    ///
    /// # Errors
    /// It was not started, or is stopped already.
    pub fn stop(&self) -> Result<Vec<ReceivedEvent>, LoadError> {
        let state = |state| LoadError::State { what: "stop", object: "observer", state };
        self.stop.send_replace(true);
        let thread = lock(&self.thread).take().ok_or_else(|| state("is not running"))?;
        thread.join().map_err(|_| state("has lost its thread"))
    }

    /// How often the subscription was lost and made again.
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Relaxed)
    }
}

impl Drop for EventObserver {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the thread has already been printed, and there is no receiver.
            let _ = thread.join();
        }
    }
}

/// What moves into the observer's thread.
struct Subscription {
    url: String,
    query: String,
    clock: WallClock,
    reconnects: Arc<AtomicU64>,
    events: Vec<ReceivedEvent>,
}

impl Subscription {
    fn run(
        mut self,
        report: &mpsc::Sender<Result<(), LoadError>>,
        mut stop: watch::Receiver<bool>,
    ) -> Vec<ReceivedEvent> {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let failure = LoadError::OperatingSystem { what: "event queue", reason: error.to_string() };
                // A closed channel means that the owner is gone: there is no receiver for reports.
                let _ = report.send(Err(failure));
                return Vec::new();
            }
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.observe(report) => {}
                // An error means that the owner is gone, which is a reason to end as well.
                _ = stop.wait_for(|&stop| stop) => {}
            }
        });
        // A name that is still being resolved must not hold the end up.
        runtime.shutdown_background();
        self.events
    }

    async fn observe(&mut self, report: &mpsc::Sender<Result<(), LoadError>>) {
        let first = self.subscribe().await;
        let (outcome, mut socket) = match first {
            Ok(socket) => (Ok(()), Some(socket)),
            Err(error) => (Err(error), None),
        };
        let failed = outcome.is_err();
        let _ = report.send(outcome);
        if failed {
            return;
        }
        loop {
            if let Some(mut current) = socket.take() {
                self.collect(&mut current).await;
            }
            tokio::time::sleep(RECONNECT_PERIOD).await;
            if let Ok(again) = self.subscribe().await {
                self.reconnects.fetch_add(1, Relaxed);
                socket = Some(again);
            }
        }
    }

    async fn subscribe(&mut self) -> Result<Socket, LoadError> {
        let (url, query) = (self.url.clone(), self.query.clone());
        let failed = |reason: String| LoadError::Subscribe { url: url.clone(), query, reason };
        let mut socket = dial(&url, DIAL_TIMEOUT).await?;
        match tokio::time::timeout(CONFIRM_TIMEOUT, self.confirm(&mut socket)).await {
            Ok(Ok(())) => Ok(socket),
            Ok(Err(reason)) => Err(failed(reason)),
            Err(_) => Err(failed(format!("no response within {} s", CONFIRM_TIMEOUT.as_secs()))),
        }
    }

    /// Sends the subscription and reads up to its confirmation; an event may arrive before that.
    async fn confirm(&mut self, socket: &mut Socket) -> Result<(), String> {
        let query = serde_json::Value::from(self.query.as_str());
        let id = SUBSCRIPTION_ID;
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscribe","params":{{"query":{query}}}}}"#);
        socket.send(Message::text(request)).await.map_err(|error| error.to_string())?;
        loop {
            let event = self.next_event(socket).await?;
            match kind_of(&event.message) {
                Kind::Confirmation => return Ok(()),
                Kind::Error(reason) => return Err(reason),
                Kind::Event => self.events.push(event),
            }
        }
    }

    /// Collects until the connection or the subscription is lost.
    async fn collect(&mut self, socket: &mut Socket) {
        while let Ok(event) = self.next_event(socket).await {
            // A node ends the subscription of a slow reader by an error, and leaves the connection open.
            let cancelled = matches!(kind_of(&event.message), Kind::Error(_));
            self.events.push(event);
            if cancelled {
                return;
            }
        }
    }

    /// The next text or binary message, stamped before anything else is done with it.
    async fn next_event(&self, socket: &mut Socket) -> Result<ReceivedEvent, String> {
        loop {
            let next = socket.next().await;
            let received_ns = self.clock.now_ns();
            let message = match next {
                Some(Ok(Message::Text(text))) => text.as_str().as_bytes().to_vec(),
                Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
                Some(Ok(Message::Close(_))) | None => return Err("the node closed the connection".into()),
                Some(Err(error)) => return Err(error.to_string()),
                // The library itself replies to pings.
                Some(Ok(_)) => continue,
            };
            return Ok(ReceivedEvent { received_ns, message });
        }
    }
}

enum Kind {
    Confirmation,
    Error(String),
    Event,
}

#[derive(Deserialize)]
struct Envelope {
    result: Option<EventResult>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct EventResult {
    query: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
}

/// A confirmation has an empty result. An unknown message is stored as an event, for its reader to judge.
fn kind_of(message: &[u8]) -> Kind {
    match serde_json::from_slice(message) {
        Ok(Envelope { error: Some(error), .. }) => Kind::Error(error.to_string()),
        Ok(Envelope { result: Some(EventResult { query: None, data: None }), .. }) => Kind::Confirmation,
        _ => Kind::Event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_empty_result_confirms_a_subscription() {
        assert!(matches!(kind_of(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#), Kind::Confirmation));
        assert!(matches!(kind_of(br#"{"jsonrpc":"2.0","id":0,"result":{"query":"q","data":{}}}"#), Kind::Event));
        assert!(matches!(kind_of(br#"{"id":0,"error":{"code":-32603,"data":"too many"}}"#), Kind::Error(_)));
        assert!(matches!(kind_of(b"not json"), Kind::Event));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            kind_of(&bytes);
        }
    }
}
