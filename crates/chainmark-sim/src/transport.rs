//! Transport of bodies: rounds of a growing congestion window, which a link remembers for a while.

use crate::cluster::{Cluster, Upstream};
use crate::model::Parameters;
use crate::timing::NS;

/// Bytes of protocol around a body.
const ENVELOPE_BYTES: f64 = 60.0;

#[derive(Debug, Clone, Copy)]
struct Window {
    segments: f64,
    /// When the last round was acknowledged.
    idle_since_ns: u64,
}

/// The congestion windows of all links of a network.
#[derive(Debug, Clone)]
pub struct Transport {
    windows: Vec<Window>,
    parameters: Parameters,
}

/// The transport of one body: rounds, and the time of its bytes on the wire besides round trips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    pub rounds: u32,
    pub bytes_ns: u64,
}

impl Transport {
    pub fn new(cluster: &Cluster, parameters: &Parameters) -> Self {
        let cold = Window { segments: parameters.initial_window_segments, idle_since_ns: 0 };
        Self { windows: vec![cold; cluster.links], parameters: *parameters }
    }

    /// Send `bytes` over a link from `sent_ns` on.
    pub fn send(&mut self, link: &Upstream, bytes: u64, sent_ns: u64) -> Transfer {
        let p = &self.parameters;
        let segment = if link.in_region { p.segment_bytes_in_region } else { p.segment_bytes };
        let segments = ((bytes as f64 + ENVELOPE_BYTES) / segment).ceil();
        let window = &mut self.windows[link.link as usize];
        let idle_s = sent_ns.saturating_sub(window.idle_since_ns) as f64 / NS;
        let grown = window.segments - p.initial_window_segments;
        let retained = if grown <= 0.0 || idle_s > 60.0 * p.window_memory_s {
            0.0
        } else if p.window_memory_s.is_infinite() {
            grown
        } else {
            grown * (-idle_s / p.window_memory_s).exp2()
        };
        let now = p.initial_window_segments + retained;
        let rounds = rounds(now, segments);
        let bytes_ns = (bytes as f64 / p.bandwidth_bytes_per_s * NS) as u64;
        window.segments = (now + segments).min(p.window_limit_segments);
        window.idle_since_ns = sent_ns + bytes_ns + (f64::from(rounds) * link.rtt_s * NS) as u64;
        Transfer { rounds, bytes_ns }
    }
}

/// The least k with window · (2^k − 1) ≥ segments.
fn rounds(window: f64, segments: f64) -> u32 {
    let (mut k, mut sent, mut next) = (1, window, window);
    while sent < segments {
        next *= 2.0;
        sent += next;
        k += 1;
    }
    k
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_rounds_steps_with_the_block_size() {
        let segments = |bytes: f64| ((bytes + ENVELOPE_BYTES) / 1448.0).ceil();
        for (bytes, expected) in [(3_000.0, 1), (14_000.0, 1), (15_000.0, 2), (43_000.0, 2), (45_000.0, 3)] {
            assert_eq!(rounds(10.0, segments(bytes)), expected, "{bytes}");
        }
        for (bytes, expected) in [(89_000.0, 3), (101_000.0, 3), (102_000.0, 4), (217_000.0, 4), (218_000.0, 5)] {
            assert_eq!(rounds(10.0, segments(bytes)), expected, "{bytes}");
        }
    }
}
