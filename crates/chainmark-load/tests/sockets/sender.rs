//! What a load records when the node or the network misbehaves. In every case each offered transaction must end in
//! exactly one class, or a report's sums would not add up.

use crate::server::{accepted, answer_all, config, next_request, payload_of, serve, wait_until};
use base64::{Engine, engine::general_purpose::STANDARD};
use chainmark_load::cometbft::payload::Payload;
use chainmark_load::record::NEVER_NS;
use chainmark_load::{Begin, Class, LoadConfig, LoadError, LoadResult, ScheduleKind, Share, TransactionLoad};
use futures_util::{FutureExt, SinkExt};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::future::pending;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;

const CLASSES: [Class; 7] = [
    Class::Accepted,
    Class::MempoolFull,
    Class::InCache,
    Class::CheckFailed,
    Class::RpcError,
    Class::Timeout,
    Class::Unsent,
];

fn run(config: LoadConfig) -> LoadResult {
    let load = TransactionLoad::new(config).unwrap();
    load.start(Begin::After(0)).unwrap();
    let offered = load.progress().offered;
    let result = load.finish().unwrap();
    check_sums(&result, offered);
    result
}

fn check_sums(result: &LoadResult, offered: u64) {
    let records = &result.records;
    assert_eq!(records.rows() as u64, offered);
    assert_eq!(CLASSES.iter().map(|&class| records.count(class) as u64).sum::<u64>(), offered);
    for row in 0..records.rows() {
        let unsent = records.class[row] == Class::Unsent as u8;
        let unanswered = unsent || records.class[row] == Class::Timeout as u8;
        assert_eq!(records.sent_ns[row] == NEVER_NS, unsent);
        assert_eq!(records.hash[row] == [0; 32], unsent);
        assert_eq!(records.answered_ns[row] == NEVER_NS, unanswered);
        assert!(unsent || records.sent_ns[row] >= records.due_ns[row], "sent before it was due");
        assert!(unanswered || records.answered_ns[row] >= records.sent_ns[row]);
    }
}

#[test]
fn the_node_receives_exactly_the_recorded_transactions() {
    for schedule in [ScheduleKind::Even, ScheduleKind::Poisson, ScheduleKind::Burst] {
        let (report, received) = mpsc::channel();
        let url = serve(move |_, mut socket| {
            let report = report.clone();
            async move {
                while let Some((id, transaction)) = next_request(&mut socket).await {
                    report.send(STANDARD.decode(transaction).unwrap()).unwrap();
                    let _ = socket.send(accepted(id)).await;
                }
            }
            .boxed_local()
        });
        let result = run(LoadConfig { schedule, ..config(&[&url, &url, &url], 100, 500) });
        let records = &result.records;
        assert_eq!(records.count(Class::Accepted), records.rows());
        let transactions: HashSet<Vec<u8>> = received.try_iter().collect();
        assert_eq!(transactions.len(), records.rows(), "two transactions of a run were equal");
        let hashes: HashSet<[u8; 32]> = records.hash.iter().copied().collect();
        let due: HashSet<i64> = records.due_ns.iter().copied().collect();
        for transaction in &transactions {
            assert!(hashes.contains(&<[u8; 32]>::from(Sha256::digest(transaction))));
            assert_eq!(transaction.len(), 256);
            assert!(due.contains(&Payload::decode(transaction).unwrap().time_ns), "payload time is the due time");
        }
    }
}

