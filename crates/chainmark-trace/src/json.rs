//! A strict scanner of JSON (RFC 8259): whether a text is an object, and the positions of its members.
//!
//! Nothing is built from the text. Nesting is bounded and needs no stack of calls.

mod members;
mod numbers;
mod strings;

use std::fmt;

pub use members::{Key, Member, Members};
pub use numbers::{eight_digits, integer, not_digits};
pub use strings::{plain_string, string, unescape, unescape_into};

use crate::text::Text;
use members::is_key;

/// Objects and arrays within each other, the outermost counted.
pub const MAX_DEPTH: u32 = 128;

/// Why a text is no JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Character,
    Control,
    Escape,
    Number,
    Depth,
    Trailing,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Character => "no JSON: an unexpected character, or the line was cut off",
            Self::Control => "no JSON: a string does not end, or holds a control character",
            Self::Escape => "no JSON: a bad escape in a string",
            Self::Number => "no JSON: a bad number",
            Self::Depth => "nested too deeply",
            Self::Trailing => "text after the JSON object",
        })
    }
}

/// Bytes from `start` to before `end`. The default represents an absent value, as no value begins a text.
///
/// One word, because copying what was just stored in parts stalls the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span(u64);

impl Span {
    #[inline(always)]
    pub fn new(start: usize, end: usize) -> Self {
        Self((end as u64) << 32 | start as u64)
    }

    #[inline(always)]
    pub fn start(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline(always)]
    pub fn end(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    pub fn length(self) -> usize {
        self.end() - self.start()
    }

    #[inline(always)]
    pub fn present(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub fn of<'a>(self, text: &Text<'a>) -> &'a [u8] {
        &text.bytes[self.start()..self.end()]
    }

    /// First byte of the value, which determines its type; 0 for none.
    #[inline(always)]
    pub fn lead(self, text: &Text<'_>) -> u8 {
        if self.present() { text.bytes[self.start()] } else { 0 }
    }
}

/// Bytes as in the lowest part of a word.
pub(crate) const fn word_of(bytes: &[u8]) -> u64 {
    let (mut word, mut index) = (0, 0);
    while index < bytes.len() {
        word |= (bytes[index] as u64) << (8 * index);
        index += 1;
    }
    word
}

/// A comma and the quote of a key.
const NEXT_KEY: u16 = word_of(b",\"") as u16;

/// A cursor's view of text that ends at `end`.
#[derive(Clone, Copy)]
pub struct Scanner<'a> {
    pub text: &'a Text<'a>,
    pub end: usize,
}

type Scan<T> = Result<T, Fault>;

impl<'a> Scanner<'a> {
    /// Scans text that is one object and otherwise only white space.
    #[inline(always)]
    pub fn whole(self, start: usize, member: impl FnMut(Self, Member, usize) -> Scan<usize>) -> Scan<()> {
        if self.text.bytes[start] != b'{' {
            return Err(Fault::Character);
        }
        let after = self.object(start, member)?;
        if self.space(after) == self.end { Ok(()) } else { Err(Fault::Trailing) }
    }

    /// Scans the object that begins at `start`; `member` receives the key and the start of the value, and returns the
    /// end of the value. Returns the position after the object.
    #[inline(always)]
    pub fn object(self, start: usize, mut member: impl FnMut(Self, Member, usize) -> Scan<usize>) -> Scan<usize> {
        let bytes = self.text.bytes;
        let mut at = self.space(start + 1);
        if bytes[at] == b'}' {
            return Ok(at + 1);
        }
        loop {
            if bytes[at] != b'"' {
                return Err(Fault::Character);
            }
            let (quote, escaped) = self.string(at + 1)?;
            let key = Member::new(self.text, at + 1, quote, escaped);
            at = member(self, key, self.colon(quote)?)?;
            let next = self.text.word(at);
            if next as u16 == NEXT_KEY {
                at += 1;
                continue;
            }
            if next as u8 == b'}' {
                return Ok(at + 1);
            }
            at = self.space(at);
            match bytes[at] {
                b',' => at = self.space(at + 1),
                b'}' => return Ok(at + 1),
                _ => return Err(Fault::Character),
            }
        }
    }

