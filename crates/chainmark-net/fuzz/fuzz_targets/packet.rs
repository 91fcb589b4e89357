//! Any bytes as a packet: no panic, and a reset is itself a packet for an end that causes no further reset.
//!
//! In crates/chainmark-net: `cargo +nightly fuzz run packet -- -max_total_time=60`

#![no_main]

use chainmark_net::packet::{Ipv4, resets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(packet) = Ipv4::parse(bytes) else { return };
    let Some(found_resets) = resets(&packet) else { return };
    for (reset, end) in [(found_resets.to_sender, packet.source()), (found_resets.to_receiver, packet.destination())] {
        let reset = Ipv4::parse(&reset).expect("a reset is a packet");
        assert_eq!(reset.destination(), end);
        assert!(reset.tcp().is_some());
        assert_eq!(resets(&reset), None);
    }
});
