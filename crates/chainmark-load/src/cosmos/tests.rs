use super::*;
use secp256k1::PublicKey;
use secp256k1::ecdsa::Signature;
use sha2::{Digest, Sha256};

fn config() -> SendConfig {
    SendConfig {
        chain_id: "chain-1".into(),
        prefix: "cosmos".into(),
        denom: "stake".into(),
        fee: 200,
        gas: 200_000,
        size_bytes: 0,
        connections: 2,
        accounts_per_connection: 3,
        first_account_number: 4,
        seed: 7,
    }
}

#[test]
fn the_signature_covers_the_content_and_the_senders_sequence_number() {
    let sends = BankSends::new(config()).unwrap();
    let raw = TxRaw::decode(sends.transaction(2, 5, 9).as_slice()).unwrap();
    let document = SignDoc {
        body_bytes: raw.body_bytes.clone(),
        auth_info_bytes: raw.auth_info_bytes.clone(),
        chain_id: "chain-1".into(),
        account_number: 6,
    };
    let digest: [u8; 32] = Sha256::digest(document.encode_to_vec()).into();
    let signature = Signature::from_compact(&raw.signatures[0]).unwrap();
    let key = PublicKey::from_slice(&sends.accounts()[2].public_key).unwrap();
    let message = secp256k1::Message::from_digest(digest);
    Secp256k1::verification_only().verify_ecdsa(message, &signature, &key).unwrap();

    let body = TxBody::decode(raw.body_bytes.as_slice()).unwrap();
    let send = MsgSend::decode(body.messages[0].value.as_slice()).unwrap();
    assert_eq!((&send.from_address, &send.to_address), (&sends.accounts()[2].address, &sends.accounts()[3].address));
    assert_eq!(send.amount, [Coin { denom: "stake".into(), amount: "9".into() }]);
    let auth = AuthInfo::decode(raw.auth_info_bytes.as_slice()).unwrap();
    assert_eq!(auth.signer_infos[0].sequence, 5);
    assert_eq!(auth.fee.unwrap().gas_limit, 200_000);
}

#[test]
fn addresses_equal_those_of_the_chain() {
    // The generator point's key, whose address is printed in many places.
    let curve = Secp256k1::new();
    let one = secp256k1::SecretKey::from_byte_array(std::array::from_fn(|index| u8::from(index == 31))).unwrap();
    let account = Account::of(&curve, account::prefix_of("cosmos").unwrap(), one);
    assert_eq!(account.address, "cosmos1w508d6qejxtdg4y5r3zarvary0c5xw7k6ah60c");
}

#[test]
fn a_size_is_exact_except_where_a_length_prefix_grows() {
    for size_bytes in (340..900).chain([16_700, 16_800]) {
        let Ok(sends) = BankSends::new(SendConfig { size_bytes, ..config() }) else {
            assert!(size_bytes < 380, "{size_bytes}");
            continue;
        };
        for (sequence, amount) in [(0, 1), (1, 10), (300, 4_000_000)] {
            let bytes = sends.transaction(1, sequence, amount).len() as u32;
            assert!(bytes <= size_bytes && size_bytes - bytes <= 2, "{bytes} of {size_bytes}");
        }
    }
    let refused = BankSends::new(SendConfig { size_bytes: 100, ..config() }).unwrap_err().to_string();
    assert!(refused.contains("100 bytes is too small for a bank send; the smallest size is 3"), "{refused}");
}

#[test]
fn impossible_accounts_are_refused() {
    for (accounts_per_connection, prefix) in [(0, "cosmos"), (2_000_000, "cosmos"), (1, ""), (1, "ab c")] {
        let prefix = prefix.to_owned();
        assert!(BankSends::new(SendConfig { accounts_per_connection, prefix, ..config() }).is_err());
    }
}

fn sequence_of(transaction: &[u8]) -> u64 {
    let raw = TxRaw::decode(transaction).unwrap();
    AuthInfo::decode(raw.auth_info_bytes.as_slice()).unwrap().signer_infos[0].sequence
}

#[test]
fn accounts_take_turns_and_a_rejected_transaction_uses_no_sequence_number() {
    let mut turns = Turns::new(Arc::new(BankSends::new(config()).unwrap()), 1);
    let mut send = |number: u32| {
        let transaction = turns.make(number);
        assert_eq!(transaction, turns.make(number), "asked for twice, as after a lost connection");
        turns.sent(number);
        match number {
            3 => turns.refused(number, "mempool is full"),
            7 => turns.refused(number, "account sequence mismatch, expected 12, got 2: incorrect account sequence"),
            _ => {}
        }
        sequence_of(&transaction)
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(&mut send), [0, 0, 0, 1, 1, 1]);
    assert_eq!([6, 7, 8].map(&mut send), [1, 2, 2]);
    assert_eq!([9, 10, 11].map(&mut send), [2, 12, 3]);
}
