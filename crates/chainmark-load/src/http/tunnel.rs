//! A tunnel through a proxy, opened before the first byte to the server (CONNECT).

use super::classes::Kind;
use super::failure::{Failure, reason};
use super::io::Io;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::os::fd::OwnedFd;

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Sends the request on a newly connected socket, whose buffer has room for it.
pub(super) fn ask(socket: &OwnedFd, question: &[u8], io: &mut Io) -> Result<(), Failure> {
    match net::send(socket, question, SendFlags::NOSIGNAL) {
        Ok(count) if count == question.len() => {
            io.counts.bytes_out += count as u64;
            Ok(())
        }
        Ok(_) => Err(Failure::new(Kind::Connect, "the proxy does not accept the request")),
        Err(error) => Err(broken(error)),
    }
}

/// Whether the proxy has opened the tunnel. Data after its response are the server's, and stay in the socket.
pub(super) fn is_open(socket: &OwnedFd, io: &mut Io) -> Result<bool, Failure> {
    let wire = &mut io.buffers.wire[..];
    let there = match net::recv(socket, &mut *wire, RecvFlags::PEEK) {
        Ok((0, _)) => return Err(Failure::new(Kind::Connect, "the proxy closed the connection without a response")),
        Ok((there, _)) => there,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
        Err(error) => return Err(broken(error)),
    };
    let Some(end) = wire[..there].windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END) else {
        return if there < wire.len() { Ok(false) } else { Err(no_answer()) };
    };
    let head = end + HEAD_END.len();
    net::recv(socket, &mut wire[..head], RecvFlags::empty()).map_err(broken)?;
    io.counts.bytes_in += head as u64;
    match status(&io.buffers.wire[..end]) {
        Some(200..300) => Ok(true),
        Some(status) => Err(Failure::new(Kind::Connect, format!("the proxy refused the tunnel: status {status}"))),
        None => Err(no_answer()),
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let digits = head.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn no_answer() -> Failure {
    Failure::new(Kind::Connect, "the proxy does not send a valid HTTP response")
}

fn broken(error: Errno) -> Failure {
    Failure::new(Kind::Connect, format!("the connection to the proxy failed: {}", reason(error)))
}