    /// Scans a value of any type inside `depth` others and returns the position after it.
    #[inline(always)]
    pub fn value(self, at: usize, depth: u32) -> Scan<usize> {
        match self.text.bytes[at] {
            b'{' => match self.flat(at) {
                Some(end) if depth < MAX_DEPTH => Ok(end),
                _ => self.nested(at, depth),
            },
            b'[' => self.nested(at, depth),
            _ => self.scalar(at),
        }
    }

    #[inline(always)]
    fn scalar(self, at: usize) -> Scan<usize> {
        match self.text.bytes[at] {
            b'"' => Ok(self.string(at + 1)?.0 + 1),
            b'-' | b'0'..=b'9' => self.number(at),
            _ => self.literal(at),
        }
    }

    #[inline(always)]
    fn literal(self, at: usize) -> Scan<usize> {
        let word = self.text.word(at);
        let four = word as u32;
        if four == u32::from_le_bytes(*b"true") || four == u32::from_le_bytes(*b"null") {
            Ok(at + 4)
        } else if four == u32::from_le_bytes(*b"fals") && (word >> 32) as u8 == b'e' {
            Ok(at + 5)
        } else {
            Err(Fault::Character)
        }
    }

    /// The start of the value after the key that ends with the quote at `quote`.
    #[inline(always)]
    fn colon(self, quote: usize) -> Scan<usize> {
        let word = self.text.word(quote);
        if word as u16 == const { word_of(b"\":") as u16 } && (word >> 16) as u8 > b' ' {
            return Ok(quote + 2);
        }
        let colon = self.space(quote + 1);
        if self.text.bytes[colon] == b':' { Ok(self.space(colon + 1)) } else { Err(Fault::Character) }
    }

    /// The position of the first byte at or after `at` that is not white space.
    #[inline(always)]
    fn space(self, at: usize) -> usize {
        if self.text.bytes[at] > b' ' { at } else { self.spaces(at) }
    }

    #[inline(never)]
    fn spaces(self, mut at: usize) -> usize {
        while at < self.end && matches!(self.text.bytes[at], b' ' | b'\t' | b'\r' | b'\n') {
            at += 1;
        }
        at
    }

    /// The position after an object without white space whose members are not objects or arrays; None if it is another
    /// object, or not an object.
    #[inline(never)]
    fn flat(self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        if self.text.bytes[at] != b'"' {
            return None;
        }
        loop {
            let (quote, _) = self.string(at + 1).ok()?;
            let value = self.colon(quote).ok()?;
            at = self.scalar(value).ok()?;
            let next = self.text.word(at);
            if next as u16 == NEXT_KEY {
                at += 1;
            } else {
                return (next as u8 == b'}').then_some(at + 1);
            }
        }
    }

    /// An object or array inside `depth` others.
    #[inline(never)]
    fn nested(self, mut at: usize, depth: u32) -> Scan<usize> {
        let bytes = self.text.bytes;
        let allowed = MAX_DEPTH - depth;
        // One bit for each open bracket, the innermost lowest: 1 for an object.
        let (mut open, mut level) = (0_u128, 0);
        loop {
            // A value begins here.
            let lead = bytes[at];
            if lead == b'{' || lead == b'[' {
                if level == allowed {
                    return Err(Fault::Depth);
                }
                at = self.space(at + 1);
                let object = lead == b'{';
                if bytes[at] == if object { b'}' } else { b']' } {
                    at += 1;
                } else {
                    open = (open << 1) | u128::from(object);
                    level += 1;
                    if object {
                        at = self.key(at)?;
                    }
                    continue;
                }
            } else {
                at = self.scalar(at)?;
            }
            // A value has ended before here; so may what encloses it.
            loop {
                if level == 0 {
                    return Ok(at);
                }
                at = self.space(at);
                let object = open & 1 == 1;
                if bytes[at] == b',' {
                    at = self.space(at + 1);
                    if object {
                        at = self.key(at)?;
                    }
                    break;
                }
                if bytes[at] != if object { b'}' } else { b']' } {
                    return Err(Fault::Character);
                }
                at += 1;
                open >>= 1;
                level -= 1;
            }
        }
    }

