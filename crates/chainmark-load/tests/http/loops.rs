//! Closed and open loops: the due requests, their send times, and their connections.

use crate::server::{Server, read_request, with_length, write};
use crate::{closed, make, open, order, post, run};
use chainmark_load::http::{HttpLoad, LoadConfig, Outcome, merge};
use serde_json::{Value, json};
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn a_closed_loop_has_exactly_the_requested_number_of_requests_in_flight() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let server = Server::answering(move |_, stream| {
        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        now.fetch_sub(1, SeqCst);
        write(stream, &with_length("200 OK", "1"))
    });
    let mut order = order(&server.url, closed(6), vec![post("/", json!({}))]);
    (order["warm_up_s"], order["threads"]) = (json!(0.1), json!(2));
    let result = run(&order);
    assert_eq!((seen.load(SeqCst), server.connections(), result.threads), (6, 6, 2));
    assert!(result.warm_up.ok > 0 && result.warm_up.due == result.warm_up.ok);
    assert!(result.latency.min_s.unwrap() >= 0.002);
    assert_eq!(result.latency.n, result.counts.ok);
    let seconds: u64 = result.series.started.iter().sum();
    assert_eq!(seconds, result.counts.sent + result.warm_up.sent);
}

#[test]
fn a_server_stall_is_visible_in_the_latencies() {
    let stopped = AtomicBool::new(false);
    let gate = Mutex::new(());
    let server = Server::answering(move |request, stream| {
        let first = request.body == "stop" && !stopped.swap(true, SeqCst);
        let guard = gate.lock().unwrap();
        if first {
            std::thread::sleep(Duration::from_millis(500));
        }
        drop(guard);
        write(stream, &with_length("200 OK", "1"))
    });
    // 1000 due in 2 s; the 300th stops the server for 0.5 s.
    let mut requests = vec![post("/", json!({})); 1000];
    requests[300]["body"] = json!("stop");
    let mut order = order(&server.url, open(500.0, 16), requests);
    order["duration_s"] = json!(2.0);
    let result = run(&order);
    assert_eq!((result.counts.due, result.counts.ok), (1000, 1000));
    // A quarter waits, evenly from 0.5 s down to 0: the slowest tenth more than 0.3 s.
    let p90_s = result.latency.p90_s.unwrap();
    assert!((0.28..0.40).contains(&p90_s), "{p90_s}");
    assert!((0.49..0.70).contains(&result.latency.max_s.unwrap()));
    // Sixteen connections: the others waited in the queue, not on the wire.
    assert!(result.service.p95_s.unwrap() < result.latency.p95_s.unwrap());
    assert!(result.lag.n < 1000);
    assert!(result.series.queued.iter().chain(&result.series.in_flight).all(|&count| count <= 1000));
}

#[test]
fn open_loops_send_due_requests_in_order_at_low_and_high_rates() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let server = Server::answering(move |request, stream| {
        bodies.lock().unwrap().push(request.body.clone());
        write(stream, &with_length("200 OK", "1"))
    });
    let requests: Vec<_> = (0..7)
        .map(|number| {
            let mut request = post("/", json!({}));
            request["body"] = json!(number.to_string());
            request
        })
        .collect();
    let result = run(&order(&server.url, open(5.0, 4), requests.clone()));
    assert_eq!((result.counts.due, result.counts.ok), (2, 2));
    assert_eq!(*seen.lock().unwrap(), ["0", "1"]);
    let mut order = order(&server.url, open(20_000.0, 8), requests);
    (order["duration_s"], order["drain_s"], order["threads"]) = (json!(0.25), json!(20.0), json!(2));
    let result = run(&order);
    assert_eq!((result.counts.due, result.counts.ok), (5000, 5000));
    assert!(server.connections() <= 12, "connections are used again");
}

#[test]
fn connections_carry_as_many_requests_as_requested() {
    for limit in [1usize, 3] {
        let closing = Arc::new(AtomicUsize::new(0));
        let close_count = closing.clone();
        let server = Server::new(move |_, mut stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut count = 0;
            while let Some(request) = read_request(&mut reader) {
                count += 1;
                let last = request.head.contains("Connection: close");
                close_count.fetch_add(usize::from(last), SeqCst);
                assert_eq!(last, count == limit, "the last request says so");
                write(&mut stream, &with_length("200 OK", "1"));
            }
        });
        let mut order = order(&server.url, closed(2), vec![post("/", json!({}))]);
        order["requests_per_connection"] = json!(limit);
        let result = run(&order);
        assert_eq!(result.counts.failed, 0, "{:?}", result.classes);
        assert!(result.counts.ok > 20);
        assert!(closing.load(SeqCst) >= result.counts.ok as usize / limit - 2);
        let opened = result.connections.opened as usize;
        assert!(opened * limit >= result.counts.ok as usize && (opened - 2) * limit <= result.counts.ok as usize);
    }
}

