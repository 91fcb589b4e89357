//! What the observer keeps when the node or the network misbehaves.

use crate::server::{ServerSocket, serve, wait_until};
use chainmark_load::{EventObserver, LoadError};
use futures_util::{FutureExt, SinkExt, StreamExt};
use std::future::pending;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;

const QUERY: &str = "tm.event='NewBlockHeader'";

fn event(height: u64) -> Message {
    Message::text(format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":{{"query":"q","data":{{"value":{{"height":"{height}"}}}}}}}}"#
    ))
}

async fn expect_subscription(socket: &mut ServerSocket) {
    let request = socket.next().await.unwrap().unwrap().into_text().unwrap();
    let request: serde_json::Value = serde_json::from_str(request.as_str()).unwrap();
    assert_eq!((request["method"].as_str(), request["params"]["query"].as_str()), (Some("subscribe"), Some(QUERY)));
}

fn confirmation() -> Message {
    Message::text(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#)
}

#[test]
fn raw_events_are_stored_in_order_across_a_disconnect_and_pings_are_answered() {
    let (report, done) = mpsc::channel();
    let url = serve(move |number, mut socket| {
        let report = report.clone();
        async move {
            expect_subscription(&mut socket).await;
            let first = number as u64 * 10;
            for message in
                [event(first), confirmation(), Message::Ping(b"are you there".to_vec().into()), event(first + 1)]
            {
                socket.send(message).await.unwrap();
            }
            let reply = socket.next().await.unwrap().unwrap();
            assert_eq!(reply, Message::Pong(b"are you there".to_vec().into()));
            if number == 1 {
                report.send(()).unwrap();
                pending::<()>().await;
            }
        }
        .boxed_local()
    });
    let observer = EventObserver::new(&url, QUERY).unwrap();
    observer.start().unwrap();
    done.recv_timeout(Duration::from_secs(10)).unwrap();
    wait_until("the reconnection to be counted", || observer.reconnects() == 1);
    let events = observer.stop().unwrap();
    let messages: Vec<Message> =
        events.iter().map(|event| Message::text(String::from_utf8(event.message.clone()).unwrap())).collect();
    assert_eq!(messages, [event(0), event(1), event(10), event(11)]);
    assert!(events.windows(2).all(|pair| pair[0].received_ns <= pair[1].received_ns));
}

#[test]
fn a_subscription_cancelled_by_the_node_is_renewed() {
    let url = serve(|number, mut socket| {
        async move {
            expect_subscription(&mut socket).await;
            socket.send(confirmation()).await.unwrap();
            if number == 0 {
                let text =
                    r#"{"id":0,"error":{"code":-32000,"message":"Server error","data":"subscription was canceled"}}"#;
                socket.send(Message::text(text)).await.unwrap();
            }
            pending::<()>().await;
        }
        .boxed_local()
    });
    let observer = EventObserver::new(&url, QUERY).unwrap();
    observer.start().unwrap();
    wait_until("a second subscription", || observer.reconnects() == 1);
    assert_eq!(observer.stop().unwrap().len(), 1, "the cancellation is kept for the report");
}

#[test]
fn a_rejected_subscription_is_a_typed_error() {
    let url = serve(|_, mut socket| {
        async move {
            expect_subscription(&mut socket).await;
            let text = r#"{"id":0,"error":{"code":-32603,"data":"max_subscription_clients 100 reached"}}"#;
            socket.send(Message::text(text)).await.unwrap();
        }
        .boxed_local()
    });
    let error = EventObserver::new(&url, QUERY).unwrap().start().unwrap_err();
    assert!(matches!(error, LoadError::Subscribe { .. }));
    assert!(error.to_string().contains("max_subscription_clients 100 reached"), "{error}");
}

#[test]
fn an_observer_whose_node_has_exited_stops_within_a_second() {
    let (report, lost) = mpsc::channel();
    let url = serve(move |number, mut socket| {
        let report = report.clone();
        async move {
            if number == 0 {
                expect_subscription(&mut socket).await;
                socket.send(confirmation()).await.unwrap();
                report.send(()).unwrap();
                return;
            }
            // Later connections are accepted and never confirmed.
            pending::<()>().await;
        }
        .boxed_local()
    });
    let observer = EventObserver::new(&url, QUERY).unwrap();
    observer.start().unwrap();
    lost.recv_timeout(Duration::from_secs(5)).unwrap();
    let begin = Instant::now();
    assert_eq!(observer.stop().unwrap(), []);
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert!(observer.stop().is_err() && observer.start().is_err(), "an observer is used once");
}
