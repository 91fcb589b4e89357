//! A timer with the kernel's resolution. Tokio's own has 1 ms, which is more than the gap between transactions.

use crate::clock::{NS_PER_S, monotonic_ns};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use tokio::io::{Interest, unix::AsyncFd};

/// One timer, for one waiter.
pub(crate) struct Timer {
    file: AsyncFd<OwnedFd>,
}

impl Timer {
    /// # Errors
    /// The process has too many open files. Must be called inside a runtime.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; a returned descriptor is new and has no other owner.
        let file = unsafe {
            match libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                descriptor => OwnedFd::from_raw_fd(descriptor),
            }
        };
        // SAFETY: the AsyncFd owns the descriptor, which therefore stays open and the same until it is deregistered.
        let file = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE)? };
        Ok(Self { file })
    }

    /// Waits until the monotonic clock shows `time_ns`; returns at once if it already does.
    pub async fn until(&self, time_ns: i64) -> io::Result<()> {
        loop {
            let remaining_ns = time_ns - monotonic_ns();
            if remaining_ns <= 0 {
                return Ok(());
            }
            // By duration: a library that shifts this process's clocks would end it too early or never by time.
            self.set(remaining_ns)?;
            // Setting the timer again drains it, so there is nothing to read.
            self.file.readable().await?.clear_ready();
        }
    }

    fn set(&self, duration_ns: i64) -> io::Result<()> {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::timespec { tv_sec: duration_ns / NS_PER_S, tv_nsec: duration_ns % NS_PER_S };
        let setting = libc::itimerspec { it_interval: never, it_value: once };
        // SAFETY: the descriptor is open, `setting` outlives the call, and the old setting is not requested.
        let status = unsafe {
            libc::timerfd_settime(self.file.as_raw_fd(), 0, &setting, std::ptr::null_mut::<libc::itimerspec>())
        };
        if status == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_timer_waits_neither_too_briefly_nor_forever() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let timer = Timer::new().unwrap();
            for gap_ns in [3_000_000, 200_000, 0, -5, 1_000_000, 50_000] {
                let wanted_ns = monotonic_ns() + gap_ns;
                timer.until(wanted_ns).await.unwrap();
                assert!(monotonic_ns() >= wanted_ns);
            }
        });
    }
}