    /// A key with its colon; returns the start of the value.
    #[inline(always)]
    fn key(self, at: usize) -> Scan<usize> {
        if self.text.bytes[at] != b'"' {
            return Err(Fault::Character);
        }
        self.colon(self.string(at + 1)?.0)
    }

    /// The items of the array `array`, which was scanned before.
    pub fn items(self, array: Span) -> impl Iterator<Item = Span> + use<'a> {
        let mut at = self.space(array.start() + 1);
        std::iter::from_fn(move || {
            if self.text.bytes[at] == b']' {
                return None;
            }
            let end = self.value(at, 1).ok()?;
            let item = Span::new(at, end);
            at = self.space(end);
            if self.text.bytes[at] == b',' {
                at = self.space(at + 1);
            }
            Some(item)
        })
    }

    /// The value of the last member called `key` of the object `object`, which was scanned before.
    pub fn member(self, object: Span, key: Key) -> Span {
        let mut result = Span::default();
        if object.lead(self.text) == b'{' {
            // What was scanned before has no fault.
            let _ = self.object(object.start(), |scanner, member, at| {
                let end = scanner.value(at, 1)?;
                if is_key(scanner.text, member, key) {
                    result = Span::new(at, end);
                }
                Ok(end)
            });
        }
        result
    }

    /// The value of the only member of `object`, which was scanned before; none if it has none, or several.
    pub fn only_member(self, object: Span) -> Option<Span> {
        let (mut result, mut count) = (None, 0);
        let _ = self.object(object.start(), |scanner, _, at| {
            let end = scanner.value(at, 1)?;
            count += 1;
            result = Some(Span::new(at, end));
            Ok(end)
        });
        result.filter(|_| count == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::TextBuffer;

    fn is_object(text: &[u8]) -> bool {
        let mut buffer = TextBuffer::new(64);
        buffer.append(text);
        buffer.index();
        let scanner = Scanner { text: &buffer.text(), end: text.len() };
        scanner.whole(0, |scanner, _, at| scanner.value(at, 1)).is_ok()
    }

    #[test]
    fn only_strict_json_is_accepted() {
        for good in
            ["{}", " {}".trim(), r#"{"a":[],"b":{}}"#, "{\"a\" : -0.5e+3 ,\t\"b\":[true,false,null,\"\\u00e9\"]} \r"]
        {
            assert!(is_object(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "{",
            "{}}",
            "[]",
            "1",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":1e}"#,
            r#"{"a":-}"#,
            r#"{"a":+1}"#,
            r#"{"a":nul}"#,
            r#"{"a":True}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            "{\"a\":\"\t\"}",
            "{\"a\":\"\n\"}",
            r#"{"a":[1,]}"#,
            r#"{"a":[1}}"#,
            r#"{"a":{"b":1]}"#,
            r#"{"a":1 2}"#,
            r#"{a:1}"#,
            r#"{"a":1}x"#,
            "{\"a\":1}\0",
            r#"{"a":"\"}"#,
            r#"{"a":[[1]}"#,
            r#"{'a':1}"#,
        ] {
            assert!(!is_object(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_object(nested(127).as_bytes()));
        assert!(!is_object(nested(128).as_bytes()));
        assert!(!is_object(format!("{{\"a\":{}", "[".repeat(1_000_000)).as_bytes()));
    }
}
