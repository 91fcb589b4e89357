//! What the connections of a thread share: the event queue, the buffers of a read and the counts.

use super::plan::Plan;
use rustix::event::epoll::EventFlags;
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;

/// One read fits a whole response of the usual size.
const WIRE_BYTES: usize = 64 * 1024;
/// Maximum number of consecutive reads from one server, so that a fast sender does not keep a thread from its timer and
/// its other connections.
pub(super) const READS_AT_ONCE: usize = 16;
/// The server's side of the connection has ended.
pub(super) const HUNG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

/// What the connections of a thread share.
pub(super) struct Io<'p> {
    pub plan: &'p Plan,
    pub epoll: OwnedFd,
    pub buffers: Buffers,
    pub counts: IoCounts,
    /// Which address of the target the next connection tries first: the last that worked.
    pub address: usize,
    /// The shortest connection time so far.
    pub round_trip_ns: i64,
    /// When the current events were seen, in nanoseconds of the step.
    pub looked_ns: i64,
}

pub(super) struct Buffers {
    pub wire: Box<[u8]>,
    /// The decrypted bytes.
    pub plain: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct IoCounts {
    pub opened: u64,
    pub failed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Idle connections that the server closed, at once or with GOAWAY, and the requests that were repeated for that.
    pub idle_closed: u64,
    pub goaway_closed: u64,
    pub repeated: u64,
}

impl IoCounts {
    pub fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.failed += other.failed;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.idle_closed += other.idle_closed;
        self.goaway_closed += other.goaway_closed;
        self.repeated += other.repeated;
    }
}

impl<'p> Io<'p> {
    pub fn new(plan: &'p Plan, epoll: OwnedFd) -> Self {
        let plain_bytes = if plan.tls.is_some() { WIRE_BYTES } else { 0 };
        let buffers =
            Buffers { wire: vec![0; WIRE_BYTES].into_boxed_slice(), plain: vec![0; plain_bytes].into_boxed_slice() };
        Self { plan, epoll, buffers, counts: IoCounts::default(), address: 0, round_trip_ns: i64::MAX, looked_ns: 0 }
    }
}
