//! A fixed amount of work, whose CPU time shows how fast the processors are at this moment.
//!
//! Virtual machines share caches, memory and cores with others, and nodes share caches with whatever else runs: the CPU
//! time of the same work changes by a third within minutes. Arithmetic in registers shows none of it. This work is like
//! that of a node: memory of several sizes that comes from slower caches after each pause, and system calls.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use chainmark_random::SplitMix64;
use rustix::time::{ClockId, clock_gettime};

/// Size of the memory of each walk, and its steps: they take about equally long.
const WALKS: [(usize, usize); 4] = [(64 << 10, 8_000), (128 << 10, 5_000), (256 << 10, 2_500), (512 << 10, 1_400)];
const MESSAGES: usize = 100;
const MESSAGE_BYTES: usize = 256;

/// A walk through memory, in which each step depends on the one before.
#[derive(Debug)]
struct Walk {
    next: Vec<u64>,
    steps: usize,
    place: u64,
}

impl Walk {
    fn new(size_bytes: usize, steps: usize) -> Self {
        let places = size_bytes / size_of::<u64>();
        let mut random = SplitMix64::new(0, places as u64);
        // Sattolo's algorithm: a permutation with a single cycle, so that the walk visits every place.
        let mut next: Vec<u64> = (0..places as u64).collect();
        for last in (1..places).rev() {
            next.swap(last, (random.next_u64() % last as u64) as usize);
        }
        Self { next, steps, place: 0 }
    }

    fn go_on(&mut self) {
        for _ in 0..self.steps {
            self.place = self.next[self.place as usize];
        }
        black_box(self.place);
    }
}

/// The work, the same in every process.
#[derive(Debug)]
pub struct ReferenceWork {
    walks: Vec<Walk>,
    ends: (UnixStream, UnixStream),
}

impl ReferenceWork {
    /// # Errors
    /// The process may not open two more files.
    pub fn new() -> io::Result<Self> {
        let walks = WALKS.map(|(size_bytes, steps)| Walk::new(size_bytes, steps)).into();
        Ok(Self { walks, ends: UnixStream::pair()? })
    }

    /// Do the work once; return the CPU time that it took on this thread.
    ///
    /// # Errors
    /// The kernel refuses a system call.
    pub fn perform(&mut self) -> io::Result<Duration> {
        let before = thread_time();
        self.walks.iter_mut().for_each(Walk::go_on);
        let mut message = [1; MESSAGE_BYTES];
        for _ in 0..MESSAGES {
            self.ends.0.write_all(&message)?;
            self.ends.1.read_exact(&mut message)?;
        }
        Ok(thread_time().saturating_sub(before))
    }
}

/// The CPU time of the calling thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_always_the_same_and_visits_every_place() {
        let (mut walk, other) = (Walk::new(64 << 10, 100), Walk::new(64 << 10, 100));
        assert_eq!(walk.next, other.next);
        let mut visited = vec![false; walk.next.len()];
        let mut place = 0;
        for _ in 0..walk.next.len() {
            visited[place] = true;
            place = walk.next[place] as usize;
        }
        assert!(visited.iter().all(|&was| was), "a shorter cycle would stay in a faster cache");
        walk.go_on();
        assert_ne!(walk.place, 0);
    }

    #[test]
    fn only_time_on_a_processor_counts() -> io::Result<()> {
        let mut work = ReferenceWork::new()?;
        let before = thread_time();
        let mut own = Duration::ZERO;
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(1));
            own += work.perform()?;
        }
        let whole = thread_time() - before;
        assert!(!own.is_zero() && own <= whole, "{own:?} of {whole:?}");
        Ok(())
    }
}
