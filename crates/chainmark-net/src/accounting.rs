//! What became of every packet, and how far the switch was from its intentions.

use hdrhistogram::Histogram;

/// Maximum error of the histogram; a longer one counts as this.
const ERROR_MAX_NS: u64 = 60_000_000_000;

/// Packets by what became of them. Every packet that was read is in exactly one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounts {
    pub read: u64,
    pub read_bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Lost on purpose, by the pair's share of loss.
    pub lost: u64,
    /// For an address that no port has.
    pub no_route: u64,
    /// Between ports that are cut from one another, including packets in flight when the cut began.
    pub cut: u64,
    pub queue_full: u64,
    /// The device of the destination did not accept it.
    pub write_failed: u64,
    pub not_ipv4: u64,
    /// In flight: read, and not yet due.
    pub queued: u64,
    /// Resets that the switch made itself; in none of the sums.
    pub resets: u64,
}

impl PacketCounts {
    /// Whether every packet is in exactly one class.
    pub fn balanced(&self) -> bool {
        let ended = self.delivered + self.lost + self.no_route + self.cut + self.queue_full + self.write_failed;
        self.read == ended + self.not_ipv4 + self.queued
    }
}

/// How late packets were written, against the moment that was intended.
#[derive(Debug)]
pub struct AddedError {
    histogram: Histogram<u64>,
}

impl Default for AddedError {
    fn default() -> Self {
        Self { histogram: Histogram::new_with_max(ERROR_MAX_NS, 3).expect("the bounds are constants that fit") }
    }
}

impl AddedError {
    pub fn record(&mut self, error_ns: u64) {
        self.histogram.saturating_record(error_ns);
    }

    pub fn summary(&self) -> ErrorSummary {
        ErrorSummary {
            packets: self.histogram.len(),
            p50_ns: self.histogram.value_at_quantile(0.5),
            p99_ns: self.histogram.value_at_quantile(0.99),
            max_ns: self.histogram.max(),
        }
    }
}

/// The added error over all delayed packets that were delivered; zeros if there were none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorSummary {
    pub packets: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

/// The state of a switch at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    pub counts: PacketCounts,
    /// Packets that a device dropped before the switch could read them.
    pub unread: u64,
    pub error: ErrorSummary,
    /// CPU time of the switch's thread, in nanoseconds.
    pub cpu_ns: u64,
    /// Whether the thread has real-time priority.
    pub realtime: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    type Count = fn(&mut PacketCounts) -> &mut u64;

    #[test]
    fn each_packet_class_affects_the_balance_and_other_counts_do_not() {
        let sound = PacketCounts {
            read: 36,
            delivered: 1,
            lost: 2,
            no_route: 3,
            cut: 4,
            queue_full: 5,
            write_failed: 6,
            not_ipv4: 7,
            queued: 8,
            ..PacketCounts::default()
        };
        assert!(sound.balanced());
        let classes: [Count; 9] = [
            |counts| &mut counts.read,
            |counts| &mut counts.delivered,
            |counts| &mut counts.lost,
            |counts| &mut counts.no_route,
            |counts| &mut counts.cut,
            |counts| &mut counts.queue_full,
            |counts| &mut counts.write_failed,
            |counts| &mut counts.not_ipv4,
            |counts| &mut counts.queued,
        ];
        for (number, class) in classes.into_iter().enumerate() {
            let mut counts = sound;
            *class(&mut counts) += 1;
            assert!(!counts.balanced(), "{number}");
        }
        assert!(PacketCounts { resets: 9, read_bytes: 1, delivered_bytes: 1, ..sound }.balanced());
    }
}