#[test]
fn generators_that_share_a_load_offer_together_what_one_would() {
    let url = serve(|_, socket| answer_all(socket).boxed_local());
    let begin_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let begin = Begin::At(begin_ns + 300_000_000);
    let offered = |targets: usize, share| {
        let config = LoadConfig { share, schedule: ScheduleKind::Poisson, ..config(&vec![&*url; targets], 100, 200) };
        let load = TransactionLoad::new(config).unwrap();
        let start_ns = load.start(begin).unwrap();
        assert_eq!(Begin::At(start_ns), begin);
        load.finish().unwrap().records
    };
    let (parts, whole) = std::thread::scope(|scope| {
        let first = scope.spawn(|| offered(2, Share { first: 0, all: 3 }));
        let second = scope.spawn(|| offered(1, Share { first: 2, all: 3 }));
        let whole = offered(3, Share::default());
        ([first.join().unwrap(), second.join().unwrap()], whole)
    });
    assert_eq!(parts.each_ref().map(|part| part.connection.last().copied()), [Some(1), Some(2)]);
    assert_eq!(parts.each_ref().map(|part| &part.connection[..]).concat(), whole.connection);
    assert_eq!(parts.each_ref().map(|part| &part.sequence[..]).concat(), whole.sequence);
    assert_eq!(parts.each_ref().map(|part| &part.due_ns[..]).concat(), whole.due_ns);
    assert_eq!(parts.each_ref().map(|part| &part.hash[..]).concat(), whole.hash);
}

#[test]
fn a_share_beyond_the_load_is_refused() {
    for share in [Share { first: 2, all: 3 }, Share { first: 3, all: 3 }] {
        let refused =
            TransactionLoad::new(LoadConfig { share, ..config(&["ws://127.0.0.1:1/", "ws://127.0.0.1:1/"], 1, 1000) });
        assert!(matches!(refused, Err(LoadError::Argument { .. })));
    }
}

#[test]
fn a_node_that_stops_reading_delays_only_its_own_connection_whose_responses_are_still_read() {
    let (blocked, release) = mpsc::channel::<()>();
    let release = std::sync::Arc::new(std::sync::Mutex::new(release));
    let stuck = serve(move |_, mut socket| {
        let release = release.clone();
        async move {
            for _ in 0..3 {
                next_request(&mut socket).await;
            }
            while release.lock().unwrap().try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            for id in 0..3 {
                socket.send(accepted(id)).await.unwrap();
            }
            pending::<()>().await;
        }
        .boxed_local()
    });
    let healthy = serve(|_, socket| answer_all(socket).boxed_local());
    // Twice what the kernel buffers at most for a connection; the grace is for the healthy server on a busy machine.
    let load = TransactionLoad::new(LoadConfig {
        transactions: payload_of(100_000),
        send_grace_ns: 1_500_000_000,
        answer_timeout_ns: 3_000_000_000,
        ..config(&[&stuck, &healthy], 60, 1200)
    })
    .unwrap();
    load.start(Begin::After(0)).unwrap();
    let offered = load.progress().offered;
    wait_until("the end of the schedule", || load.progress().due == offered);
    blocked.send(()).unwrap();
    let result = load.finish().unwrap();
    check_sums(&result, 144);
    let records = &result.records;
    let of_stuck = |class: Class| records.class[..72].iter().filter(|&&value| value == class as u8).count();
    assert!(records.class[72..].iter().all(|&class| class == Class::Accepted as u8), "{:?}", result.errors);
    assert!(of_stuck(Class::Unsent) > 0 && of_stuck(Class::Timeout) > 0);
    assert_eq!(records.class[..3], [Class::Accepted as u8; 3]);
}

#[test]
fn a_slowly_reading_node_delays_transactions_and_drops_none() {
    let url = serve(|_, mut socket| {
        async move {
            tokio::time::sleep(Duration::from_millis(600)).await;
            while let Some((id, _)) = next_request(&mut socket).await {
                let _ = socket.send(accepted(id)).await;
            }
        }
        .boxed_local()
    });
    let load = TransactionLoad::new(LoadConfig {
        transactions: payload_of(400_000),
        send_grace_ns: 10_000_000_000,
        answer_timeout_ns: 10_000_000_000,
        ..config(&[&url], 40, 1000)
    })
    .unwrap();
    load.start(Begin::After(0)).unwrap();
    let result = load.finish().unwrap();
    check_sums(&result, 40);
    let records = &result.records;
    assert_eq!(records.count(Class::Accepted), 40);
    let worst_lag_ns = (0..40).map(|row| records.sent_ns[row] - records.due_ns[row]).max().unwrap();
    assert!(worst_lag_ns > 100_000_000, "the delay must show in the records, not vanish: {worst_lag_ns} ns");
}

