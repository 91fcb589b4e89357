//! Members of `data`, typed.

use std::borrow::Cow;

use crate::decode::{Problem, shown};
use crate::event::{Hash, Point};
use crate::json::{Key, Members, Scanner, Span, integer, string};
use crate::text::Text;

/// The members of `data`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub scanner: Scanner<'a>,
    pub members: &'a Members,
}

pub(super) type Body<T> = Result<T, Problem>;

const UNSIGNED: &str = "an unsigned integer";

impl<'a> Fields<'a> {
    #[inline(always)]
    pub fn text(self) -> &'a Text<'a> {
        self.scanner.text
    }

    /// The value, absent if it is null.
    #[inline(always)]
    pub fn get(self, key: Key) -> Span {
        let value = self.members.get(self.text(), key);
        if value.lead(self.text()) == b'n' { Span::default() } else { value }
    }

    #[inline(always)]
    fn integer(self, value: Span) -> Option<i128> {
        match value.lead(self.text()) {
            b'-' | b'0'..=b'9' => integer(self.text(), value),
            b'"' | b'{' => self.shown_integer(value),
            _ => None,
        }
    }

    /// A number as a text, or in the record that it is the only member of: `"5"`, `"SlotNo 5"`, `{"unSlotNo":5}`.
    #[cold]
    fn shown_integer(self, value: Span) -> Option<i128> {
        match value.lead(self.text()) {
            b'{' => self.integer(self.scanner.only_member(value)?),
            _ => shown::integer(&string(self.text(), value)?),
        }
    }

    #[inline(always)]
    pub fn unsigned_value(self, key: &'static str, value: Span) -> Body<u64> {
        let value = self.integer(value).and_then(|value| u64::try_from(value).ok());
        value.ok_or(Problem::Body { key, wanted: UNSIGNED })
    }

    #[inline(always)]
    pub fn unsigned(self, key: Key) -> Body<u64> {
        self.unsigned_value(key.name, self.get(key))
    }

    pub fn unsigned_or(self, key: Key, default: u64) -> Body<u64> {
        let value = self.get(key);
        if value.present() { self.unsigned_value(key.name, value) } else { Ok(default) }
    }

    pub fn signed(self, key: Key) -> Body<i64> {
        let value = self.integer(self.get(key)).and_then(|value| i64::try_from(value).ok());
        value.ok_or(Problem::Body { key: key.name, wanted: "an integer" })
    }

    pub fn double_value(self, key: &'static str, value: Span) -> Body<f64> {
        let text = match value.lead(self.text()) {
            b'-' | b'0'..=b'9' => Some(Cow::Borrowed(value.of(self.text()))),
            _ => string(self.text(), value),
        };
        let parsed = text.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
        parsed.filter(|value: &f64| value.is_finite()).ok_or(Problem::Body { key, wanted: "a number" })
    }

    pub fn double(self, key: Key) -> Body<f64> {
        self.double_value(key.name, self.get(key))
    }

    pub fn double_or(self, key: Key, default: f64) -> Body<f64> {
        let value = self.get(key);
        if value.present() { self.double_value(key.name, value) } else { Ok(default) }
    }

    pub fn is_false(self, key: Key) -> Body<bool> {
        let value = self.get(key);
        match value.lead(self.text()) {
            0 | b't' => Ok(false),
            b'f' => Ok(true),
            _ => Err(Problem::Body { key: key.name, wanted: "true or false" }),
        }
    }

    /// A hash, which is all of the string.
    pub fn hash(self, key: Key) -> Body<Hash> {
        let text = self.members.string(self.text(), self.get(key));
        text.and_then(|text| hash(shown::unquoted(&text))).ok_or(Problem::Body { key: key.name, wanted: "a hash" })
    }

    /// A hash, which is how the string begins.
    pub fn leading_hash(self, key: Key) -> Body<Hash> {
        let text = self.members.string(self.text(), self.get(key));
        text.and_then(|text| hash(shown::unquoted(&text).get(..64)?))
            .ok_or(Problem::Body { key: key.name, wanted: "a hash" })
    }

    /// "HASH@SLOT", or a hash alone; none if it is anything else, as at the chain's beginning.
    pub fn point(self, key: Key) -> Option<Point> {
        let text = self.members.string(self.text(), self.get(key))?;
        let block = hash(text.get(..64)?)?;
        let slot = text.get(65..).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        Some(Point { block, slot })
    }
}

/// The hash that 64 hexadecimal digits say.
fn hash(digits: &[u8]) -> Option<Hash> {
    const BAD: u8 = 0xff;
    const VALUES: [u8; 256] = {
        let mut values = [BAD; 256];
        let mut digit = 0;
        while digit < 16 {
            values[b"0123456789abcdef"[digit] as usize] = digit as u8;
            values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
            digit += 1;
        }
        values
    };
    let digits: &[u8; 64] = digits.try_into().ok()?;
    let (mut hash, mut all) = ([0; 32], 0);
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (VALUES[pair[0] as usize], VALUES[pair[1] as usize]);
        all |= high | low;
        *byte = (high << 4) | (low & 0x0f);
    }
    (all < 16).then_some(Hash(hash))
}
