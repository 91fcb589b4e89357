//! Lines that repeat earlier ones after their time stamps.
//!
//! At least half of a node's log is such lines: a peer without a transaction to offer logs that thousands of times. The
//! same bytes have the same content, so a line that equals a scanned one needs no scan of its own: it is compared.

use crate::event::Fact;
use crate::message::Routed;
use crate::text::Text;

/// Lines that are kept: some hundreds repeat, one for each peer and count.
const MAX_STORED: usize = 1_024;
/// Shorter rests of lines are none of a node's, longer ones are not kept.
const LENGTHS: std::ops::RangeInclusive<usize> = BLOCK..=512;
/// Bytes that are mixed together.
const BLOCK: usize = 64;

/// The content of a line besides its time. Of events only those that are only counted: others contain a slot, a block
/// or the time, and hardly ever repeat.
#[derive(Debug, Clone, Copy)]
pub(super) enum LineContent {
    Ignored,
    Collected { count: u64 },
    Processed { accepted: u64, rejected: i64 },
}

impl LineContent {
    #[inline(always)]
    pub fn of(fact: &Fact<'_>) -> Option<Self> {
        match *fact {
            Fact::TransactionsCollected { count } => Some(Self::Collected { count }),
            Fact::TransactionsProcessed { accepted, rejected } => Some(Self::Processed { accepted, rejected }),
            _ => None,
        }
    }
}

/// The text after a line's time stamp, from its closing quote to the line's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub start: usize,
    pub end: usize,
    /// None if it is not worth to be looked up.
    hash: Option<u64>,
}

impl Rest {
    fn of<'a>(self, text: &Text<'a>) -> &'a [u8] {
        &text.bytes[self.start..self.end]
    }
}

const SECRETS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// Hashes all bytes. The hash is internal, and may differ between processors.
#[inline(always)]
fn hash(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just checked.
        return unsafe { x86::hash(bytes) };
    }
    hash_portable(bytes)
}

/// Every block, the last one at the end, even if it overlaps the previous one.
#[inline(always)]
fn each_block(bytes: &[u8], mut tell: impl FnMut(&[u8; BLOCK])) {
    let mut rest = bytes;
    while let Some((block, behind)) = rest.split_first_chunk() {
        tell(block);
        rest = behind;
    }
    if let Some(last) = bytes.last_chunk().filter(|_| !rest.is_empty()) {
        tell(last);
    }
}

/// 16 bytes a multiplication, in four chains that do not wait for each other.
fn hash_portable(bytes: &[u8]) -> u64 {
    let mut states = SECRETS;
    states[0] ^= bytes.len() as u64;
    each_block(bytes, |block| {
        for ((state, secret), pair) in states.iter_mut().zip(SECRETS).zip(block.as_chunks::<16>().0) {
            let (one, other) = (word(pair, 0), word(pair, 8));
            *state = multiply(*state ^ one, secret ^ other);
        }
    });
    let [one, two, three, four] = states;
    one ^ two.rotate_left(16) ^ three.rotate_left(32) ^ four.rotate_left(48)
}

#[inline(always)]
fn word(pair: &[u8; 16], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|place| pair[at + place]))
}

#[inline(always)]
fn multiply(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_mul_epu32, _mm256_shuffle_epi32, _mm256_srli_epi64,
        _mm256_xor_si256,
    };

    use super::{BLOCK, SECRETS, each_block, multiply};

    /// 64 bytes with two multiplications of four pairs of half words, as XXH3 does.
    #[target_feature(enable = "avx2")]
    pub fn hash(bytes: &[u8]) -> u64 {
        let step = load(&SECRETS);
        let [mut secret, mut one, mut two] = [step; 3];
        each_block(bytes, |block| {
            let (first, second) = halves(block);
            one = mix(one, first, secret);
            secret = _mm256_add_epi64(secret, step);
            two = mix(two, second, secret);
            secret = _mm256_add_epi64(secret, step);
        });
        let mixed: [u64; 4] = {
            let sum = _mm256_add_epi64(one, _mm256_shuffle_epi32::<0b01_00_11_10>(two));
            // SAFETY: both are 32 bytes of plain numbers.
            unsafe { std::mem::transmute::<__m256i, [u64; 4]>(sum) }
        };
        let length = bytes.len() as u64;
        multiply(mixed[0] ^ length, mixed[1] ^ SECRETS[2]) ^ multiply(mixed[2] ^ SECRETS[3], mixed[3] ^ SECRETS[1])
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mix(state: __m256i, value: __m256i, secret: __m256i) -> __m256i {
        let keyed = _mm256_xor_si256(value, secret);
        let product = _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed));
        // The value itself, too: a half word of zeros does not change it.
        _mm256_add_epi64(_mm256_add_epi64(state, product), _mm256_shuffle_epi32::<0b01_00_11_10>(value))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(words: &[u64; 4]) -> __m256i {
        // SAFETY: these are 32 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(block: &[u8; BLOCK]) -> (__m256i, __m256i) {
        let at = block.as_ptr();
        // SAFETY: a block is 64 bytes long, and loads need no alignment.
        unsafe { (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(BLOCK / 2).cast())) }
    }
}

