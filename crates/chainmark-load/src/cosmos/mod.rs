//! Transactions of Cosmos SDK chains: bank sends between accounts that the genesis holds, signed as they fall due.

mod account;
mod messages;

pub use account::Account;

use crate::error::LoadError;
use account::prefix_of;
use messages::{
    Any, AuthInfo, Coin, Fee, KEY_URL, ModeInfo, MsgSend, PubKey, SEND_URL, SIGN_DIRECT, SignDoc, SignerInfo, Single,
    TxBody, TxRaw,
};
use prost::Message;
use secp256k1::{All, Secp256k1};
use std::sync::Arc;

/// Memory for keys and addresses of 2 million accounts: some 300 MB.
const MAX_ACCOUNTS: u64 = 2_000_000;
/// A longer memo is filled in steps, as lengths have lengths.
const PADDING_ATTEMPTS: usize = 4;

/// The transactions to make, and their accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendConfig {
    pub chain_id: String,
    /// Of addresses: `cosmos`.
    pub prefix: String,
    pub denom: String,
    /// In `denom`, of each transaction; 0: none.
    pub fee: u64,
    pub gas: u64,
    /// Of each transaction, filled up with a memo; 0: as small as it is.
    pub size_bytes: u32,
    pub connections: u32,
    /// Accounts per connection, used in turn.
    pub accounts_per_connection: u32,
    /// The chain's number of the first account; the others follow.
    pub first_account_number: u64,
    pub seed: u64,
}

/// The accounts of a load, and how their transactions are made.
pub struct BankSends {
    config: SendConfig,
    curve: Secp256k1<All>,
    accounts: Vec<Account>,
}

impl std::fmt::Debug for BankSends {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(out)
    }
}

impl BankSends {
    /// # Errors
    /// No or too many accounts, an impossible prefix, or a size below the smallest.
    pub fn new(config: SendConfig) -> Result<Self, LoadError> {
        let total = u64::from(config.connections) * u64::from(config.accounts_per_connection);
        if !(1..=MAX_ACCOUNTS).contains(&total) {
            let condition = "between 1 and 2000000 over all connections";
            return Err(LoadError::Argument { name: "the number of accounts", value: total.to_string(), condition });
        }
        let prefix = prefix_of(&config.prefix)?;
        let curve = Secp256k1::new();
        let accounts = (0..total).map(|index| Account::derive(&curve, prefix, config.seed, index)).collect();
        let sends = Self { config, curve, accounts };
        sends.check_size()?;
        Ok(sends)
    }

    pub fn config(&self) -> &SendConfig {
        &self.config
    }

    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// The transaction with the largest numbers that a load can have must fit.
    fn check_size(&self) -> Result<(), LoadError> {
        let smallest = self.unpadded(self.accounts.len() - 1, u64::from(u32::MAX), u64::from(u32::MAX)).len() as u32;
        if self.config.size_bytes == 0 || self.config.size_bytes >= smallest {
            return Ok(());
        }
        Err(LoadError::SendTooSmall { size_bytes: self.config.size_bytes, smallest })
    }

    /// A signed transaction: the account's `sequence`-th, which sends `amount` to the account after it.
    pub fn transaction(&self, account: usize, sequence: u64, amount: u64) -> Vec<u8> {
        let wanted = self.config.size_bytes as usize;
        let mut memo = 0;
        if wanted > 0 {
            let mut bytes = self.unsigned_len(account, sequence, amount, 0);
            // Lengths of lengths: if no memo gives the size, the transaction is a byte or two smaller.
            for _ in 0..PADDING_ATTEMPTS {
                memo = (memo + wanted).saturating_sub(bytes);
                bytes = self.unsigned_len(account, sequence, amount, memo);
                if bytes == wanted {
                    break;
                }
            }
            while memo > 0 && self.unsigned_len(account, sequence, amount, memo) > wanted {
                memo -= 1;
            }
        }
        self.signed(account, sequence, amount, memo)
    }

    fn unpadded(&self, account: usize, sequence: u64, amount: u64) -> Vec<u8> {
        self.signed(account, sequence, amount, 0)
    }

