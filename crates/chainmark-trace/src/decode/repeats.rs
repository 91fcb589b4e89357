//! Lines that say again, behind their time stamps, what earlier ones said.
//!
//! Half of a node's log and more is such lines: a peer that has no transaction to offer says so thousands of times. The
//! same bytes say the same, so a line that is equal to one that was scanned needs no scan of its own: it is compared.

use crate::event::Fact;
use crate::message::Routed;
use crate::text::Text;

/// Lines that are kept: some hundreds repeat, one for each peer and count.
const MAX_KEPT: usize = 1_024;
/// Shorter rests of lines are none of a node's, longer ones are not kept.
const LENGTHS: std::ops::RangeInclusive<usize> = BLOCK..=512;
/// Bytes that are mixed together.
const BLOCK: usize = 64;

/// What a line said beside its time. Of events only those that are nothing but a count: others tell a slot, a block or
/// the time, and hardly ever the same again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said {
    Ignored,
    Collected { count: u64 },
    Processed { accepted: u64, rejected: i64 },
}

impl Said {
    #[inline(always)]
    pub fn of(fact: &Fact<'_>) -> Option<Self> {
        match *fact {
            Fact::TransactionsCollected { count } => Some(Self::Collected { count }),
            Fact::TransactionsProcessed { accepted, rejected } => Some(Self::Processed { accepted, rejected }),
            _ => None,
        }
    }
}

/// What stands behind a line's time stamp, from its closing quote to the line's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub start: usize,
    pub end: usize,
    hash: u64,
}

impl Rest {
    /// None if it is too short or too long to be kept.
    #[inline(always)]
    pub fn new(text: &Text<'_>, start: usize, end: usize) -> Option<Self> {
        LENGTHS.contains(&end.wrapping_sub(start)).then(|| Self { start, end, hash: hash(text, start, end) })
    }

    fn of<'a>(self, text: &Text<'a>) -> &'a [u8] {
        &text.bytes[self.start..self.end]
    }
}

const SECRETS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// Mixes all bytes, 16 a multiplication, in four chains that do not wait for each other.
#[inline(always)]
fn hash(text: &Text<'_>, start: usize, end: usize) -> u64 {
    let [mut one, mut two, mut three, mut four] = SECRETS;
    one ^= (end - start) as u64;
    let mut at = start;
    loop {
        let is_last = at + BLOCK >= end;
        // The last block, however many of its bytes were mixed before.
        at = if is_last { end - BLOCK } else { at };
        one = mix(text, one, SECRETS[0], at);
        two = mix(text, two, SECRETS[1], at + 16);
        three = mix(text, three, SECRETS[2], at + 32);
        four = mix(text, four, SECRETS[3], at + 48);
        if is_last {
            return one ^ two.rotate_left(16) ^ three.rotate_left(32) ^ four.rotate_left(48);
        }
        at += BLOCK;
    }
}

#[inline(always)]
fn mix(text: &Text<'_>, state: u64, secret: u64, at: usize) -> u64 {
    let product = u128::from(state ^ text.word(at)) * u128::from(secret ^ text.word(at + 8));
    product as u64 ^ (product >> 64) as u64
}

struct Kept {
    hash: u64,
    rest: Box<[u8]>,
    routed: Routed,
    said: Said,
}

/// The lines that repeat.
pub(super) struct Repeats {
    kept: Vec<Kept>,
    /// Index into `kept` plus one, by hash; one that finds its place taken is not kept.
    places: Box<[u16; Self::PLACES]>,
    /// Parts of the hashes of lines that came once: what never comes again is not worth a copy.
    once: Box<[u16; Self::PLACES]>,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { kept: Vec::new(), places: Box::new([0; Self::PLACES]), once: Box::new([0; Self::PLACES]) }
    }
}

impl Repeats {
    /// Few enough for both tables to stay in the first-level cache.
    const PLACES: usize = 4_096;

    /// What an equal line said.
    #[inline(always)]
    pub fn find(&self, text: &Text<'_>, rest: Rest) -> Option<(Routed, Said)> {
        let index = self.places[rest.hash as usize % Self::PLACES].checked_sub(1)?;
        let kept = &self.kept[index as usize];
        (kept.hash == rest.hash && *kept.rest == *rest.of(text)).then_some((kept.routed, kept.said))
    }

    /// Keeps a line that comes for the second time.
    #[inline(always)]
    pub fn keep(&mut self, text: &Text<'_>, rest: Rest, routed: Routed, said: Said) {
        let once = &mut self.once[rest.hash as usize % Self::PLACES];
        let mark = (rest.hash >> 48) as u16;
        if *once == mark {
            self.add(text, rest, routed, said);
        } else {
            *once = mark;
        }
    }

    #[cold]
    fn add(&mut self, text: &Text<'_>, rest: Rest, routed: Routed, said: Said) {
        if self.kept.len() == MAX_KEPT {
            self.clear();
        }
        let place = &mut self.places[rest.hash as usize % Self::PLACES];
        if *place == 0 {
            self.kept.push(Kept { hash: rest.hash, rest: rest.of(text).into(), routed, said });
            *place = self.kept.len() as u16;
        }
    }

    pub fn clear(&mut self) {
        if !self.kept.is_empty() {
            self.kept.clear();
            self.places.fill(0);
        }
    }
}