#[test]
fn a_dropped_connection_loses_only_transactions_in_flight_and_is_redialled() {
    let url = serve(|number, mut socket| {
        async move {
            if number > 0 {
                // Transactions that the first connection left open are not this one's.
                socket.send(accepted(17)).await.unwrap();
                return answer_all(socket).await;
            }
            for answered in 0..20 {
                let Some((id, _)) = next_request(&mut socket).await else { return };
                if answered < 15 {
                    socket.send(accepted(id)).await.unwrap();
                }
            }
        }
        .boxed_local()
    });
    let result = run(config(&[&url], 40, 2500));
    let records = &result.records;
    assert_eq!((result.reconnects, result.unmatched_answers), (1, 1));
    assert_eq!(records.count(Class::Unsent), 0, "what fell due meanwhile is sent late");
    assert_eq!(records.class[15..20], [Class::Timeout as u8; 5]);
    assert!(records.class[..15].iter().all(|&class| class == Class::Accepted as u8));
    assert!(records.class[25..].iter().all(|&class| class == Class::Accepted as u8));
    assert!(result.errors.keys().any(|message| message.starts_with("connection lost: ")), "{:?}", result.errors);
}

#[test]
fn a_node_that_never_returns_leaves_unsent_transactions_and_no_endless_wait() {
    let url = serve(|number, mut socket| {
        async move {
            if number == 0 {
                for _ in 0..5 {
                    next_request(&mut socket).await;
                }
            }
        }
        .boxed_local()
    });
    let begin = Instant::now();
    let result = run(LoadConfig { answer_timeout_ns: 60_000_000_000, ..config(&[&url], 50, 1500) });
    assert!(result.records.count(Class::Unsent) > 0 && result.records.count(Class::Timeout) >= 5);
    assert_eq!(result.records.count(Class::Accepted), 0);
    assert!(begin.elapsed() < Duration::from_secs(10), "nobody is left to wait for");
}

#[test]
fn an_unresponsive_node_causes_timeouts_after_the_timeout() {
    let url = serve(|_, mut socket| async move { while next_request(&mut socket).await.is_some() {} }.boxed_local());
    let result = run(LoadConfig { answer_timeout_ns: 300_000_000, ..config(&[&url], 50, 200) });
    assert_eq!(result.records.count(Class::Timeout), 10);
    assert!(result.wall_s >= 0.48, "answers were waited for: {} s", result.wall_s);
}

#[test]
fn a_response_after_the_timeout_is_counted_but_does_not_change_the_class() {
    let url = serve(|_, mut socket| {
        async move {
            while let Some((id, _)) = next_request(&mut socket).await {
                if id > 0 {
                    socket.send(accepted(id)).await.unwrap();
                }
                if id == 9 {
                    socket.send(accepted(0)).await.unwrap();
                    socket.send(accepted(0)).await.unwrap();
                }
            }
        }
        .boxed_local()
    });
    // One more transaction after the late responses keeps the load alive until they have been read.
    let result = run(LoadConfig { answer_timeout_ns: 400_000_000, ..config(&[&url], 11, 1000) });
    assert_eq!(result.records.class[0], Class::Timeout as u8);
    assert_eq!((result.late_answers, result.unmatched_answers), (1, 1));
    assert_eq!(result.records.count(Class::Accepted), 10);
}

