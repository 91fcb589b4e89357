use super::*;
use proptest::prelude::*;

/// The result for consecutive responses: status, body, reusable; then an error, or whether the end was a complete one.
type Read = (Vec<(u16, Vec<u8>, bool)>, Result<bool, Malformed>);

fn read(pieces: &[&[u8]]) -> Read {
    let mut parser = AnswerParser::default();
    let (mut answers, mut body) = (Vec::new(), Vec::new());
    for input in pieces {
        let mut at = 0;
        loop {
            match parser.advance(input, &mut at) {
                Err(malformed) => return (answers, Err(malformed)),
                Ok(Piece::Head) => {}
                Ok(Piece::Body(range)) => body.extend_from_slice(&input[range]),
                Ok(Piece::Done) => {
                    answers.push((parser.status(), std::mem::take(&mut body), parser.keep_alive()));
                    parser.restart();
                }
                Ok(Piece::More) => break,
            }
        }
        assert_eq!(at, input.len(), "all of the input is taken");
    }
    if parser.ends_with_connection() {
        answers.push((parser.status(), body, parser.keep_alive()));
        return (answers, Ok(true));
    }
    (answers, Ok(parser.is_untouched()))
}

fn one(bytes: &str) -> (u16, String, bool) {
    let (mut answers, end) = read(&[bytes.as_bytes()]);
    assert_eq!((answers.len(), end), (1, Ok(true)), "{bytes:?}");
    let (status, body, keep_alive) = answers.remove(0);
    (status, String::from_utf8(body).unwrap(), keep_alive)
}

fn refused(bytes: &str) -> Malformed {
    read(&[bytes.as_bytes()]).1.unwrap_err()
}

#[test]
fn bodies_end_as_rfc_9112_specifies() {
    for (bytes, status, body, keep_alive) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\nConnection: Close\r\n\r\nabc", 200, "abc", false),
        ("HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", 500, "", true),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "until the end", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx", 200, "x", true),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204, "", true),
        ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 304, "", true),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
            200,
            "y",
            true,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, "abc", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n\
             1;a=\"b\"\r\nx\r\nA \r\n0123456789\r\n000\r\nT: 1\r\nU: 2\r\n\r\n",
            200,
            "x0123456789",
            true,
        ),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\nx\n0\n\n", 200, "x", true),
        // With both, the chunks hold, and the connection is not to be trusted further.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            200,
            "x",
            false,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabcdef", 200, "abcdef", false),
    ] {
        assert_eq!(one(bytes), (status, body.to_owned(), keep_alive), "{bytes:?}");
    }
}

#[test]
fn an_invalid_response_is_rejected() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: ";
    for bytes in ["-1", "1, 2", "1\r\nContent-Length: 2", "0x10", "", "9999999999999999999"] {
        assert_eq!(refused(&format!("{length}{bytes}\r\n\r\n")), Malformed::Length, "{bytes}");
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for bytes in ["x", "\r\n", "-1\r\n", "1x", "ffffffffffffffff\r\n"] {
        assert_eq!(refused(&format!("{chunked}{bytes}")), Malformed::ChunkSize, "{bytes}");
    }
    for bytes in ["1\r\nab", "1\r\na\rb"] {
        assert_eq!(refused(&format!("{chunked}{bytes}")), Malformed::ChunkEnd, "{bytes}");
    }
    assert_eq!(refused(&format!("{chunked}0\r\nT: {}", "x".repeat(70_000))), Malformed::LongTrailers);
    assert_eq!(refused(&format!("HTTP/1.1 200 OK\r\nT: {}", "x".repeat(70_000))), Malformed::LongHead);
    assert_eq!(refused("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), Malformed::SwitchingProtocols);
    for bytes in ["SSH-2.0-OpenSSH_9.2\r\n", "<html>", "HTTP/2 200\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "\0\0\0"] {
        assert!(matches!(refused(bytes), Malformed::Head(_)), "{bytes:?}");
    }
}

#[test]
fn a_truncated_response_is_not_complete() {
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
    ] {
        assert_eq!(read(&[bytes.as_bytes()]), (vec![], Ok(false)), "{bytes:?}");
    }
}

/// Valid responses, and some invalid ones.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let body = || prop::collection::vec(any::<u8>(), 0..40);
    let with_length = body().prop_map(|body| {
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend(body);
        bytes
    });
    let chunked = (prop::collection::vec(body(), 0..4), any::<bool>()).prop_map(|(chunks, with_trailer)| {
        let mut bytes = b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            bytes.extend(format!("{:x};e=1\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(if with_trailer { &b"0\r\nX: y\r\n\r\n"[..] } else { b"0\r\n\r\n" });
        bytes
    });
    let informational = Just(b"HTTP/1.1 102 Processing\r\nA: b\r\n\r\n".to_vec());
    let until_close = body().prop_map(|body| [b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n".to_vec(), body].concat());
    let any_bytes = prop::collection::vec(any::<u8>(), 1..20);
    prop_oneof![4 => with_length, 4 => chunked, 2 => informational, 1 => until_close, 1 => any_bytes]
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_how_the_bytes_are_split(
        parts in prop::collection::vec(answers(), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        truncated in any::<prop::sample::Index>(),
    ) {
        let mut bytes = parts.concat();
        if bytes.len() % 3 == 0 {
            bytes.truncate(truncated.index(bytes.len() + 1));
        }
        let whole = read(&[&bytes]);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&read(&pieces), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&single), &whole);
    }
}
