//! The load tool's transaction: `a=` and the lower-case hexadecimal digits of a protobuf message.
//!
//! Message fields: 1 connections, 2 rate, 3 size (uint64), 4 time (Timestamp), 5 id (16 bytes), 6 padding (bytes).

use chainmark_random::SplitMix64;

use crate::clock::NS_PER_S;
use crate::error::LoadError;

/// The key and separator that the example application stores every transaction under.
const PREFIX: &[u8] = b"a=";
/// The original tool's limit, which is also the default block size of CometBFT v1.
pub const MAX_SIZE_BYTES: u64 = 4_194_304;
/// Tag, length, and at most 1 + 5 bytes each for the seconds and the nanoseconds.
const MAX_TIME_FIELD_BYTES: u64 = 14;
const ID_FIELD_BYTES: u64 = 18;
/// Tag, length and one byte.
const MIN_PADDING_FIELD_BYTES: u64 = 3;
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What a transaction says about the experiment that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    pub connections: u64,
    /// Transactions per second per connection.
    pub rate: u64,
    pub size_bytes: u64,
    /// Nanoseconds since 1970: the moment at which the transaction was due.
    pub time_ns: i64,
    pub experiment_id: [u8; 16],
}

impl Payload {
    /// The transaction, exactly `size_bytes` long. Its padding is random, and a function of the seed and the time.
    ///
    /// # Errors
    /// A size that cannot be met exactly (see [`check_size`]) or a time before 1970.
    pub fn encode(&self, seed: u64) -> Result<Vec<u8>, LoadError> {
        check_size(self.connections, self.rate, self.size_bytes)?;
        if self.time_ns < 0 {
            return Err(LoadError::TimeBeforeEpoch { time_ns: self.time_ns });
        }
        let raw_bytes = (self.size_bytes as usize - PREFIX.len()) / 2;
        let mut raw = Vec::with_capacity(raw_bytes);
        self.put_head(&mut raw);
        put_padding(&mut raw, raw_bytes, &mut SplitMix64::new(seed, self.time_ns as u64));
        let mut transaction = Vec::with_capacity(self.size_bytes as usize);
        transaction.extend_from_slice(PREFIX);
        for byte in raw {
            transaction.push(HEX_DIGITS[usize::from(byte >> 4)]);
            transaction.push(HEX_DIGITS[usize::from(byte & 15)]);
        }
        Ok(transaction)
    }

    fn put_head(&self, raw: &mut Vec<u8>) {
        put_uint(raw, 0x08, self.connections);
        put_uint(raw, 0x10, self.rate);
        put_uint(raw, 0x18, self.size_bytes);
        let mut time = Vec::with_capacity(12);
        put_uint(&mut time, 0x08, (self.time_ns / NS_PER_S) as u64);
        put_uint(&mut time, 0x10, (self.time_ns % NS_PER_S) as u64);
        put_bytes(raw, 0x22, &time);
        put_bytes(raw, 0x2a, &self.experiment_id);
    }

    /// Reads a transaction. `None` if it is not one of the load tool's: another prefix, a digit that is not lower-case
    /// hexadecimal, a malformed message, or an experiment id that is not 16 bytes.
    pub fn decode(transaction: &[u8]) -> Option<Self> {
        decode_message(&decode_hex(transaction.strip_prefix(PREFIX)?)?)
    }
}

/// Whether a transaction of this size can be made at any moment.
///
/// # Errors
/// Odd sizes, and sizes below the minimum or above the maximum; each names the two nearest possible ones.
pub fn check_size(connections: u64, rate: u64, size_bytes: u64) -> Result<(), LoadError> {
    let smallest = smallest_size_bytes(connections, rate);
    if size_bytes < smallest {
        return Err(LoadError::SizeTooSmall { size_bytes, connections, rate, smallest, next: smallest + 2 });
    }
    if size_bytes > MAX_SIZE_BYTES {
        return Err(LoadError::SizeTooLarge { size_bytes, previous: MAX_SIZE_BYTES - 2, largest: MAX_SIZE_BYTES });
    }
    if size_bytes % 2 == 1 {
        return Err(LoadError::OddSize { size_bytes, lower: size_bytes - 1, upper: size_bytes + 1 });
    }
    Ok(())
}

/// The smallest size that holds the fields with the longest time and one byte of padding.
fn smallest_size_bytes(connections: u64, rate: u64) -> u64 {
    let fixed = uint_bytes(connections) + uint_bytes(rate) + MAX_TIME_FIELD_BYTES + ID_FIELD_BYTES;
    let size_of = |size_field_bytes: u64| 2 + 2 * (fixed + size_field_bytes + MIN_PADDING_FIELD_BYTES);
    // The message states the size, so the size's own length counts.
    let guess = size_of(2);
    size_of(uint_bytes(guess))
}

/// Length of a field of type uint64, which is omitted if zero.
fn uint_bytes(value: u64) -> u64 {
    if value == 0 { 0 } else { 1 + varint_bytes(value) as u64 }
}

fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn put_varint(out: &mut Vec<u8>, value: u64, encoded_bytes: usize) {
    for index in 0..encoded_bytes {
        let more = if index + 1 < encoded_bytes { 0x80 } else { 0 };
        out.push((value >> (7 * index)) as u8 & 0x7f | more);
    }
}

fn put_uint(out: &mut Vec<u8>, tag: u8, value: u64) {
    if value != 0 {
        out.push(tag);
        put_varint(out, value, varint_bytes(value));
    }
}

fn put_bytes(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    put_varint(out, bytes.len() as u64, varint_bytes(bytes.len() as u64));
    out.extend_from_slice(bytes);
}

/// Fills `raw` up to `raw_bytes` with the padding field. Where the shortest length prefix would skip the wanted size,
/// the prefix is one byte longer than needed, which every decoder accepts.
fn put_padding(raw: &mut Vec<u8>, raw_bytes: usize, random: &mut SplitMix64) {
    let field_bytes = raw_bytes - raw.len();
    let (length_bytes, padding_bytes) = (1..)
        .map(|length_bytes| (length_bytes, field_bytes - 1 - length_bytes))
        .find(|&(length_bytes, padding_bytes)| varint_bytes(padding_bytes as u64) <= length_bytes)
        .expect("a longer prefix always fits");
    raw.push(0x32);
    put_varint(raw, padding_bytes as u64, length_bytes);
    let start = raw.len();
    raw.resize(raw_bytes, 0);
    random.fill(&mut raw[start..]);
}

fn decode_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

/// One field of a protobuf message.
enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// Splits the next field off `rest`. `None` if malformed; field number 0 and groups count as malformed.
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = take_varint(rest)?;
    let number = tag >> 3;
    if number == 0 || number > 0x1fff_ffff {
        return None;
    }
    let field = match tag & 7 {
        0 => Field::Varint(take_varint(rest)?),
        1 => take_bytes(rest, 8).map(|_| Field::Fixed)?,
        2 => {
            let length = take_varint(rest)?;
            Field::Bytes(take_bytes(rest, usize::try_from(length).ok()?)?)
        }
        5 => take_bytes(rest, 4).map(|_| Field::Fixed)?,
        _ => return None,
    };
    Some((number, field))
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for index in 0..10 {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        if index == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take_bytes<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes)
}

fn decode_message(mut rest: &[u8]) -> Option<Payload> {
    let mut payload = Payload { connections: 0, rate: 0, size_bytes: 0, time_ns: 0, experiment_id: [0; 16] };
    let mut experiment_id = &[][..];
    let mut time = (0, 0);
    while !rest.is_empty() {
        // A known number with another type is an unknown field, as in every protobuf decoder.
        match take_field(&mut rest)? {
            (1, Field::Varint(value)) => payload.connections = value,
            (2, Field::Varint(value)) => payload.rate = value,
            (3, Field::Varint(value)) => payload.size_bytes = value,
            (4, Field::Bytes(bytes)) => merge_time(bytes, &mut time)?,
            (5, Field::Bytes(bytes)) => experiment_id = bytes,
            _ => {}
        }
    }
    payload.experiment_id = experiment_id.try_into().ok()?;
    payload.time_ns = time_to_ns(time)?;
    Some(payload)
}

fn merge_time(mut rest: &[u8], time: &mut (i64, i32)) -> Option<()> {
    while !rest.is_empty() {
        match take_field(&mut rest)? {
            (1, Field::Varint(seconds)) => time.0 = seconds as i64,
            (2, Field::Varint(nanos)) => time.1 = nanos as i32,
            _ => {}
        }
    }
    Some(())
}

