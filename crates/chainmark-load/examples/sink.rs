//! A sink for load generators: acknowledges every broadcast like a node, and writes the arrival time and the creation
//! time of each transaction. Usage: `sink FILE`; prints its URL, and ends when standard input is closed.
//!
//! Each line of FILE: connection, arrival and payload time in wall nanoseconds.

use base64::{Engine, engine::general_purpose::STANDARD};
use chainmark_load::clock::WallClock;
use chainmark_load::cometbft::payload::Payload;
use futures_util::{SinkExt, StreamExt};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::rc::Rc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_tungstenite::tungstenite::Message;

/// As long as a node's.
const HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

type Arrivals = Rc<RefCell<Vec<(usize, i64, i64)>>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("the file for the arrivals is missing")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Any end of the input, also a failure, is the wish to stop.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = end.send(());
    });
    let arrivals = Arrivals::default();
    runtime.block_on(LocalSet::new().run_until(async {
        tokio::select! {
            failed = accept_all(arrivals.clone()) => failed,
            _ = ended => Ok(()),
        }
    }))?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for (connection, arrived_ns, payload_ns) in arrivals.borrow().iter() {
        writeln!(file, "{connection},{arrived_ns},{payload_ns}")?;
    }
    Ok(file.flush()?)
}

async fn accept_all(arrivals: Arrivals) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("ws://{}/websocket", listener.local_addr()?);
    for connection in 0.. {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        spawn_local(answer_all(connection, stream, arrivals.clone()));
    }
    Ok(())
}

async fn answer_all(connection: usize, stream: TcpStream, arrivals: Arrivals) {
    let clock = WallClock::anchor();
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let arrived_ns = clock.now_ns();
        let Message::Text(text) = message else { continue };
        let Some((id, payload_ns)) = read_request(text.as_str()) else { continue };
        arrivals.borrow_mut().push((connection, arrived_ns, payload_ns));
        let result = format!(r#"{{"code":0,"data":"","log":"","codespace":"","hash":"{HASH}"}}"#);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        if socket.send(Message::text(answer)).await.is_err() {
            return;
        }
    }
}

fn read_request(text: &str) -> Option<(i64, i64)> {
    let request: serde_json::Value = serde_json::from_str(text).ok()?;
    let transaction = STANDARD.decode(request["params"]["tx"].as_str()?).ok()?;
    Some((request["id"].as_i64()?, Payload::decode(&transaction)?.time_ns))
}
