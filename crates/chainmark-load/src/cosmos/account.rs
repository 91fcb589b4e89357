//! Accounts of a Cosmos SDK chain, derived from a seed.

use crate::error::LoadError;
use bech32::{Bech32, Hrp};
use ripemd::Ripemd160;
use secp256k1::{All, Message, PublicKey, Secp256k1, SecretKey};
use sha2::{Digest, Sha256};

/// A key, and what the chain calls its account.
#[derive(Debug, Clone)]
pub struct Account {
    secret: SecretKey,
    /// Compressed.
    pub public_key: [u8; 33],
    /// The chain's prefix, and `ripemd160(sha256(public key))`, as bech32.
    pub address: String,
}

impl Account {
    /// The account of that number: the same for a seed on every machine. Its key is worth nothing outside a test.
    pub fn derive(curve: &Secp256k1<All>, prefix: Hrp, seed: u64, index: u64) -> Self {
        Self::of(curve, prefix, secret_key(seed, index))
    }

    pub(super) fn of(curve: &Secp256k1<All>, prefix: Hrp, secret: SecretKey) -> Self {
        let public_key = PublicKey::from_secret_key(curve, &secret).serialize();
        let digest = Ripemd160::digest(Sha256::digest(public_key));
        let address = bech32::encode::<Bech32>(prefix, &digest).expect("20 bytes are a short enough address");
        Self { secret, public_key, address }
    }

    /// A signature of 64 bytes, with the lower of the two values for `s`: the chain accepts no other.
    pub fn sign(&self, curve: &Secp256k1<All>, document: &[u8]) -> [u8; 64] {
        let digest: [u8; 32] = Sha256::digest(document).into();
        curve.sign_ecdsa(Message::from_digest(digest), &self.secret).serialize_compact()
    }
}

/// # Errors
/// It is not a valid bech32 prefix.
pub fn prefix_of(text: &str) -> Result<Hrp, LoadError> {
    Hrp::parse(text).map_err(|_| LoadError::Argument {
        name: "the prefix of addresses",
        value: format!("`{text}`"),
        condition: "lower-case letters, as in `cosmos`",
    })
}

fn secret_key(seed: u64, index: u64) -> SecretKey {
    // A digest that is not a key is as likely as guessing one.
    (0u64..)
        .find_map(|attempt| {
            let parts = [seed, index, attempt].map(u64::to_le_bytes);
            let digest = Sha256::new().chain_update(b"chainmark account").chain_update(parts.as_flattened()).finalize();
            SecretKey::from_byte_array(digest.into()).ok()
        })
        .expect("there are more digests than attempts")
}