    fn unsigned_len(&self, account: usize, sequence: u64, amount: u64, memo: usize) -> usize {
        let raw = TxRaw {
            body_bytes: self.body(account, amount, memo),
            auth_info_bytes: self.auth_info(account, sequence),
            signatures: vec![vec![0; 64]],
        };
        raw.encoded_len()
    }

    fn signed(&self, account: usize, sequence: u64, amount: u64, memo: usize) -> Vec<u8> {
        let document = SignDoc {
            body_bytes: self.body(account, amount, memo),
            auth_info_bytes: self.auth_info(account, sequence),
            chain_id: self.config.chain_id.clone(),
            account_number: self.config.first_account_number + account as u64,
        };
        let signature = self.accounts[account].sign(&self.curve, &document.encode_to_vec());
        let raw = TxRaw {
            body_bytes: document.body_bytes,
            auth_info_bytes: document.auth_info_bytes,
            signatures: vec![signature.to_vec()],
        };
        raw.encode_to_vec()
    }

    fn body(&self, account: usize, amount: u64, memo: usize) -> Vec<u8> {
        let send = MsgSend {
            from_address: self.accounts[account].address.clone(),
            to_address: self.accounts[(account + 1) % self.accounts.len()].address.clone(),
            amount: vec![self.coin(amount)],
        };
        let message = Any { type_url: SEND_URL.into(), value: send.encode_to_vec() };
        TxBody { messages: vec![message], memo: "m".repeat(memo) }.encode_to_vec()
    }

    fn auth_info(&self, account: usize, sequence: u64) -> Vec<u8> {
        let key = PubKey { key: self.accounts[account].public_key.to_vec() };
        let signer = SignerInfo {
            public_key: Some(Any { type_url: KEY_URL.into(), value: key.encode_to_vec() }),
            mode_info: Some(ModeInfo { single: Some(Single { mode: SIGN_DIRECT }) }),
            sequence,
        };
        let amount = if self.config.fee == 0 { vec![] } else { vec![self.coin(self.config.fee)] };
        let fee = Fee { amount, gas_limit: self.config.gas };
        AuthInfo { signer_infos: vec![signer], fee: Some(fee) }.encode_to_vec()
    }

    fn coin(&self, amount: u64) -> Coin {
        Coin { denom: self.config.denom.clone(), amount: amount.to_string() }
    }
}

/// The accounts of one connection, used in turn, with the next sequence number of each.
pub(crate) struct Turns {
    sends: Arc<BankSends>,
    first: usize,
    next_sequences: Vec<u64>,
}

impl Turns {
    pub fn new(sends: Arc<BankSends>, connection: usize) -> Self {
        let accounts = sends.config.accounts_per_connection as usize;
        Self { sends, first: connection * accounts, next_sequences: vec![0; accounts] }
    }

    /// The connection's transaction of that number; the same one until it is noted as sent. Its amount differs from
    /// that of every other one of its account, so that no two transactions are equal.
    pub fn make(&self, number: u32) -> Vec<u8> {
        let turn = self.turn(number);
        self.sends.transaction(self.first + turn, self.next_sequences[turn], u64::from(number) + 1)
    }

    pub fn sent(&mut self, number: u32) {
        let turn = self.turn(number);
        self.next_sequences[turn] += 1;
    }

    /// Sequence numbers of refused transactions are not consumed; if the chain reports the number that it expects, that
    /// is used.
    pub fn refused(&mut self, number: u32, reason: &str) {
        let turn = self.turn(number);
        let next = &mut self.next_sequences[turn];
        *next = expected_sequence(reason).unwrap_or(next.saturating_sub(1));
    }

    fn turn(&self, number: u32) -> usize {
        number as usize % self.next_sequences.len()
    }
}

/// The number in "account sequence mismatch, expected 5, got 6".
fn expected_sequence(reason: &str) -> Option<u64> {
    let (_, tail) = reason.split_once("account sequence mismatch, expected ")?;
    let digits = tail.find(|character: char| !character.is_ascii_digit()).unwrap_or(tail.len());
    tail[..digits].parse().ok()
}

#[cfg(test)]
mod tests;
