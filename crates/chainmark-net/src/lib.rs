//! Wide-area links between network namespaces: one-way delay, jitter, loss and bandwidth per ordered pair of nodes, by
//! a user-space switch on TUN devices, for kernels without netem.
//!
//! A packet of a pair never overtakes another of the same pair, and every packet that the switch reads ends in exactly
//! one counted class. Namespaces and devices are held by file descriptors alone: they disappear when the process ends,
//! however it ends.

pub mod accounting;
mod cuts;
pub mod device;
pub mod error;
pub mod fabric;
pub mod line;
pub mod namespace;
pub mod packet;
pub mod round_trips;
pub mod switch;
mod system;

pub use accounting::{PacketCounts, Stats};
pub use error::NetError;
pub use line::LineSettings;
pub use namespace::Namespace;
pub use switch::{Cut, DelaySwitch, Port, SwitchConfig};
