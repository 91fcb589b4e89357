//! What the transactions of a load are: the load tool's payload, bank sends of accounts, or bytes that were given.

use crate::cometbft::payload::{self, Payload};
use crate::cosmos::{BankSends, Turns};
use crate::error::LoadError;
use crate::record::Class;
use std::sync::Arc;

/// The transactions of a load.
#[derive(Debug, Clone)]
pub enum Transactions {
    /// The load tool's, which carry their due time and the experiment's id.
    Payload { size_bytes: u32, experiment_id: [u8; 16] },
    /// Signed as they fall due.
    BankSends(Arc<BankSends>),
    /// By connection, in the order in which they are sent. Those that a connection lacks stay unsent.
    Given(Arc<Vec<Vec<Vec<u8>>>>),
}

impl Transactions {
    /// # Errors
    /// Transactions for another number of connections, or of an invalid size.
    pub(crate) fn check(&self, connections: usize, rate: u32) -> Result<(), LoadError> {
        let made_for = match self {
            Self::Payload { size_bytes, .. } => {
                return payload::check_size(connections as u64, u64::from(rate), u64::from(*size_bytes));
            }
            Self::BankSends(sends) => sends.config().connections as usize,
            Self::Given(given) => given.len(),
        };
        if made_for == connections {
            return Ok(());
        }
        let (name, condition) = ("the number of connections with transactions", "that of the targets");
        Err(LoadError::Argument { name, value: made_for.to_string(), condition })
    }

    /// The request for a transaction that is not sent.
    pub(crate) fn size_bytes(&self) -> u32 {
        match self {
            Self::Payload { size_bytes, .. } => *size_bytes,
            Self::BankSends(sends) => sends.config().size_bytes,
            Self::Given(_) => 0,
        }
    }
}

/// Makes the transactions of one connection, in their order.
pub(crate) enum Maker {
    /// All but the time.
    Payload {
        payload: Payload,
        seed: u64,
    },
    Turns(Turns),
    Given {
        all: Arc<Vec<Vec<Vec<u8>>>>,
        connection: usize,
    },
}

impl Maker {
    pub fn new(transactions: &Transactions, connections: usize, rate: u32, seed: u64, connection: usize) -> Self {
        match transactions {
            Transactions::Payload { size_bytes, experiment_id } => Self::Payload {
                payload: Payload {
                    connections: connections as u64,
                    rate: u64::from(rate),
                    size_bytes: u64::from(*size_bytes),
                    time_ns: 0,
                    experiment_id: *experiment_id,
                },
                seed,
            },
            Transactions::BankSends(sends) => Self::Turns(Turns::new(sends.clone(), connection)),
            Transactions::Given(all) => Self::Given { all: all.clone(), connection },
        }
    }

    /// The transaction with that number, due at that wall time; `None` if there is none. Until it is noted as sent, it
    /// may be requested again.
    pub fn make(&self, number: u32, time_ns: i64) -> Option<Vec<u8>> {
        match self {
            Self::Payload { payload, seed } => {
                let due = Payload { time_ns, ..*payload };
                Some(due.encode(*seed).expect("the size was checked when the load was made"))
            }
            Self::Turns(turns) => Some(turns.make(number)),
            Self::Given { all, connection } => all[*connection].get(number as usize).cloned(),
        }
    }

    pub fn sent(&mut self, number: u32) {
        if let Self::Turns(turns) = self {
            turns.sent(number);
        }
    }

    /// Records a response. A transaction in the node's cache was accepted before.
    pub fn answered(&mut self, number: u32, class: Class, reason: &str) {
        if let (Self::Turns(turns), Class::MempoolFull | Class::CheckFailed | Class::RpcError) = (self, class) {
            turns.refused(number, reason);
        }
    }
}
