//! The bytes between a connection's socket and HTTP/2: received and unread ones, and those to send.
//!
//! Independent of waiting and sockets, so that one thread can drive any number of connections with its own event queue.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What waits to be sent is not more than this and one frame, whatever the request's size.
const MAX_OUT_BYTES: usize = 256 << 10;
const MAX_IDLE_BYTES: usize = 64 << 10;

/// Both directions of one connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    incoming: Vec<u8>,
    read: usize,
    /// Nothing more will come in.
    pub has_ended: bool,
    pub outgoing: Vec<u8>,
    /// HTTP/2 has more to send than there was room for.
    pub is_full: bool,
}

impl Pipe {
    /// Adds what has come in.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.read == self.incoming.len() {
            self.incoming.clear();
            self.incoming.shrink_to(MAX_IDLE_BYTES);
            self.read = 0;
        }
        self.incoming.extend_from_slice(bytes);
    }
}

/// HTTP/2's end of a pipe.
#[derive(Debug, Clone, Default)]
pub(super) struct Port(pub Rc<RefCell<Pipe>>);

impl AsyncRead for Port {
    /// The code that fills the pipe also polls HTTP/2: no waker is needed.
    fn poll_read(self: Pin<&mut Self>, _: &mut Context, buffer: &mut ReadBuf) -> Poll<io::Result<()>> {
        let mut pipe = self.0.borrow_mut();
        let unread = &pipe.incoming[pipe.read..];
        if unread.is_empty() {
            return if pipe.has_ended { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let count = unread.len().min(buffer.remaining());
        buffer.put_slice(&unread[..count]);
        pipe.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Port {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.0.borrow_mut();
        if pipe.outgoing.len() >= MAX_OUT_BYTES {
            pipe.is_full = true;
            return Poll::Pending;
        }
        pipe.outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
