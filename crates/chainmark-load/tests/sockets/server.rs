//! A WebSocket server that misbehaves on demand, which a real node does not.

use chainmark_load::cometbft::BroadcastMethod;
use chainmark_load::{LoadConfig, ScheduleKind, Share, Transactions};
use futures_util::future::LocalBoxFuture;
use futures_util::{SinkExt, StreamExt};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

/// Small, so that a server that stops reading is felt after a few transactions.
const RECEIVE_BUFFER_BYTES: u32 = 16 * 1024;
const LONGEST_WAIT: Duration = Duration::from_secs(20);

pub type ServerSocket = WebSocketStream<TcpStream>;

/// Serves each connection, numbered from 0, by `behaviour`, on a thread that ends with the test. Returns the URL.
pub fn serve<F>(behaviour: F) -> String
where
    F: Fn(usize, ServerSocket) -> LocalBoxFuture<'static, ()> + Send + 'static,
{
    let (report, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
        runtime.block_on(LocalSet::new().run_until(accept_all(Rc::new(behaviour), report)));
    });
    format!("ws://{}/websocket", address.recv().unwrap())
}

async fn accept_all<F>(behaviour: Rc<F>, report: mpsc::Sender<SocketAddr>)
where
    F: Fn(usize, ServerSocket) -> LocalBoxFuture<'static, ()> + 'static,
{
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    report.send(listener.local_addr().unwrap()).unwrap();
    for number in 0.. {
        let (stream, _) = listener.accept().await.unwrap();
        let behaviour = behaviour.clone();
        spawn_local(async move {
            if let Ok(socket) = accept_async(stream).await {
                behaviour(number, socket).await;
            }
        });
    }
}

/// The next request's id and transaction; `None` at the end of the connection.
pub async fn next_request(socket: &mut ServerSocket) -> Option<(u64, String)> {
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            let request: serde_json::Value = serde_json::from_str(text.as_str()).unwrap();
            let transaction = request["params"]["tx"].as_str().unwrap().to_owned();
            return Some((request["id"].as_u64().unwrap(), transaction));
        }
    }
    None
}

pub fn accepted(id: u64) -> Message {
    Message::text(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"code":0,"data":"","log":"","codespace":"","hash":"00"}}}}"#
    ))
}

/// A node without faults.
pub async fn answer_all(mut socket: ServerSocket) {
    while let Some((id, _)) = next_request(&mut socket).await {
        if socket.send(accepted(id)).await.is_err() {
            return;
        }
    }
}

pub fn payload_of(size_bytes: u32) -> Transactions {
    Transactions::Payload { size_bytes, experiment_id: *b"0123456789abcdef" }
}

pub fn config(targets: &[&str], rate_per_connection: u32, duration_ms: i64) -> LoadConfig {
    LoadConfig {
        targets: targets.iter().map(|&url| url.to_owned()).collect(),
        share: Share::default(),
        rate_per_connection,
        duration_ns: duration_ms * 1_000_000,
        transactions: payload_of(256),
        method: BroadcastMethod::Sync,
        schedule: ScheduleKind::Even,
        seed: 5,
        answer_timeout_ns: 2_000_000_000,
        send_grace_ns: 200_000_000,
    }
}

/// Waits for a condition; the limit only keeps a broken build from hanging.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LONGEST_WAIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
