//! Numbers: their ends, and their integer values.

use crate::json::{Fault, Scan, Scanner, Span, word_of};
use crate::text::Text;

impl Scanner<'_> {
    #[inline(always)]
    pub fn number(self, at: usize) -> Scan<usize> {
        let bytes = self.text.bytes;
        let mut at = at + usize::from(bytes[at] == b'-');
        at = match bytes[at] {
            b'0' => at + 1,
            b'1'..=b'9' => self.digits(at + 1),
            _ => return Err(Fault::Number),
        };
        if matches!(bytes[at], b'.' | b'e' | b'E') { self.fraction(at) } else { Ok(at) }
    }

    /// The rest of a number, from its point or exponent.
    fn fraction(self, mut at: usize) -> Scan<usize> {
        let bytes = self.text.bytes;
        if bytes[at] == b'.' {
            if !bytes[at + 1].is_ascii_digit() {
                return Err(Fault::Number);
            }
            at = self.digits(at + 1);
        }
        if matches!(bytes[at], b'e' | b'E') {
            at += 1 + usize::from(matches!(bytes[at + 1], b'+' | b'-'));
            if !bytes[at].is_ascii_digit() {
                return Err(Fault::Number);
            }
            at = self.digits(at);
        }
        Ok(at)
    }

    #[inline(always)]
    fn digits(self, mut at: usize) -> usize {
        loop {
            let others = not_digits(self.text.word(at));
            if others != 0 {
                return at + (others.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
    }
}

/// The highest bit of the first byte that is not an ASCII digit, and possibly of later bytes.
#[inline(always)]
pub fn not_digits(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let digits = word ^ (ONES * 0x30);
    (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80)
}

/// The integer that a number says, however it is written: 464, 464.0, 4.64e2. None if it is none, or one beyond 64
/// bits.
#[inline(always)]
pub fn integer(text: &Text<'_>, number: Span) -> Option<i128> {
    let length = number.length();
    if length <= 8 {
        // Zeros before it do not change a number.
        let word = text.word(number.start());
        let missing = 8 * (8 - length as u32);
        let digits = if missing < 64 { (word << missing) | (ZEROS & ((1 << missing) - 1)) } else { ZEROS };
        if not_digits(digits) == 0 {
            return Some(i128::from(eight_digits(digits)));
        }
    }
    integer_of(number.of(text))
}

const ZEROS: u64 = word_of(b"00000000");

/// The number that eight digits say, the first one in the lowest byte.
#[inline(always)]
pub fn eight_digits(word: u64) -> u32 {
    let digits = word & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000) + (fours >> 32)) as u32
}

fn integer_of(number: &[u8]) -> Option<i128> {
    if number.len() <= 18 && number.iter().all(u8::is_ascii_digit) {
        return Some(i128::from(number.iter().fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'))));
    }
    integer_slow(number)
}

#[cold]
fn integer_slow(number: &[u8]) -> Option<i128> {
    let (negative, number) = match number.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = match memchr::memchr2(b'e', b'E', number) {
        Some(at) => (&number[..at], std::str::from_utf8(&number[at + 1..]).ok()?),
        None => (number, "0"),
    };
    let (whole, part) = match memchr::memchr(b'.', mantissa) {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &mantissa[..0]),
    };
    let digits = whole.iter().chain(part).map(|digit| i128::from(digit.wrapping_sub(b'0')));
    if digits.clone().all(|digit| digit == 0) {
        return Some(0);
    }
    // An exponent beyond 32 bits is beyond any number of digits that a line can hold.
    let exponent = i64::from(exponent.parse::<i32>().ok()?) - part.len() as i64;
    let (mut value, mut zeros) = (0_i128, 0_i64);
    for digit in digits {
        // Zeros wait until something follows them: they may be the fraction's.
        if digit == 0 && value != 0 {
            zeros += 1;
        } else {
            value = value.checked_mul(10_i128.checked_pow((zeros + 1).try_into().ok()?)?)?.checked_add(digit)?;
            zeros = 0;
        }
    }
    let exponent = u32::try_from(exponent + zeros).ok()?;
    let value = value.checked_mul(10_i128.checked_pow(exponent)?)?;
    let value = if negative { -value } else { value };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_in_every_notation() {
        for (text, value) in [
            ("0", 0),
            ("464", 464),
            ("464.0", 464),
            ("4.64e2", 464),
            ("46400E-2", 464),
            ("-1", -1),
            ("-1.0", -1),
            ("0e99999999999", 0),
            ("0.000", 0),
            ("18446744073709551615", i128::from(u64::MAX)),
            ("100", 100),
            ("1.0e1", 10),
            ("1010.0100e2", 101_001),
            ("-9223372036854775808", i128::from(i64::MIN)),
        ] {
            assert_eq!(integer_of(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["0.5", "464.01", "1e-1", "1e400", "1e99999999999", "18446744073709551616", "-9223372036854775809"]
        {
            assert_eq!(integer_of(text.as_bytes()), None, "{text}");
        }
    }
}
