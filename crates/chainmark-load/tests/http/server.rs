//! An HTTP server that does on demand what good ones never do.

use rustix::net::sockopt::set_socket_linger;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A request as it arrived.
pub struct Request {
    pub path: String,
    pub head: String,
    pub body: String,
}

/// One side of a connection, encrypted or not.
pub trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// Serves each connection, numbered from 0, on a thread of its own.
pub struct Server {
    pub url: String,
    pub connections: Arc<AtomicUsize>,
}

impl Server {
    pub fn new(behaviour: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, behaviour) = (connections.clone(), Arc::new(behaviour));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (number, behaviour) = (count.fetch_add(1, Relaxed), behaviour.clone());
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || behaviour(number, stream));
            }
        });
        Self { url, connections }
    }

    /// Responds to each request with the output of `answer`; the connection ends when it returns false.
    pub fn answering(answer: impl Fn(&Request, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |_, stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut stream = stream;
            while let Some(request) = read_request(&mut reader) {
                if !answer(&request, &mut stream) {
                    return;
                }
            }
        })
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

/// None at the end of the connection.
pub fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Request { path, head, body: String::from_utf8(body).unwrap() })
}

/// Whether the client is still connected.
pub fn write(stream: &mut impl Stream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).is_ok()
}

pub fn with_length(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// In pieces, so that the client sees them one by one.
pub fn write_slowly(stream: &mut TcpStream, text: &str, bytes: usize) -> bool {
    text.as_bytes().chunks(bytes).all(|piece| {
        std::thread::sleep(Duration::from_micros(300));
        stream.write_all(piece).is_ok()
    })
}

/// Ends the connection by a reset.
pub fn reset(stream: &TcpStream) {
    set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
    stream.shutdown(std::net::Shutdown::Read).unwrap();
}
