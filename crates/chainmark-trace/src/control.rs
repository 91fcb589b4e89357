//! How far a reading is, and how it is ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far a reading is, and the means to end it; to be shared with another thread.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: AtomicBool,
    /// Stored bytes that were read.
    pub bytes: AtomicU64,
    pub lines: AtomicU64,
}

impl Control {
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