fn time_to_ns((seconds, nanos): (i64, i32)) -> Option<i64> {
    if !(0..NS_PER_S).contains(&i64::from(nanos)) {
        return None;
    }
    seconds.checked_mul(NS_PER_S)?.checked_add(i64::from(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXPERIMENT_ID: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    fn payload(connections: u64, rate: u64, size_bytes: u64, time_ns: i64) -> Payload {
        Payload { connections, rate, size_bytes, time_ns, experiment_id: EXPERIMENT_ID }
    }

    #[test]
    fn a_transaction_equals_the_test_vector_of_the_original_tool() {
        let transaction = payload(1, 400, 160, 1_700_000_000_123_456_789).encode(1).unwrap();
        let head = "a=080110900318a001220b0880e2cfaa0610959aef3a2a10000102030405060708090a0b0c0d0e0f32";
        assert_eq!(std::str::from_utf8(&transaction[..head.len()]).unwrap(), head);
        // 158 bytes with 37 bytes of padding would be the original tool's, 2 bytes less than requested.
        assert_eq!(&transaction[head.len()..head.len() + 2], b"26");
        assert_eq!(transaction.len(), 160);
    }

    #[test]
    fn the_shorter_result_of_the_original_tool_is_decoded() {
        let mut transaction =
            b"a=080110900318a001220b0880e2cfaa0610959aef3a2a10000102030405060708090a0b0c0d0e0f3225".to_vec();
        transaction.extend_from_slice(&[b'7'; 74]);
        assert_eq!(transaction.len(), 158);
        assert_eq!(Payload::decode(&transaction), Some(payload(1, 400, 160, 1_700_000_000_123_456_789)));
    }

    #[test]
    fn the_smallest_size_is_valid_at_any_time_and_two_bytes_less_is_not() {
        for (connections, rate) in [(1, 1), (4, 800), (127, 128), (200, 20_000)] {
            let smallest = smallest_size_bytes(connections, rate);
            for time_ns in [0, 1, NS_PER_S, 1_700_000_000_999_999_999, i64::MAX] {
                let transaction = payload(connections, rate, smallest, time_ns).encode(3).unwrap();
                assert_eq!(transaction.len() as u64, smallest);
            }
            assert!(check_size(connections, rate, smallest - 2).is_err());
            let longest = payload(connections, rate, smallest, 1_700_000_000_999_999_999).encode(3).unwrap();
            assert!(longest[..longest.len() - 2].ends_with(b"3201"), "exactly one byte of padding is left");
        }
        assert_eq!(smallest_size_bytes(1, 1), 84);
        assert_eq!(smallest_size_bytes(1, 400), 86);
    }

    #[test]
    fn errors_name_two_sizes_that_work() {
        let message = |size_bytes| check_size(1, 400, size_bytes).unwrap_err().to_string();
        assert!(message(1023).ends_with("1022 and 1024 bytes"), "{}", message(1023));
        assert!(message(84).ends_with("86 and 88 bytes"), "{}", message(84));
        assert!(message(85).ends_with("86 and 88 bytes"), "{}", message(85));
        assert!(message(4_194_305).ends_with("4194302 and 4194304 bytes"), "{}", message(4_194_305));
        for size_bytes in [86, 88, 1022, 1024, 4_194_302, 4_194_304] {
            assert_eq!(payload(1, 400, size_bytes, 5).encode(0).unwrap().len() as u64, size_bytes);
        }
    }

    #[test]
    fn every_even_size_around_the_boundaries_of_the_length_prefix_is_exact() {
        let sizes = (86..1200).step_by(2).chain((32_700..33_100).step_by(2)).chain([4_194_302, 4_194_304]);
        for size_bytes in sizes {
            for time_ns in [1_700_000_000_000_000_000, 1_700_000_000_000_000_200, 1_700_000_000_123_456_789] {
                let offered = payload(1, 400, size_bytes, time_ns);
                let transaction = offered.encode(9).unwrap();
                assert_eq!(transaction.len() as u64, size_bytes);
                assert_eq!(Payload::decode(&transaction), Some(offered));
            }
        }
    }

    #[test]
    fn overlong_varints_and_unknown_fields_are_accepted_as_by_the_original_decoder() {
        let id = "2a10000102030405060708090a0b0c0d0e0f";
        let expected = Payload { time_ns: 0, ..payload(1, 0, 0, 0) };
        for head in ["0801", "088100", "08ff010801", "3d00000000080141000000000000000042027878", "0801f80105"] {
            let transaction = format!("a={head}{id}");
            assert_eq!(Payload::decode(transaction.as_bytes()), Some(expected), "{transaction}");
        }
    }

    #[test]
    fn foreign_transactions_are_not_recognized_as_ours() {
        let good = payload(1, 400, 160, 1_700_000_000_123_456_789).encode(1).unwrap();
        let upper = good.to_ascii_uppercase();
        let mut cases: Vec<&[u8]> = vec![b"", b"a=", b"a", b"b=0801", b"a=0", b"a=zz", b"a=08", &upper, &good[..159]];
        cases.push(&good[..120]);
        for transaction in cases {
            assert_eq!(Payload::decode(transaction), None, "{}", String::from_utf8_lossy(transaction));
        }
    }

    proptest! {
        #[test]
        fn round_trip_with_exact_size(
            connections in 1u64..100_000, rate in 1u64..1_000_000, half in 0u64..20_000, time_ns in 0i64..,
            experiment_id: [u8; 16], seed: u64,
        ) {
            let size_bytes = smallest_size_bytes(connections, rate) + 2 * half;
            let offered = Payload { connections, rate, size_bytes, time_ns, experiment_id };
            let transaction = offered.encode(seed).unwrap();
            prop_assert_eq!(transaction.len() as u64, size_bytes);
            prop_assert_eq!(Payload::decode(&transaction), Some(offered));
            prop_assert_eq!(transaction.iter().filter(|&&byte| byte == b'=').count(), 1);
        }

        #[test]
        fn decoder_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = Payload::decode(&bytes);
            let _ = Payload::decode(format!("a={hex}").as_bytes());
        }
    }
}