#[test]
fn idle_connections_that_the_server_closes_are_opened_again_without_a_failure() {
    let server = Server::new(|_, mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if read_request(&mut reader).is_some() {
            write(&mut stream, &with_length("200 OK", "1"));
            // An idle connection, as far as the client knows.
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let result = run(&order(&server.url, open(10.0, 4), vec![post("/", json!({}))]));
    assert_eq!((result.counts.due, result.counts.ok), (4, 4), "{:?}", result.classes);
    assert_eq!(result.connections.opened, 4);
}

#[test]
fn all_addresses_of_a_name_are_tried() {
    let server = Server::answering(|_, stream| write(stream, &with_length("200 OK", "1")));
    // The server listens on one of the two addresses that this name usually has.
    let url = server.url.replace("127.0.0.1", "localhost");
    let result = run(&order(&url, closed(2), vec![post("/", json!({}))]));
    assert_eq!(result.counts.failed, 0, "{:?}", result.classes);
    assert!(result.counts.ok > 10);
}

#[test]
fn the_number_of_clients_in_a_spike_follows_its_course() {
    let now = Arc::new(AtomicUsize::new(0));
    let under_way = Arc::new(Mutex::new(Vec::new()));
    let (seen, began) = (under_way.clone(), std::time::Instant::now());
    let server = Server::answering(move |_, stream| {
        let count = now.fetch_add(1, SeqCst) + 1;
        under_way.lock().unwrap().push((began.elapsed().as_secs_f64(), count));
        std::thread::sleep(Duration::from_millis(5));
        now.fetch_sub(1, SeqCst);
        write(stream, &with_length("200 OK", "1"))
    });
    let mut order = order(&server.url, closed(8), vec![post("/", json!({}))]);
    (order["duration_s"], order["threads"]) = (json!(1.2), json!(2));
    order["course"] = json!([[0.4, 2.0], [0.4, 8.0], [0.8, 8.0], [0.8, 2.0]]);
    let result = run(&order);
    assert_eq!((result.counts.failed, server.connections()), (0, 8), "{:?}", result.classes);
    let seen = seen.lock().unwrap();
    let most =
        |begin: f64, end: f64| seen.iter().filter(|(at, _)| (begin..end).contains(at)).map(|entry| entry.1).max();
    assert_eq!((most(0.0, 0.35), most(0.5, 0.75), most(0.95, 1.15)), (Some(2), Some(8), Some(2)));
}

#[test]
fn the_number_of_requests_due_at_a_rising_rate_is_its_area() {
    let server = Server::answering(move |_, stream| write(stream, &with_length("200 OK", "1")));
    let mut order = order(&server.url, open(900.0, 16), vec![post("/", json!({}))]);
    (order["duration_s"], order["threads"]) = (json!(1.0), json!(2));
    order["course"] = json!([[0.0, 100.0], [1.0, 900.0]]);
    (order["warm_up_s"], order["max_records"]) = (json!(0.5), json!(10_000));
    let result = run(&order);
    assert_eq!((result.warm_up.due, result.counts.due, result.counts.failed), (50, 500, 0));
    let due_ns = result.records.unwrap().due_ns;
    let first_half = due_ns.iter().filter(|&&due_ns| due_ns < 1_000_000_000).count();
    assert_eq!(first_half, 150);
}

#[test]
fn the_slowest_requests_are_reported_with_their_stages() {
    let server = Server::answering(|request, stream| match request.path.as_str() {
        "/slow" => {
            std::thread::sleep(Duration::from_millis(60));
            let sent = write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1");
            std::thread::sleep(Duration::from_millis(40));
            sent && write(stream, "2")
        }
        "/cut" => {
            std::thread::sleep(Duration::from_millis(30));
            false
        }
        _ => write(stream, &with_length("200 OK", "1")),
    });
    let requests: Vec<_> = ["/", "/", "/", "/slow", "/", "/cut"].iter().map(|path| post(path, json!({}))).collect();
    let mut order = order(&server.url, open(60.0, 32), requests);
    (order["max_slowest"], order["threads"]) = (json!(24), json!(2));
    let result = run(&order);
    assert_eq!((result.counts.due, result.slowest.len()), (24, 24));
    assert!(result.slowest.windows(2).all(|two| two[0].latency_ns >= two[1].latency_ns));
    let of = |request| result.slowest.iter().filter(move |slow| slow.request == request);
    assert_eq!((of(3).count(), of(5).count()), (4, 4));
    for slow in of(3) {
        let first_byte_ns = slow.first_byte_ns.unwrap();
        assert!(slow.due_ns <= slow.sent_ns && first_byte_ns <= slow.end_ns, "{slow:?}");
        assert!(first_byte_ns - slow.sent_ns >= 60_000_000, "{slow:?}");
        assert_eq!((slow.status, slow.class, slow.end_ns - slow.due_ns), (Some(200), 0, slow.latency_ns));
    }
    assert!(of(5).all(|slow| slow.first_byte_ns.is_none() && slow.status.is_none() && slow.class > 0));

    order["max_slowest"] = json!(0);
    assert!(run(&order).slowest.is_empty());
}

/// One of several generators of an order.
fn sharing(order: &Value, index: usize, count: usize) -> HttpLoad {
    let mut own = order.clone();
    own["share"] = json!({"index": index, "count": count});
    make(&own)
}

#[test]
fn generators_that_start_together_give_one_result_of_one_schedule() {
    let server = Server::answering(|_, stream| write(stream, &with_length("200 OK", "1")));
    for (mode, kind) in [(open(500.0, 8), "open"), (closed(5), "closed")] {
        let mut order = order(&server.url, mode, vec![post("/", json!({})); 3]);
        (order["warm_up_s"], order["max_records"]) = (json!(0.2), json!(1_000_000));
        order["max_slowest"] = json!(5);
        let before = server.connections();
        let loads: Vec<_> = (0..3).map(|index| sharing(&order, index, 3)).collect();
        // Time in which even a busy machine starts three of them.
        let begin_ns = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() + 1_000_000_000) as i64;
        loads.iter().for_each(|load| load.start_at(Some(begin_ns)).unwrap());
        let outcomes = loads.iter().map(|load| serde_json::to_string(&load.finish_share().unwrap()).unwrap());
        let outcomes = outcomes.map(|text| Outcome::from_json(&text).unwrap()).collect();
        let result = merge(&LoadConfig::from_json(&order.to_string()).unwrap(), begin_ns, outcomes).unwrap();
        assert_eq!((result.counts.ok, result.started_ns), (result.counts.due, begin_ns), "{kind}");
        assert_eq!((result.generators.len(), result.threads, result.ended), (3, 3, "time"));
        assert!((result.window_s - 0.4).abs() < 1e-9);
        assert_eq!(result.series.ok.iter().sum::<u64>(), result.counts.ok + result.warm_up.ok);
        assert!(result.series.p99_s[0].unwrap() > 0.0 && result.series.waited_s.len() == result.series.ok.len());
        let records = result.records.unwrap();
        assert_eq!(records.due_ns.len() as u64, result.counts.due);
        let mut latencies = records.latency_ns.clone();
        latencies.sort_unstable_by_key(|&latency_ns| std::cmp::Reverse(latency_ns));
        assert_eq!(result.slowest.iter().map(|slow| slow.latency_ns).collect::<Vec<_>>(), latencies[..5]);
        if kind == "open" {
            // Of the three together as of one: every 2 ms, the window from 0.2 s on.
            assert_eq!((result.counts.due, result.warm_up.due), (200, 100));
            assert_eq!(records.due_ns, (100..300).map(|number| number * 2_000_000).collect::<Vec<i64>>());
            assert_eq!(records.request, (100..300).map(|number| number % 3).collect::<Vec<u32>>());
        }
        // Every client has a connection; at a rate there are as many as are needed at once.
        let connections = server.connections() - before;
        assert!(if kind == "open" { connections <= 8 } else { connections == 5 }, "{kind}: {connections}");
    }
}

#[test]
fn a_generator_that_starts_too_late_is_rejected() {
    let load = sharing(&order("http://127.0.0.1:1", closed(2), vec![post("/", json!({}))]), 1, 2);
    let error = load.start_at(Some(1)).unwrap_err();
    assert_eq!(error.to_string(), "start was called on a load that should have begun already");
}
