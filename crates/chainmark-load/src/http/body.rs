//! Bodies that arrive in pieces, and the total memory that they may use.

use super::check::Expectation;
use super::classes::Kind;
use super::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Maximum size of a body that is checked.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Of a response with an unexpected status only its error description matters.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Memory that a connection keeps between responses without requesting it.
const OWN_BYTES: usize = 64 << 10;
const MAX_ROOM_BYTES: usize = 4 << 30;
const LEAST_ROOM_BYTES: usize = 256 << 20;

/// Total memory for the bodies of a load beyond each connection's own bytes: a quarter of the machine's memory, between
/// 256 MiB and 4 GiB.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<AtomicUsize>);

impl Room {
    pub fn of_this_machine() -> Self {
        let info = rustix::system::sysinfo();
        let memory_bytes = (info.totalram as usize).saturating_mul(info.mem_unit as usize);
        Self::new((memory_bytes / 4).clamp(LEAST_ROOM_BYTES, MAX_ROOM_BYTES))
    }

    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

/// How much of a body is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    #[default]
    Nothing,
    /// What follows it is passed over.
    Beginning,
    /// A body that is too large is a failure.
    Whole,
}

impl Wanted {
    pub fn of(expectation: &Expectation, status: u16) -> Self {
        match (expectation.admits(status), expectation.needs_body()) {
            (false, _) => Self::Beginning,
            (true, true) => Self::Whole,
            (true, false) => Self::Nothing,
        }
    }
}

/// The body that a connection collects.
#[derive(Debug)]
pub(super) struct Collected {
    bytes: Vec<u8>,
    room: Room,
    /// Memory reserved from the room.
    taken: usize,
}

impl Collected {
    pub fn new(room: Room) -> Self {
        Self { bytes: Vec::new(), room, taken: 0 }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Discards the body, and releases its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.taken > 0 {
            self.bytes = Vec::new();
            self.room.give_back(std::mem::take(&mut self.taken));
        }
    }

    /// # Errors
    /// The body is larger than the checked maximum, or all bodies together exceed the room.
    pub fn add(&mut self, piece: &[u8], wanted: Wanted) -> Result<(), Failure> {
        let length = self.bytes.len() + piece.len();
        match wanted {
            Wanted::Nothing => return Ok(()),
            Wanted::Beginning => {
                let left = MAX_REFUSAL_BYTES.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&piece[..piece.len().min(left)]);
                return Ok(());
            }
            Wanted::Whole if length > MAX_BODY_BYTES => {
                return Err(Failure::new(Kind::Answer, "the body is larger than 64 MiB, the limit for checks"));
            }
            Wanted::Whole => self.make_room(length)?,
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Doubles, as a vector does, so that a long body is not copied with every piece.
    fn make_room(&mut self, length: usize) -> Result<(), Failure> {
        if length <= self.bytes.capacity().max(OWN_BYTES) {
            return Ok(());
        }
        let doubled = (2 * self.bytes.capacity()).clamp(length, MAX_BODY_BYTES);
        for capacity in [doubled, length] {
            if self.room.take(capacity - self.taken) {
                self.taken = capacity;
                self.bytes.reserve_exact(capacity - self.bytes.len());
                return Ok(());
            }
        }
        Err(Failure::new(
            Kind::Generator,
            "no memory for the bodies of responses; use fewer clients, or request smaller responses",
        ))
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.room.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PIECE: [u8; 64 << 10] = [7; 64 << 10];

    fn filled(collected: &mut Collected, wanted: Wanted) -> Failure {
        loop {
            if let Err(failure) = collected.add(&PIECE, wanted) {
                return failure;
            }
        }
    }

    #[test]
    fn all_bodies_share_one_memory_budget_and_return_it() {
        let room = Room::new(1 << 20);
        let left = || room.0.load(Relaxed);
        let (mut one, mut other) = (Collected::new(room.clone()), Collected::new(room.clone()));
        let failure = filled(&mut one, Wanted::Whole);
        assert_eq!(failure.kind, Kind::Generator, "the server is not to blame for this machine's memory");
        assert!((960 << 10..=1 << 20).contains(&one.bytes().len()), "{}", one.bytes().len());
        // Its own bytes are each connection's, whatever the others hold.
        other.add(&PIECE, Wanted::Whole).unwrap();
        assert_eq!(other.add(&PIECE, Wanted::Whole).unwrap_err().kind, Kind::Generator);
        one.clear();
        assert_eq!(left(), 1 << 20);
        other.add(&PIECE, Wanted::Whole).unwrap();
        assert!(left() < 1 << 20);
        drop(other);
        assert_eq!(left(), 1 << 20);
    }

    #[test]
    fn an_endless_body_is_the_servers_fault_and_the_body_of_a_rejection_is_not_stored() {
        let mut collected = Collected::new(Room::new(1 << 30));
        assert_eq!(filled(&mut collected, Wanted::Whole).kind, Kind::Answer);
        assert!(collected.bytes().len() <= MAX_BODY_BYTES);
        collected.clear();
        for _ in 0..100 {
            collected.add(&PIECE[..1000], Wanted::Beginning).unwrap();
        }
        assert_eq!(collected.bytes().len(), MAX_REFUSAL_BYTES);
    }
}
