//! Time: one wall-clock anchor plus the monotonic clock, and the CPU time of a thread.

/// Nanoseconds per second.
pub const NS_PER_S: i64 = 1_000_000_000;

fn read_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, exclusive timespec. The clocks used here exist on every supported kernel.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(status, 0, "clock_gettime refuses clock {clock}");
    time.tv_sec * NS_PER_S + time.tv_nsec
}

/// Monotonic time in nanoseconds since an arbitrary origin; the clock that timers run on.
pub fn monotonic_ns() -> i64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> i64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Converts monotonic time to wall time by one anchor, so that a step of the wall clock never reaches a measurement.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    offset_ns: i64,
}

impl WallClock {
    /// Anchors now, by the best of a few readings: a preempted one would shift every time of the run.
    pub fn anchor() -> Self {
        let reading = || {
            let before_ns = monotonic_ns();
            let wall_ns = read_ns(libc::CLOCK_REALTIME);
            let after_ns = monotonic_ns();
            (after_ns - before_ns, wall_ns - before_ns - (after_ns - before_ns) / 2)
        };
        let (_, offset_ns) = (0..9).map(|_| reading()).min().expect("the range is not empty");
        Self { offset_ns }
    }

    /// Wall time in nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        monotonic_ns() + self.offset_ns
    }

    /// The monotonic time at which the wall clock shows `wall_ns`.
    pub fn to_monotonic_ns(&self, wall_ns: i64) -> i64 {
        wall_ns - self.offset_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_agrees_with_the_system_clock() {
        let clock = WallClock::anchor();
        let system_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
        assert!((clock.now_ns() - system_ns).abs() < 50_000_000);
        assert_eq!(clock.to_monotonic_ns(clock.now_ns()) / NS_PER_S, monotonic_ns() / NS_PER_S);
    }

    #[test]
    fn thread_cpu_time_grows_with_work_only() {
        let before_ns = thread_cpu_ns();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(thread_cpu_ns() - before_ns < 20_000_000, "sleeping is not work");
    }
}
