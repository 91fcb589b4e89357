//! Each kind of failure is distinguished, and no success is counted as a failure.

use crate::server::{Server, read_request, reset, with_length, write, write_slowly};
use crate::{classes, closed, make, open, order, post, run};
use chainmark_load::http::record_classes;
use serde_json::json;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                       4\r\n{\"in\r\n1;x=y\r\nd\r\n7\r\nex\": 5}\r\n0\r\nX-T: 1\r\n\r\n";

#[test]
fn correct_responses_count_as_correct_however_they_are_framed_and_split() {
    let server = Server::answering(|request, stream| {
        let body = "{\"index\": 5}";
        match request.path.as_str() {
            "/length" => write(stream, &with_length("200 OK", body)),
            "/pieces" => write_slowly(stream, &with_length("200 OK", body), 7),
            "/chunked" => write(stream, CHUNKED),
            "/odd-chunks" => write_slowly(stream, CHUNKED, 5),
            "/continue" => {
                write(stream, "HTTP/1.1 100 Continue\r\n\r\n") && write(stream, &with_length("200 OK", body))
            }
            "/until-close" => {
                write(stream, "HTTP/1.1 200 OK\r\n\r\n{\"index\"");
                write_slowly(stream, ": 5}", 2);
                false
            }
            "/close" => {
                write(stream, &format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{body}"));
                false
            }
            path => panic!("{path}"),
        }
    });
    let expect = json!({"json": true, "checks": [{"pointer": "/index", "is": 5}]});
    let paths = ["/length", "/pieces", "/chunked", "/odd-chunks", "/continue", "/until-close", "/close"];
    let requests = paths.iter().map(|path| post(path, expect.clone())).collect();
    let result = run(&order(&server.url, closed(4), requests));
    assert!(result.classes.is_empty(), "{:?}", result.classes);
    assert!(result.counts.ok >= 14, "{:?}", result.counts);
    assert_eq!(result.latency.n, result.counts.ok);
    assert_eq!(result.connections.opened as usize, server.connections());
}

#[test]
fn each_fault_has_its_own_class() {
    let server = Server::answering(|request, stream| match request.path.as_str() {
        "/reported" => write(stream, &with_length("500 No", r#"{"code":12,"message":"gone","details":{"trace":7}}"#)),
        "/text" => write(stream, &with_length("404 Not Found", "404 page not found\n")),
        "/error-in-200" => write(stream, &with_length("200 OK", r#"{"code":12}"#)),
        "/no-json" => write(stream, &with_length("200 OK", "<html>")),
        "/garbage" => write(stream, "SSH-2.0-OpenSSH\r\n"),
        "/cut" => {
            write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
            false
        }
        "/closed" => false,
        "/reset" => {
            reset(stream);
            false
        }
        path => panic!("{path}"),
    });
    let expect = json!({"json": true, "checks": [{"pointer": "/code", "absent": true}]});
    let paths = ["/reported", "/text", "/error-in-200", "/no-json", "/garbage", "/cut", "/closed", "/reset"];
    let requests: Vec<_> = paths.iter().map(|path| post(path, expect.clone())).collect();
    let mut order = order(&server.url, open(400.0, 64), requests);
    order["max_records"] = json!(10_000);
    // What happens to a connection that had answered before has a class of its own.
    order["requests_per_connection"] = json!(1);
    let result = run(&order);
    assert_eq!((result.counts.due, result.counts.failed, result.counts.ok), (160, 160, 0));
    let class = |class, status, detail: &str| (class, status, detail.to_owned());
    let mut expected = vec![
        class("answer", Some(200), "the body is not JSON"),
        class("closed", None, "before any response"),
        class("closed", None, "in the middle of a response"),
        class("protocol", None, "invalid HTTP version"),
        class("reset", None, "before any response"),
        class("status", Some(404), "404 page not found"),
        class("status", Some(500), ""),
        class("wrong answer", Some(200), "/code is present"),
    ];
    let mut kinds = classes(&result);
    kinds.dedup();
    expected.sort();
    assert_eq!(kinds, expected);
    let class = result.classes.iter().find(|class| class.status == Some(500)).unwrap();
    assert_eq!(
        (serde_json::to_value(&class.reported).unwrap(), class.count),
        (json!({"/code": 12, "/message": "gone"}), 20)
    );
    let records = result.records.unwrap();
    assert_eq!(records.due_ns.len(), 160);
    assert!(records.due_ns.is_sorted());
    assert!((0..160).all(|row| [1, 1, 9, 2, 7, 5, 5, 4][records.request[row] as usize] == records.class[row]));
}

#[test]
fn the_same_body_is_judged_by_its_status_coding_and_redirect() {
    // A memory of verdicts by bodies alone would judge the second of each as the first.
    let turns = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::answering(move |_, stream| {
        let turn = turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4;
        let answer = match turn {
            0 => "HTTP/1.1 302 Moved\r\nLocation: /one\r\nContent-Length: 2\r\n\r\n{}",
            1 => "HTTP/1.1 302 Moved\r\nLocation: /two\r\nContent-Length: 2\r\n\r\n{}",
            2 => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            _ => "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: 2\r\n\r\n{}",
        };
        write(stream, answer)
    });
    let result = run(&order(&server.url, closed(1), vec![post("/", json!({"json": true}))]));
    let details: Vec<_> = classes(&result).into_iter().map(|(.., detail)| detail).collect();
    for detail_part in ["to /one", "to /two", "compressed with deflate"] {
        assert_eq!(details.iter().filter(|detail| detail.contains(detail_part)).count(), 1, "{details:?}");
    }
    assert!(details.len() == 3 && result.counts.ok > 0, "{details:?}");
}

#[test]
fn compressed_responses_are_checked_after_decoding_and_redirects_name_their_target() {
    // {"ok":true} by gzip, made by Python's gzip module.
    const GZIP: [u8; 31] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 207, 86, 178, 42, 41, 42, 77, 173, 5, 0, 144, 95, 212, 167, 11,
        0, 0, 0,
    ];
    let server = Server::answering(|request, stream| match request.path.as_str() {
        "/moved" => write(stream, "HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"),
        "/zstd" => write(stream, "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 2\r\n\r\n{}"),
        "/deep" => write(stream, &with_length("200 OK", &"[".repeat(1000))),
        path => {
            let coding = if path == "/gzip" { "Content-Encoding: gzip\r\n" } else { "" };
            let head = format!("HTTP/1.1 200 OK\r\n{coding}Content-Length: {}\r\n\r\n", GZIP.len());
            stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&GZIP).is_ok()
        }
    });
    let expect = json!({"json": true, "checks": [{"pointer": "/ok", "is": true}]});
    let paths = ["/gzip", "/moved", "/zstd", "/deep", "/unsaid"];
    let requests: Vec<_> = paths.iter().map(|path| post(path, expect.clone())).collect();
    let result = run(&order(&server.url, open(100.0, 8), requests));
    let details: Vec<_> = classes(&result).into_iter().map(|(_, status, detail)| (status, detail)).collect();
    for (status, detail) in [
        (200, "the body is compressed with zstd; only gzip and br are supported"),
        (200, "the body is JSON with more than 128 levels, which is not supported"),
        (200, "the body is not JSON: it is gzip without a Content-Encoding"),
        (301, "a redirect to /elsewhere, which is not followed"),
    ] {
        assert!(details.contains(&(Some(status), detail.to_owned())), "{details:?}");
    }
    assert_eq!(details.len(), 4, "{details:?}");
    assert!(result.counts.ok > 0, "{:?}", result.counts);
}

#[test]
fn a_unix_socket_is_loaded_like_a_port() {
    let path = std::env::temp_dir().join(format!("chainmark-load-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            stream.write_all(with_length("200 OK", "{}").as_bytes()).unwrap();
        }
    });
    let url = format!("unix:{}", path.display());
    let result = run(&order(&url, closed(1), vec![post("/x", json!({"json": true}))]));
    assert!(result.counts.ok > 0 && result.classes.is_empty(), "{:?}", result.classes);
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// Ends every connection after three responses without notice, like a server whose keep-alive time is over.
fn closing_after_three() -> Server {
    Server::new(|_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        for _ in 0..3 {
            if read_request(&mut reader).is_none() || !write(&mut stream, &with_length("200 OK", "{}")) {
                return;
            }
        }
    })
}

#[test]
fn an_idle_connection_that_is_closed_causes_a_retry_and_is_not_an_error() {
    let server = closing_after_three();
    let mut request = post("/", json!({}));
    request["repeatable"] = json!(true);
    let result = run(&order(&server.url, closed(2), vec![request]));
    assert!(result.counts.ok > 10, "{:?}", result.counts);
    assert!(result.connections.repeated > 0, "{:?}", result.connections);
    assert_eq!(result.connections.repeated, result.connections.idle_closed);
    assert!(result.classes.iter().all(|class| class.class != "idle close"), "{:?}", result.classes);
}

#[test]
fn a_request_that_must_not_be_repeated_is_not_retried_and_has_its_own_class() {
    let server = closing_after_three();
    let result = run(&order(&server.url, closed(2), vec![post("/", json!({}))]));
    let detail = "before the response, on a kept-alive connection";
    // A server that takes a millisecond to close looks like one that closed after it had received the request.
    assert!(result.classes.iter().all(|class| class.detail == detail), "{:?}", result.classes);
    assert!(result.classes.iter().any(|class| class.class == "idle close"), "{:?}", result.classes);
    assert_eq!((result.connections.repeated, result.connections.idle_closed > 0), (0, true));
}

#[test]
fn a_late_generator_still_recognizes_a_connection_closed_while_idle() {
    let server = Server::answering(|request, stream| match request.path.as_str() {
        "/long" => write(stream, &with_length("200 OK", &format!("[{}1]", "1,".repeat(500_000)))),
        _ => {
            write(stream, &with_length("200 OK", "1"));
            std::thread::sleep(Duration::from_millis(1));
            false
        }
    });
    // Checking the long response takes a thread many milliseconds, in which it sees no connection end.
    let long = post("/long", json!({"checks": [{"pointer": "/0", "is": 1}]}));
    let mut order = order(&server.url, closed(8), vec![long, post("/short", json!({}))]);
    (order["duration_s"], order["threads"]) = (json!(1.5), json!(1));
    let result = run(&order);
    assert!(result.connections.idle_closed > 0, "{:?}", result.connections);
    let count = |name: &str| result.classes.iter().filter(|class| class.class == name).map(|class| class.count).sum();
    let (idle, reset, all): (u64, u64, u64) =
        (count("idle close"), count("reset"), result.classes.iter().map(|class| class.count).sum());
    // A server without time resets so late that it may have read the request: those few stay its error.
    assert!(idle + reset == all && reset < idle, "{:?}", result.classes);
}

#[test]
fn a_connection_closed_long_after_the_request_is_a_server_error() {
    let server = Server::new(|_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        if read_request(&mut reader).is_some() && write(&mut stream, &with_length("200 OK", "{}")) {
            read_request(&mut reader);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut request = post("/", json!({}));
    request["repeatable"] = json!(true);
    let result = run(&order(&server.url, closed(1), vec![request]));
    assert_eq!(result.connections.repeated, 0);
    let kinds: Vec<_> = result.classes.iter().map(|class| class.class).collect();
    assert!(kinds.iter().all(|kind| ["closed", "reset"].contains(kind)) && !kinds.is_empty(), "{kinds:?}");
}

#[test]
fn an_expected_status_is_not_an_error() {
    let server = Server::answering(|_, stream| write(stream, &with_length("500 No", "not found")));
    let expect = json!({"status": [200, 500], "contains": "not found"});
    let result = run(&order(&server.url, closed(1), vec![post("/", expect)]));
    assert_eq!(result.counts.failed, 0);
    assert!(result.counts.ok > 10);
}

#[test]
fn a_body_of_20_mb_is_read_to_its_end() {
    let server = Server::answering(|request, stream| {
        let body = format!("\"{}\"", "x".repeat(20_000_000));
        match request.path.as_str() {
            "/length" => write(stream, &with_length("200 OK", &body)),
            _ => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                write(stream, &format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
            }
        }
    });
    let requests = vec![post("/length", json!({"json": true})), post("/chunked", json!({}))];
    let result = run(&order(&server.url, closed(1), requests));
    assert_eq!(result.counts.failed, 0);
    assert!(result.counts.ok >= 1 && result.bytes_in >= result.counts.ok * 20_000_000);
}

#[test]
fn a_server_that_closes_keep_alive_connections_loses_no_request_silently() {
    let server = Server::new(|_, mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for _ in 0..5 {
            if read_request(&mut reader).is_none() || !write(&mut stream, &with_length("200 OK", "1")) {
                return;
            }
        }
    });
    let result = run(&order(&server.url, closed(2), vec![post("/", json!({}))]));
    // A request may meet the end of the connection; that is counted, and never waits for a back-off.
    assert!(
        result.classes.iter().all(|class| ["idle close", "closed", "reset"].contains(&class.class)),
        "{:?}",
        result.classes
    );
    assert!(result.counts.ok > 100 && result.counts.failed <= result.counts.ok / 5 + 2, "{:?}", result.counts);
}

#[test]
fn a_dead_server_causes_failures_but_no_busy_loop() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}");
    let result = run(&order(&url, closed(3), vec![post("/", json!({}))]));
    // 10 + 20 + 40 + 80 + 160 ms: six attempts of each client.
    assert!((9..=18).contains(&result.counts.failed), "{:?}", result.counts);
    assert_eq!(classes(&result), [("connect", None, "Connection refused".to_owned())]);
    assert_eq!((result.connections.opened, result.latency.n, result.latency.p99_s), (0, 0, None));
    let result = run(&order(&url, open(1000.0, 4), vec![post("/", json!({}))]));
    assert_eq!(result.counts.due, 400);
    assert!(result.counts.unsent > 300, "{:?}", result.counts);
}

#[test]
fn requests_to_an_unresponsive_server_time_out_and_waiting_ones_are_unsent() {
    let server = Server::new(|_, stream| {
        let mut reader = BufReader::new(stream);
        while read_request(&mut reader).is_some() {}
    });
    let mut order = order(&server.url, open(100.0, 2), vec![post("/", json!({}))]);
    (order["timeout_s"], order["drain_s"], order["max_records"]) = (json!(0.15), json!(0.2), json!(30));
    let result = run(&order);
    assert_eq!((result.counts.due, result.counts.ok), (40, 0));
    // Each connection sends every 0.15 s for 0.6 s.
    assert!((4..=10).contains(&result.counts.failed), "{:?}", result.counts);
    assert!(result.classes.iter().all(|class| class.class == "timeout"), "{:?}", result.classes);
    assert_eq!(result.latency_all.n, result.counts.failed);
    let (records, left_out) = (result.records.unwrap(), result.records_left_out);
    assert_eq!((records.due_ns.len(), left_out), (30, 10));
    let unsent = record_classes().iter().position(|name| *name == "unsent").unwrap() as u8;
    assert!(records.class.contains(&unsent) && records.latency_ns.contains(&-1));
}

#[test]
fn a_hopeless_step_ends_early() {
    let server = Server::new(|_, stream| {
        let mut reader = BufReader::new(stream);
        while read_request(&mut reader).is_some() {}
    });
    let mut order = order(&server.url, open(100.0, 2), vec![post("/", json!({}))]);
    (order["duration_s"], order["drain_s"]) = (json!(30.0), json!(0.1));
    order["give_up"] = json!({"slow_s": 0.1, "slow": 10, "failed": 1000});
    let begin = Instant::now();
    let result = run(&order);
    assert_eq!(result.ended, "gave up");
    assert!(begin.elapsed() < Duration::from_secs(5) && result.window_s < 4.0);
    assert!(result.counts.due >= 10 && result.counts.due == result.counts.failed + result.counts.unsent);
}

#[test]
fn failures_also_end_a_step_early() {
    let server = Server::answering(|_, stream| write(stream, &with_length("500 No", "")));
    let mut order = order(&server.url, closed(2), vec![post("/", json!({}))]);
    order["duration_s"] = json!(30.0);
    order["give_up"] = json!({"slow_s": 9.0, "slow": 1, "failed": 20});
    let result = run(&order);
    assert_eq!(result.ended, "gave up");
    assert!(result.counts.failed >= 20);
}

#[test]
fn stopping_preserves_the_measured_results() {
    let server = Server::answering(|_, stream| write(stream, &with_length("200 OK", "1")));
    let mut order = order(&server.url, open(500.0, 4), vec![post("/", json!({}))]);
    order["duration_s"] = json!(60.0);
    let load = make(&order);
    load.start().unwrap();
    while load.progress().ok < 50 {
        std::thread::yield_now();
    }
    load.stop();
    let result = load.finish().unwrap();
    assert_eq!((result.ended, result.counts.failed), ("stopped", 0));
    assert!(result.counts.ok >= 50 && result.window_s < 30.0);
    assert!(!load.is_running());
    assert!(load.finish().unwrap_err().to_string().contains("finished already"));
    assert!(load.start().unwrap_err().to_string().contains("started already"));
}

#[test]
fn an_early_response_to_an_unread_request_ends_the_connection_and_not_the_load() {
    let server = Server::new(|_, mut stream| {
        // Like servers that refuse large requests.
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        std::thread::sleep(Duration::from_millis(20));
    });
    let mut request = post("/", json!({"status": [413]}));
    request["body"] = json!("x".repeat(8_000_000));
    let result = run(&order(&server.url, closed(1), vec![request]));
    let admitted = |class: &str| ["reset", "closed"].contains(&class);
    assert!(result.classes.iter().all(|class| admitted(class.class)), "{:?}", result.classes);
    assert!(result.counts.ok + result.counts.failed >= 3, "{:?}", result.counts);
}

#[test]
fn a_server_that_never_stops_sending_times_out_and_blocks_no_other_connection() {
    // An extension of a chunk is read byte by byte, slower than it comes, and never kept: only the clock ends it.
    let server = Server::answering(|request, stream| {
        if request.path == "/right" {
            return write(stream, &with_length("200 OK", "{}"));
        }
        write(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;");
        let (begun, piece) = (Instant::now(), vec![b' '; 1 << 20]);
        while begun.elapsed() < Duration::from_secs(20) && stream.write_all(&piece).is_ok() {}
        false
    });
    let requests = vec![post("/flood", json!({})), post("/right", json!({}))];
    let mut order = order(&server.url, closed(2), requests);
    order["timeout_s"] = json!(0.5);
    order["threads"] = json!(1);
    let result = run(&order);
    assert_eq!(classes(&result), [("timeout", None, "the response was not complete within the timeout".to_owned())]);
    assert!(result.counts.ok > 0);
}