struct StoredLine {
    hash: u64,
    rest: Box<[u8]>,
    routed: Routed,
    content: LineContent,
}

/// A place for namespaces that begin alike.
#[inline(always)]
fn named(text: &Text<'_>, start: usize) -> usize {
    // Its eight bytes behind `","ns":"`.
    (text.word(start + 8).wrapping_mul(SECRETS[0]) >> 58) as usize % Repeats::NAMES
}

/// After this many consecutive misses of some namespaces, they are no longer looked up.
const IN_VAIN: u16 = 4_096;

/// The lines that repeat.
pub(super) struct Repeats {
    stored: Vec<StoredLine>,
    /// Index into `stored` plus one, by hash; a line whose slot is taken is not kept.
    places: Box<[u16; Self::PLACES]>,
    /// Parts of the hashes of lines that were seen once: a line is copied only when it repeats.
    once: Box<[u16; Self::PLACES]>,
    /// Consecutive misses, by how their namespace begins. Lines with a slot, a block or a transaction never repeat. It
    /// overflows, so that they are tried again now and then.
    in_vain: [u16; Self::NAMES],
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            stored: Vec::new(),
            places: Box::new([0; Self::PLACES]),
            once: Box::new([0; Self::PLACES]),
            in_vain: [0; Self::NAMES],
        }
    }
}

impl Repeats {
    /// Few enough for both tables to stay in the first-level cache.
    const PLACES: usize = 4_096;
    const NAMES: usize = 64;

    /// The part of a line to look up, unless it is too short or too long to be kept, or hardly ever repeats.
    #[inline(always)]
    pub fn rest(&mut self, text: &Text<'_>, start: usize, end: usize) -> Rest {
        if !LENGTHS.contains(&end.wrapping_sub(start)) {
            return Rest { start, end, hash: None };
        }
        let in_vain = &mut self.in_vain[named(text, start)];
        *in_vain = in_vain.wrapping_add(1);
        Rest { start, end, hash: (*in_vain <= IN_VAIN).then(|| hash(&text.bytes[start..end])) }
    }

    /// The content of an equal line.
    #[inline(always)]
    pub fn find(&mut self, text: &Text<'_>, rest: Rest) -> Option<(Routed, LineContent)> {
        let hash = rest.hash?;
        let index = self.places[hash as usize % Self::PLACES].checked_sub(1)?;
        let stored = &self.stored[index as usize];
        if stored.hash != hash || *stored.rest != *rest.of(text) {
            return None;
        }
        self.in_vain[named(text, rest.start)] = 0;
        Some((stored.routed, stored.content))
    }

    /// Keeps a line that comes for the second time.
    #[inline(always)]
    pub fn keep(&mut self, text: &Text<'_>, rest: Rest, routed: Routed, content: LineContent) {
        let Some(hash) = rest.hash else { return };
        let once = &mut self.once[hash as usize % Self::PLACES];
        let mark = (hash >> 48) as u16;
        if *once == mark {
            self.add(StoredLine { hash, rest: rest.of(text).into(), routed, content });
        } else {
            *once = mark;
        }
    }

    #[cold]
    fn add(&mut self, stored: StoredLine) {
        if self.stored.len() == MAX_STORED {
            self.clear();
        }
        let place = &mut self.places[stored.hash as usize % Self::PLACES];
        if *place == 0 {
            self.stored.push(stored);
            *place = self.stored.len() as u16;
        }
    }

    pub fn clear(&mut self) {
        if !self.stored.is_empty() {
            self.stored.clear();
            self.places.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_line_affects_both_hashes() {
        let line: Vec<u8> = (0..=*LENGTHS.end()).map(|place| (place * 7 % 251) as u8).collect();
        for length in [64, 65, 96, 127, 128, 200, 512] {
            for hash in [hash, hash_portable] {
                let whole = hash(&line[..length]);
                let elsewhere = line[..length].to_vec();
                assert_eq!(whole, hash(&elsewhere));
                assert_ne!(whole, hash(&line[1..=length]));
                for place in 0..length {
                    let mut other = line[..length].to_vec();
                    other[place] ^= 1;
                    assert_ne!(whole, hash(&other), "byte {place} of {length}");
                }
            }
        }
    }
}
