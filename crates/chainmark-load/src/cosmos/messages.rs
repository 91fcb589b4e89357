//! The messages of a Cosmos SDK transaction, with the field numbers of `cosmos/tx/v1beta1/tx.proto`.

use prost::Message;

pub const SEND_URL: &str = "/cosmos.bank.v1beta1.MsgSend";
pub const KEY_URL: &str = "/cosmos.crypto.secp256k1.PubKey";
/// `SIGN_MODE_DIRECT`
pub const SIGN_DIRECT: i32 = 1;

/// `google.protobuf.Any`
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Coin {
    #[prost(string, tag = "1")]
    pub denom: String,
    #[prost(string, tag = "2")]
    pub amount: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MsgSend {
    #[prost(string, tag = "1")]
    pub from_address: String,
    #[prost(string, tag = "2")]
    pub to_address: String,
    #[prost(message, repeated, tag = "3")]
    pub amount: Vec<Coin>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PubKey {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TxBody {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<Any>,
    #[prost(string, tag = "2")]
    pub memo: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Single {
    #[prost(int32, tag = "1")]
    pub mode: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ModeInfo {
    #[prost(message, optional, tag = "1")]
    pub single: Option<Single>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SignerInfo {
    #[prost(message, optional, tag = "1")]
    pub public_key: Option<Any>,
    #[prost(message, optional, tag = "2")]
    pub mode_info: Option<ModeInfo>,
    #[prost(uint64, tag = "3")]
    pub sequence: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fee {
    #[prost(message, repeated, tag = "1")]
    pub amount: Vec<Coin>,
    #[prost(uint64, tag = "2")]
    pub gas_limit: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct AuthInfo {
    #[prost(message, repeated, tag = "1")]
    pub signer_infos: Vec<SignerInfo>,
    #[prost(message, optional, tag = "2")]
    pub fee: Option<Fee>,
}

/// The signed document.
#[derive(Clone, PartialEq, Message)]
pub struct SignDoc {
    #[prost(bytes = "vec", tag = "1")]
    pub body_bytes: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub auth_info_bytes: Vec<u8>,
    #[prost(string, tag = "3")]
    pub chain_id: String,
    #[prost(uint64, tag = "4")]
    pub account_number: u64,
}

/// The transaction as sent.
#[derive(Clone, PartialEq, Message)]
pub struct TxRaw {
    #[prost(bytes = "vec", tag = "1")]
    pub body_bytes: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub auth_info_bytes: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub signatures: Vec<Vec<u8>>,
}
