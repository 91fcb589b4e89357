//! Open-loop transaction load for blockchain networks: schedules that are fixed before the load starts, senders that
//! keep to them whatever the network does, and one record per offered transaction.
//!
//! Latency is measured from the schedule: a transaction carries its due time, and one that a blocked connection delays
//! is recorded as late or unsent, never skipped.

pub mod clock;
pub mod cometbft;
pub mod cosmos;
pub mod error;
pub mod http;
pub mod observer;
pub mod record;
pub mod reference;
mod run_queue;
pub mod schedule;
pub mod sender;
mod socket;
mod timer;
pub mod transactions;
mod websocket;

pub use error::LoadError;
pub use observer::{EventObserver, ReceivedEvent};
pub use record::{Answer, Class, LoadResult, Records};
pub use schedule::ScheduleKind;
pub use sender::{Begin, LoadConfig, Progress, Share, TransactionLoad};
pub use transactions::Transactions;
