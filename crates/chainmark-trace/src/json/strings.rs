//! Strings: their ends, and their escapes.

use std::borrow::Cow;

use crate::json::{Fault, Scan, Scanner, Span};
use crate::text::Text;

impl Scanner<'_> {
    /// The closing quote of the string whose first character is at `at`, and whether it holds escapes.
    #[inline(always)]
    pub fn string(self, at: usize) -> Scan<(usize, bool)> {
        let special = self.text.next_special(at);
        if self.text.bytes[special] == b'"' { Ok((special, false)) } else { Ok((self.escapes(special)?, true)) }
    }

    #[inline(never)]
    fn escapes(self, mut at: usize) -> Scan<usize> {
        loop {
            match self.text.bytes[at] {
                b'"' => return Ok(at),
                b'\\' => match self.text.bytes[at + 1] {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                    b'u' if self.text.bytes[at + 2..at + 6].iter().all(u8::is_ascii_hexdigit) => at += 6,
                    _ => return Err(Fault::Escape),
                },
                _ => return Err(Fault::Control),
            }
            at = self.text.next_special(at);
        }
    }
}

/// The text of a string that has no escapes; none if the value is no string.
#[inline(always)]
pub fn plain_string<'a>(text: &Text<'a>, value: Span) -> Option<&'a [u8]> {
    if value.lead(text) == b'"' { Some(&text.bytes[value.start() + 1..value.end() - 1]) } else { None }
}

/// A string's text, given its value with the quotes; none if the value is no string.
#[inline(always)]
pub fn string<'a>(text: &Text<'a>, value: Span) -> Option<Cow<'a, [u8]>> {
    if value.lead(text) != b'"' {
        return None;
    }
    let (start, end) = (value.start() + 1, value.end() - 1);
    let inside = &text.bytes[start..end];
    Some(if text.next_special(start) == end { Cow::Borrowed(inside) } else { unescape(inside) })
}

/// The text of a string that was scanned before. Half of a surrogate pair becomes U+FFFD.
pub fn unescape(inside: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', inside).is_none() {
        return Cow::Borrowed(inside);
    }
    let mut out = Vec::with_capacity(inside.len());
    unescape_into(inside, |part| out.extend_from_slice(part));
    Cow::Owned(out)
}

/// Emits the text of a string, part by part.
pub fn unescape_into(mut inside: &[u8], mut put: impl FnMut(&[u8])) {
    while let Some(backslash) = memchr::memchr(b'\\', inside) {
        put(&inside[..backslash]);
        let (byte, used) = match inside.get(backslash + 1) {
            Some(b'u') => {
                let (character, used) = unicode(&inside[backslash..]);
                put(character.encode_utf8(&mut [0; 4]).as_bytes());
                inside = &inside[(backslash + used).min(inside.len())..];
                continue;
            }
            Some(b'b') => (0x08, 2),
            Some(b'f') => (0x0c, 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(&other) => (other, 2),
            None => (b'\\', 1),
        };
        put(&[byte]);
        inside = &inside[backslash + used..];
    }
    put(inside);
}

/// The character of a `\u` escape, and the bytes of its one or two escapes.
fn unicode(escape: &[u8]) -> (char, usize) {
    let unit = |from: usize| -> Option<u32> {
        let digits = escape.get(from..from + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(0).unwrap_or(0xfffd);
    if (0xd800..0xdc00).contains(&first)
        && let Some(second @ 0xdc00..0xe000) = unit(6)
    {
        let character = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        for (escaped, plain) in [
            (r#"a\n\t\r\b\f\/\\\""#, "a\n\t\r\u{8}\u{c}/\\\""),
            (r"\u00e9\ud83d\ude00x", "é😀x"),
            (r"\ud83dx\udc00", "\u{fffd}x\u{fffd}"),
        ] {
            assert_eq!(unescape(escaped.as_bytes()).as_ref(), plain.as_bytes());
        }
    }
}
