//! The parts specific to CometBFT: the load tool's transaction format and the RPC responses.

pub mod answer;
pub mod payload;

use base64::{Engine, engine::general_purpose::STANDARD};

/// How a transaction is handed to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BroadcastMethod {
    /// Answered after the application's check.
    Sync,
    /// Answered before the check.
    Async,
}

impl BroadcastMethod {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "sync" | "broadcast_tx_sync" => Some(Self::Sync),
            "async" | "broadcast_tx_async" => Some(Self::Async),
            _ => None,
        }
    }

    fn rpc_name(self) -> &'static str {
        match self {
            Self::Sync => "broadcast_tx_sync",
            Self::Async => "broadcast_tx_async",
        }
    }
}

/// The JSON-RPC request that broadcasts a transaction; `sequence` is its id, by which the response is matched.
pub fn broadcast_request(method: BroadcastMethod, sequence: u32, transaction: &[u8]) -> String {
    let mut request = String::with_capacity(transaction.len().div_ceil(3) * 4 + 112);
    request.push_str(r#"{"jsonrpc":"2.0","id":"#);
    request.push_str(&sequence.to_string());
    request.push_str(r#","method":""#);
    request.push_str(method.rpc_name());
    request.push_str(r#"","params":{"tx":""#);
    STANDARD.encode_string(transaction, &mut request);
    request.push_str(r#""}}"#);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_the_documented_json() {
        assert_eq!(
            broadcast_request(BroadcastMethod::Sync, 42, b"a=1"),
            r#"{"jsonrpc":"2.0","id":42,"method":"broadcast_tx_sync","params":{"tx":"YT0x"}}"#
        );
    }
}
