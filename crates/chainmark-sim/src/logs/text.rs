//! Numbers and times as the nodes print them, appended to a buffer of bytes.

const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233343536373839\
40414243444546474849505152535455565758596061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";
const HEX: &[u8; 16] = b"0123456789abcdef";
const NS_PER_S: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Append a decimal number.
#[inline]
pub fn push_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Hexadecimal digits of 64 bits, most significant first.
pub fn hex_digits(bits: u64) -> [u8; 16] {
    std::array::from_fn(|place| HEX[(bits >> (60 - 4 * place)) as usize & 15])
}

/// Eight hexadecimal digits.
#[inline]
pub fn push_hex8(out: &mut Vec<u8>, bits: u32) {
    let digits: [u8; 8] = std::array::from_fn(|place| HEX[(bits >> (28 - 4 * place)) as usize & 15]);
    out.extend_from_slice(&digits);
}

#[inline]
fn pair(value: u32) -> &'static [u8] {
    let start = value as usize * 2;
    &PAIRS[start..start + 2]
}

/// Prints times as `2026-02-05T19:00:00.000912345` (UTC), remembering the second it printed last.
#[derive(Debug, Clone)]
pub struct Stamp {
    second: i64,
    text: [u8; 19],
}

impl Default for Stamp {
    fn default() -> Self {
        Self { second: 0, text: *b"1970-01-01T00:00:00" }
    }
}

impl Stamp {
    /// Append a time with up to 9 fractional digits, trailing zeros cut.
    #[inline]
    pub fn push(&mut self, out: &mut Vec<u8>, ns: i64) {
        let fraction = self.push_second(out, ns);
        if fraction == 0 {
            return;
        }
        let mut digits = *b".000000000";
        let (high, low) = (fraction / 100_000, fraction % 100_000);
        digits[1..3].copy_from_slice(pair(high / 100));
        digits[3..5].copy_from_slice(pair(high % 100));
        digits[5] = b'0' + (low / 10_000) as u8;
        digits[6..8].copy_from_slice(pair(low / 100 % 100));
        digits[8..10].copy_from_slice(pair(low % 100));
        let mut length = 10;
        while digits[length - 1] == b'0' {
            length -= 1;
        }
        out.extend_from_slice(&digits[..length]);
    }

    /// Append a time with exactly two fractional digits, the rest cut off.
    #[inline]
    pub fn push_centiseconds(&mut self, out: &mut Vec<u8>, ns: i64) {
        let fraction = self.push_second(out, ns);
        out.push(b'.');
        out.extend_from_slice(pair(fraction / 10_000_000));
    }

    #[inline]
    fn push_second(&mut self, out: &mut Vec<u8>, ns: i64) -> u32 {
        let second = ns.div_euclid(NS_PER_S);
        if second != self.second {
            self.second = second;
            self.text = second_text(second);
        }
        out.extend_from_slice(&self.text);
        ns.rem_euclid(NS_PER_S) as u32
    }
}

