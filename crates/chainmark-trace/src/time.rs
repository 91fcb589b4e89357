//! Time stamps of log lines.

use crate::json::{eight_digits, not_digits};
use crate::text::Text;

const SECOND_NS: i64 = 1_000_000_000;
/// Bytes of "2026-02-05T18:52:17".
const TO_SECONDS: usize = 19;
/// Maximum number of fractional digits of a time stamp.
const MAX_FRACTION: usize = 12;

/// Parses time stamps; remembers the last second, as most lines have the same one.
pub struct Clock {
    last: (u64, u64, u64),
    seconds: i64,
}

impl Default for Clock {
    fn default() -> Self {
        let word = |part: &[u8; 8]| u64::from_le_bytes(*part);
        Self { last: (word(b"1970-01-"), word(b"01T00:00"), word(b"00:00:00")), seconds: 0 }
    }
}

impl Clock {
    /// Nanoseconds since 1970 of the time stamp from `start` to before `end`; digits beyond the ninth are cut off.
    #[inline(always)]
    pub fn read(&mut self, text: &Text<'_>, start: usize, end: usize) -> Option<i64> {
        if end < start + TO_SECONDS + 1 {
            return None;
        }
        let (day, minute, second) = (text.word(start), text.word(start + 8), text.word(start + TO_SECONDS - 8));
        // Words in registers: an array would be stored, and waited for.
        if second != self.last.2 || minute != self.last.1 || day != self.last.0 {
            self.seconds = seconds(&text.bytes[start..start + TO_SECONDS])?;
            self.last = (day, minute, second);
        }
        let rest = start + TO_SECONDS;
        if text.bytes[rest] == b'.' && text.bytes[end - 1] == b'Z' && end - 1 - (rest + 1) <= 9 {
            let nanoseconds = fraction(text, rest + 1, end - 1)?;
            return self.seconds.checked_mul(SECOND_NS)?.checked_add(nanoseconds);
        }
        self.unusual(&text.bytes[rest..end])
    }

    /// No fraction, a long one, or an offset from UTC.
    #[cold]
    fn unusual(&self, rest: &[u8]) -> Option<i64> {
        let (nanoseconds, zone) = match rest.strip_prefix(b".") {
            Some(rest) => {
                let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if count == 0 || count > MAX_FRACTION {
                    return None;
                }
                let digits = rest[..count].iter().copied().chain(std::iter::repeat(b'0')).take(9);
                (digits.fold(0, |value, digit| value * 10 + i64::from(digit - b'0')), &rest[count..])
            }
            None => (0, rest),
        };
        let seconds = self.seconds - offset_s(zone)?;
        seconds.checked_mul(SECOND_NS)?.checked_add(nanoseconds)
    }
}

/// Up to nine digits after the point, as nanoseconds.
#[inline(always)]
fn fraction(text: &Text<'_>, start: usize, end: usize) -> Option<i64> {
    const SCALE: [i64; 10] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let count = end - start;
    if count == 0 {
        return None;
    }
    let (word, ninth) = if count >= 8 {
        (text.word(start), if count == 9 { text.bytes[start + 8].wrapping_sub(b'0') } else { 0 })
    } else {
        let missing = 8 * (8 - count as u32);
        ((text.word(start) << missing) | (0x3030_3030_3030_3030 & ((1 << missing) - 1)), 0)
    };
    if not_digits(word) != 0 || ninth > 9 {
        return None;
    }
    let digits = i64::from(eight_digits(word));
    Some(if count == 9 { digits * 10 + i64::from(ninth) } else { digits * SCALE[count] })
}

/// Seconds east of Greenwich.
fn offset_s(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone.split_first()? {
        (b'Z', []) => return Some(0),
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let minutes = match rest {
        [a, b] => number(&[*a, *b])? * 60,
        [a, b, b':', c, d] | [a, b, c, d] => {
            number(&[*a, *b])? * 60 + number(&[*c, *d]).filter(|minute| *minute < 60)?
        }
        _ => return None,
    };
    (minutes <= 24 * 60).then_some(sign * minutes * 60)
}

fn number(digits: &[u8]) -> Option<i64> {
    let all = digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}

/// Seconds since 1970 of "2026-02-05T18:52:17".
fn seconds(text: &[u8]) -> Option<i64> {
    let separated =
        text[4] == b'-' && text[7] == b'-' && matches!(text[10], b'T' | b' ') && text[13] == b':' && text[16] == b':';
    if !separated {
        return None;
    }
    let (year, month, day) = (number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?);
    let (hour, minute, second) = (number(&text[11..13])?, number(&text[14..16])?, number(&text[17..])?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    // A second 60 is a leap second.
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days of the Gregorian calendar. The year begins in March here, so that a leap day is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_before_month = (153 * month + 2) / 5;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + days_before_month + day - 719_469
}

/// The time in a line that is not JSON, for instance because it was cut off.
pub fn textual(clock: &mut Clock, text: &Text<'_>, start: usize, end: usize) -> Option<i64> {
    let line = &text.bytes[start..end];
    [&b"\"at\":\""[..], b"\\\"at\\\":\\\""].iter().find_map(|lead| {
        let from = start + memchr::memmem::find(line, lead)? + lead.len();
        let length = text.bytes[from..end].iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        clock.read(text, from, from + length)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::TextBuffer;

    fn read(stamp: &str) -> Option<i64> {
        let mut buffer = TextBuffer::new(64);
        buffer.append(stamp.as_bytes());
        buffer.index();
        Clock::default().read(&buffer.text(), 0, stamp.len())
    }

    #[test]
    fn published_instants_are_parsed() {
        for (stamp, nanoseconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600_000_000_000),
            ("2026-02-05T18:52:17.000912345Z", 1_770_317_537_000_912_345),
            ("2023-09-01T14:14:24.55Z", 1_693_577_664_550_000_000),
            ("2023-09-01 14:14:24.55+00:00", 1_693_577_664_550_000_000),
            ("2023-09-01T16:14:24.55+0200", 1_693_577_664_550_000_000),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000_000),
        ] {
            assert_eq!(read(stamp), Some(nanoseconds), "{stamp}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for stamp in [
            "",
            "now",
            "2026-02-05T18:52:17",
            "2026-02-05T18:52:17.Z",
            "2026-02-30T18:52:17Z",
            "2026-13-05T18:52:17Z",
            "2026-02-05T24:52:17Z",
            "2026-02-05T18:60:17Z",
            "2026-02-05T18:52:61Z",
            "2026-02-05T18:52:17.1234567890123Z",
            "2026-02-05T18:52:17.12x4Z",
            "2026-02-05T18:52:17.123456x8Z",
            "2026-02-05T18:52:17.12345678xZ",
            "2100-02-29T00:00:00Z",
            "2026-02-05T18:52:17.5",
            "9999-02-05T18:52:17.5Z",
            "2026-02-05T18:52:17.5ZZ",
            "2026-2-05T18:52:17.5Z",
        ] {
            assert_eq!(read(stamp), None, "{stamp}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_number_of_fractional_digits_is_accepted(second in 0_i64..60, digits in "[0-9]{0,12}") {
            let point = if digits.is_empty() { "" } else { "." };
            let stamp = format!("2026-02-05T18:52:{second:02}{point}{digits}Z");
            let nanoseconds: i64 = format!("{digits:0<9}")[..9].parse().unwrap();
            prop_assert_eq!(read(&stamp), Some((1_770_317_520 + second) * SECOND_NS + nanoseconds));
        }
    }
}