#[test]
fn invalid_and_foreign_responses_are_counted_and_have_no_other_effect() {
    let url = serve(|_, mut socket| {
        async move {
            while let Some((id, _)) = next_request(&mut socket).await {
                let unknown = accepted(id + 1_000_000);
                let noise = Message::binary(vec![0xff, 0x00, 0x80]);
                for message in [Message::text("}{"), unknown, noise, Message::Ping(Vec::new().into()), accepted(id)] {
                    let _ = socket.send(message).await;
                }
            }
        }
        .boxed_local()
    });
    let result = run(config(&[&url], 40, 500));
    assert_eq!(result.records.count(Class::Accepted), 20);
    assert_eq!(result.unmatched_answers, 60);
    assert_eq!(result.errors.values().sum::<u64>(), 60);
}

#[test]
fn out_of_order_responses_are_matched_by_id() {
    let error = |id: u64, data: &str| {
        Message::text(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"Internal error","data":"{data}"}}}}"#
        ))
    };
    let url = serve(move |_, mut socket| {
        async move {
            for _ in 0..20 {
                next_request(&mut socket).await;
            }
            for id in (0..20).rev() {
                let answer = match id % 5 {
                    0 => accepted(id),
                    1 => error(id, "mempool is full: number of txs 5000"),
                    2 => error(id, "tx already exists in cache"),
                    3 => error(id, "tx 00 is invalid: code=7, data=, log='', codespace=''"),
                    _ => error(id, "something else"),
                };
                socket.send(answer).await.unwrap();
            }
            pending::<()>().await;
        }
        .boxed_local()
    });
    let result = run(config(&[&url], 100, 200));
    for sequence in 0..20 {
        assert_eq!(usize::from(result.records.class[sequence]), sequence % 5);
        assert_eq!(result.records.check_code[sequence], if sequence % 5 == 3 { 7 } else { 0 });
    }
    assert_eq!(result.errors.get("-32603 Internal error: something else"), Some(&4));
}

#[test]
fn stopping_preserves_all_records_and_waits_for_responses() {
    let url = serve(|_, socket| answer_all(socket).boxed_local());
    let load = TransactionLoad::new(config(&[&url, &url], 100, 60_000)).unwrap();
    load.start(Begin::After(0)).unwrap();
    wait_until("some transactions", || load.progress().answered >= 10);
    assert!(load.is_running());
    load.stop();
    let result = load.finish().unwrap();
    check_sums(&result, 12_000);
    assert!(!load.is_running());
    assert!(result.records.count(Class::Accepted) >= 10);
    assert_eq!(result.records.count(Class::Unsent) + result.records.count(Class::Accepted), 12_000);
    assert!(load.progress().due < 11_000, "what is due stands still after a stop");
}

#[test]
fn a_load_that_is_dropped_ends_at_once_even_if_its_socket_is_blocked() {
    let (report, closed) = mpsc::channel();
    let url = serve(move |number, socket| {
        let report = report.clone();
        async move {
            if number == 0 {
                pending::<()>().await;
            }
            answer_all(socket).await;
            report.send(()).unwrap();
        }
        .boxed_local()
    });
    let load =
        TransactionLoad::new(LoadConfig { transactions: payload_of(200_000), ..config(&[&url, &url], 60, 60_000) })
            .unwrap();
    load.start(Begin::After(0)).unwrap();
    wait_until("the socket to block", || load.progress().due > load.progress().sent + 5);
    let begin = Instant::now();
    drop(load);
    assert!(begin.elapsed() < Duration::from_secs(1));
    closed.recv_timeout(Duration::from_secs(5)).unwrap();
}

#[test]
fn a_target_that_cannot_be_dialled_is_named_and_nothing_is_sent() {
    let url = serve(|_, socket| answer_all(socket).boxed_local());
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = format!("ws://{closed_port}/websocket");
    let load = TransactionLoad::new(config(&[&url, &dead], 10, 1000)).unwrap();
    let error = load.start(Begin::After(0)).unwrap_err();
    assert!(matches!(&error, LoadError::Connect { url, .. } if *url == dead), "{error}");
    assert_eq!(load.progress().sent, 0);
    assert!(matches!(load.finish(), Err(LoadError::State { .. })));
}