fn second_text(second: i64) -> [u8; 19] {
    let (year, month, day) = civil_date(second.div_euclid(SECONDS_PER_DAY));
    let of_day = second.rem_euclid(SECONDS_PER_DAY) as u32;
    let mut text = *b"0000-00-00T00:00:00";
    text[0..2].copy_from_slice(pair((year / 100) as u32));
    text[2..4].copy_from_slice(pair((year % 100) as u32));
    for (place, value) in [(5, month), (8, day), (11, of_day / 3600), (14, of_day / 60 % 60), (17, of_day % 60)] {
        text[place..place + 2].copy_from_slice(pair(value));
    }
    text
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn civil_date(day: i64) -> (i64, u32, u32) {
    // Days are counted from 1 March of the year 0: the leap day is then the last of its year.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = (of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_month)
}

/// Append a number of nanoseconds in seconds, as the nodes' JSON library prints an exact decimal: `0.475`, `2.2536e-2`,
/// `1037437.527033868`, an integer if there is no fraction.
pub fn push_seconds(out: &mut Vec<u8>, ns: i64) {
    let mut digits = itoa::Buffer::new();
    push_decimal(out, ns < 0, digits.format(ns.unsigned_abs()).as_bytes(), -9);
}

/// A double with all digits of its exact value, as the nodes print ratios: `2.27272727…e-2`, `0.25`, `0`.
pub fn exact_text(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // No double needs more than 767 significant digits.
    decimal_text(&format!("{value:.770e}"))
}

/// The shortest text that reads back as the same single-precision number: `4.78205e-2`.
pub fn short_text(value: f32) -> String {
    decimal_text(&format!("{value:e}"))
}

/// A number like `4.78205e-2` as the nodes' JSON library prints it.
fn decimal_text(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let mut out = Vec::new();
    push_decimal(&mut out, mantissa.starts_with('-'), &digits, exponent - (digits.len() as i32 - 1));
    String::from_utf8_lossy(&out).into_owned()
}

/// Append `digits` · 10^`exponent`: an integer if it is one, plain from 0.1 to 10⁷, scientific otherwise.
fn push_decimal(out: &mut Vec<u8>, negative: bool, digits: &[u8], exponent: i32) {
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = &digits[leading..];
    let trailing = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    let (digits, exponent) = (&digits[..digits.len() - trailing], exponent + trailing as i32);
    if digits.is_empty() {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    // The value is 0.d₁d₂… · 10^point.
    let point = digits.len() as i32 + exponent;
    if exponent >= 0 {
        out.extend_from_slice(digits);
        out.resize(out.len() + exponent as usize, b'0');
    } else if (0..=7).contains(&point) {
        let whole = point as usize;
        if whole == 0 {
            out.push(b'0');
        }
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    } else {
        out.push(digits[0]);
        out.push(b'.');
        out.extend_from_slice(if digits.len() > 1 { &digits[1..] } else { b"0" });
        out.push(b'e');
        push_integer(out, point - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamped(ns: i64) -> String {
        let mut out = Vec::new();
        Stamp::default().push(&mut out, ns);
        String::from_utf8(out).unwrap()
    }

    fn seconds(ns: i64) -> String {
        let mut out = Vec::new();
        push_seconds(&mut out, ns);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_have_up_to_nine_digits_and_no_trailing_zeros() {
        let start = 1_770_317_536 * NS_PER_S; // 2026-02-05T18:52:16Z
        assert_eq!(stamped(start), "2026-02-05T18:52:16");
        assert_eq!(stamped(start + 1), "2026-02-05T18:52:16.000000001");
        assert_eq!(stamped(start + 912_345_670), "2026-02-05T18:52:16.91234567");
        assert_eq!(stamped(start + 500_000_000), "2026-02-05T18:52:16.5");
        assert_eq!(stamped(951_782_400 * NS_PER_S), "2000-02-29T00:00:00");
        let mut out = Vec::new();
        Stamp::default().push_centiseconds(&mut out, start + 109_999_999);
        assert_eq!(out, b"2026-02-05T18:52:16.10");
    }

    #[test]
    fn a_stamp_changes_with_the_second() {
        let (mut stamp, mut out) = (Stamp::default(), Vec::new());
        for second in [0, 0, 59, 60, 86_399, 86_400] {
            stamp.push(&mut out, second * NS_PER_S);
            out.push(b' ');
        }
        let expected = "1970-01-01T00:00:00 1970-01-01T00:00:00 1970-01-01T00:00:59 1970-01-01T00:01:00 \
                        1970-01-01T23:59:59 1970-01-02T00:00:00 ";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn seconds_are_formatted_as_in_real_logs() {
        for (ns, text) in [
            (22_536_000, "2.2536e-2"),
            (6_626_000, "6.626e-3"),
            (29_810_127, "2.9810127e-2"),
            (475_000_000, "0.475"),
            (613_318_494, "0.613318494"),
            (100_000_000, "0.1"),
            (99_999_999, "9.9999999e-2"),
            (10_000_000, "1.0e-2"),
            (1_000_000_000, "1"),
            (1_500_000_000, "1.5"),
            (1_037_437_527_033_868, "1037437.527033868"),
            (0, "0"),
            (-1_250_000, "-1.25e-3"),
        ] {
            assert_eq!(seconds(ns), text);
        }
    }

    #[test]
    fn doubles_are_printed_with_all_their_digits() {
        for (value, text) in [
            (1.0 / 44.0, "2.2727272727272727903535809446111670695245265960693359375e-2"),
            (2.0 / 51.0, "3.92156862745098033773416545955114997923374176025390625e-2"),
            (0.25, "0.25"),
            (2.0 / 7.0, "0.28571428571428569842538536249776370823383331298828125"),
            (0.0, "0"),
            (1.0, "1"),
        ] {
            assert_eq!(exact_text(value), text);
        }
        assert_eq!(short_text(0.047_820_5), "4.78205e-2");
        assert_eq!(short_text(0.5), "0.5");
        assert_eq!(short_text(0.0), "0");
    }

    proptest! {
        #[test]
        fn seconds_are_read_back_to_the_nanosecond(ns in 0i64..10_000_000_000_000_000) {
            let text = seconds(ns);
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let digits: i128 = format!("{whole}{fraction}").parse().unwrap();
            let shift = 9 + exponent.parse::<i32>().unwrap() - fraction.len() as i32;
            prop_assert!(shift >= 0 || digits % 10i128.pow(-shift as u32) == 0);
            let read = if shift >= 0 { digits * 10i128.pow(shift as u32) } else { digits / 10i128.pow(-shift as u32) };
            prop_assert_eq!(read, i128::from(ns));
        }

        #[test]
        fn doubles_are_read_back_exactly(value in 0.0f64..2.0) {
            prop_assert_eq!(exact_text(value).parse::<f64>().unwrap(), value);
        }

        #[test]
        fn stamps_have_the_order_of_their_times(a in 0i64..4_000_000_000_000_000_000, b in 0i64..1_000_000_000) {
            // Text order is time order once the fraction is padded.
            let pad = |text: String| format!("{:0<29}", text.clone() + if text.contains('.') { "" } else { "." });
            prop_assert!(pad(stamped(a)) <= pad(stamped(a + b)));
        }
    }
}
