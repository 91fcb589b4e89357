//! Connects to the first of the target's addresses that accepts a connection.

use super::failure::{Failure, Refusals};
use super::io::Io;
use super::target::Address;
use super::tunnel;
use crate::clock::monotonic_ns;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

const INTERESTS: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// Makes the queue report a socket again that was not read to its end: it reports existing data only once.
pub(super) fn look_again(socket: &OwnedFd, token: u64, io: &Io) {
    // It cannot fail for a socket in the queue, and all are in it.
    let _ = epoll::modify(&io.epoll, socket, EventData::new_u64(token), INTERESTS);
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialled {
    /// This address refused, and another one can be tried.
    Refused,
    /// A proxy has not responded yet.
    Waiting,
    Connected,
}

/// One attempt to connect, over all addresses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dial {
    tried: usize,
    refusals: Refusals,
    begun_ns: i64,
    /// The tunnel through a proxy to the server.
    is_asking: bool,
}

impl Dial {
    pub fn new() -> Self {
        Self { begun_ns: monotonic_ns(), ..Self::default() }
    }

    /// A socket that connects to the next address, starting with the last one that worked.
    pub fn open(&mut self, token: u64, io: &mut Io) -> Result<OwnedFd, Failure> {
        let addresses = &io.plan.addresses;
        while self.tried < addresses.len() {
            match open(&addresses[io.address % addresses.len()]) {
                Ok(socket) => {
                    let Err(error) = epoll::add(&io.epoll, &socket, EventData::new_u64(token), INTERESTS) else {
                        return Ok(socket);
                    };
                    self.refusals.add(error);
                    break;
                }
                Err(error) => self.refused(error, io),
            }
        }
        Err(self.refusals.failure(io.counts.opened > 0))
    }

    /// Handles the end of connecting, and a proxy's response.
    pub fn advance(&mut self, socket: &OwnedFd, io: &mut Io) -> Result<Dialled, Failure> {
        let tunnel = io.plan.tunnel.as_deref();
        if !self.is_asking {
            if let Err(error) = socket_error(socket).and_then(|result| result) {
                self.refused(error, io);
                return Ok(Dialled::Refused);
            }
            io.counts.opened += 1;
            io.round_trip_ns = io.round_trip_ns.min(monotonic_ns() - self.begun_ns);
            let Some(question) = tunnel else { return Ok(Dialled::Connected) };
            tunnel::ask(socket, question, io)?;
            self.is_asking = true;
        }
        Ok(if tunnel::is_open(socket, io)? { Dialled::Connected } else { Dialled::Waiting })
    }

    fn refused(&mut self, error: Errno, io: &mut Io) {
        self.refusals.add(error);
        io.counts.failed += 1;
        io.address = (io.address + 1) % io.plan.addresses.len();
        self.tried += 1;
    }
}

/// A socket that is connecting.
fn open(address: &Address) -> Result<OwnedFd, Errno> {
    let family = match address {
        Address::Ip(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Ip(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    let begun = match address {
        Address::Ip(address) => {
            set_tcp_nodelay(&socket, true)?;
            net::connect(&socket, address)
        }
        Address::Unix(address) => net::connect(&socket, address),
    };
    match begun {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}
