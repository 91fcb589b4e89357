//! A strict scanner of JSON (RFC 8259): says whether a text is an object, and where its members stand.
//!
//! Nothing is built from the text. Nesting is bounded and needs no stack of calls.

use std::borrow::Cow;
use std::fmt;

use crate::text::Text;

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

/// Bytes from `start` to before `end`. The default stands for an absent value, as no value begins a text.
///
/// One word, as copies of what was just stored in parts make the processor wait.
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

    /// First byte of the value, which tells its type; 0 for none.
    #[inline(always)]
    pub fn lead(self, text: &Text<'_>) -> u8 {
        if self.present() { text.bytes[self.start()] } else { 0 }
    }
}

/// A member of an object: its key without the quotes, its value with them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member {
    pub key: Span,
    pub value: Span,
    /// The key's first eight bytes.
    head: u64,
    /// Whether the key is written with escapes.
    pub escaped: bool,
}

impl Member {
    #[inline(always)]
    fn new(text: &Text<'_>, start: usize, quote: usize, escaped: bool) -> Self {
        let head = low_bytes(text.word(start), quote - start);
        Self { key: Span::new(start, quote), value: Span::default(), head, escaped }
    }
}

/// A key that is asked for, prepared to be compared.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    head: u64,
}

impl Key {
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        let (mut head, mut index) = (0, 0);
        while index < bytes.len() && index < 8 {
            head |= (bytes[index] as u64) << (8 * index);
            index += 1;
        }
        Self { name, head }
    }
}

/// The lowest `count` bytes of a word; all of them if there are more.
#[inline(always)]
fn low_bytes(word: u64, count: usize) -> u64 {
    if count < 8 { word & ((1 << (8 * count)) - 1) } else { word }
}

/// Bytes as they stand in the lowest part of a word.
const fn word_of(bytes: &[u8]) -> u64 {
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
    /// Scans text that is one object and nothing else but white space.
    #[inline(always)]
    pub fn whole(self, start: usize, member: impl FnMut(Self, Member, usize) -> Scan<usize>) -> Scan<()> {
        if self.text.bytes[start] != b'{' {
            return Err(Fault::Character);
        }
        let after = self.object(start, member)?;
        if self.space(after) == self.end { Ok(()) } else { Err(Fault::Trailing) }
    }

    /// Scans the object that begins at `start`; `member` gets the key, and where the value begins, and returns where
    /// it ends. Returns the position after the object.
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

    /// Scans a log object of today's nodes: the members `at`, `ns`, `data`, `sev`, `thread`, `host`, without white
    /// space or escapes outside of `data`. None if it is no such object, or none at all.
    #[inline(always)]
    pub fn usual(self, start: usize, members: &mut Members, asked: &[Key]) -> Option<[Span; 5]> {
        let text = self.text;
        if text.word(start) & (u64::MAX >> 8) != const { word_of(b"{\"at\":\"") } {
            return None;
        }
        let at_end = text.next_special(start + 7);
        if text.word(at_end) != const { word_of(b"\",\"ns\":\"") } {
            return None;
        }
        let ns_end = text.next_special(at_end + 8);
        if text.word(ns_end) != const { word_of(b"\",\"data\"") }
            || text.word(ns_end + 8) as u16 != const { word_of(b":{") } as u16
        {
            return None;
        }
        let data = ns_end + 9;
        let data_end = self.members(data, 1, members, asked).ok()?;
        if text.word(data_end) != const { word_of(b",\"sev\":\"") } {
            return None;
        }
        let sev_end = text.next_special(data_end + 8);
        if text.word(sev_end) != const { word_of(b"\",\"threa") }
            || text.word(sev_end + 8) as u32 != const { word_of(b"d\":\"") } as u32
        {
            return None;
        }
        let thread_end = text.next_special(sev_end + 12);
        if text.word(thread_end) != const { word_of(b"\",\"host\"") }
            || text.word(thread_end + 8) as u16 != const { word_of(b":\"") } as u16
        {
            return None;
        }
        let host_end = text.next_special(thread_end + 10);
        if text.word(host_end) as u16 != const { word_of(b"\"}") } as u16 || host_end + 2 != self.end {
            return None;
        }
        Some([
            Span::new(start + 6, at_end + 1),
            Span::new(at_end + 7, ns_end + 1),
            Span::new(data, data_end),
            Span::new(sev_end + 11, thread_end + 1),
            Span::new(thread_end + 9, host_end + 1),
        ])
    }

    /// Scans the object that begins at `start` inside `depth` others, and notes its members. Returns the position
    /// after it.
    #[inline(never)]
    pub fn members(self, start: usize, depth: u32, members: &mut Members, asked: &[Key]) -> Scan<usize> {
        match self.usual_members(start, depth, members) {
            Some(end) => Ok(end),
            None => self.any_members(start, depth, members, asked),
        }
    }

    /// The same for objects that are written as nodes write them: not too many members, no white space, no escapes
    /// but within members. None for others.
    #[inline(always)]
    fn usual_members(self, start: usize, depth: u32, members: &mut Members) -> Option<usize> {
        let text = self.text;
        if text.word(start) as u16 != const { word_of(b"{\"") as u16 } {
            return None;
        }
        let mut at = start + 1;
        for (count, place) in members.first.iter_mut().enumerate() {
            let quote = text.next_special(at + 1);
            let word = text.word(quote);
            if word as u16 != const { word_of(b"\":") as u16 } {
                return None;
            }
            let value = quote + 2;
            let end = match (word >> 16) as u8 {
                b'"' => {
                    let close = text.next_special(value + 1);
                    if text.bytes[close] != b'"' {
                        return None;
                    }
                    close + 1
                }
                b'1'..=b'9' => self.number(value).ok()?,
                _ => self.value(value, depth + 1).ok()?,
            };
            place.key = Span::new(at + 1, quote);
            place.value = Span::new(value, end);
            place.head = low_bytes(text.word(at + 1), quote - (at + 1));
            place.escaped = false;
            let next = text.word(end);
            if next as u16 != NEXT_KEY {
                members.count = count + 1;
                members.plain = true;
                return (next as u8 == b'}').then_some(end + 1);
            }
            at = end + 1;
        }
        None
    }

    #[cold]
    fn any_members(self, start: usize, depth: u32, members: &mut Members, asked: &[Key]) -> Scan<usize> {
        members.clear();
        self.object(start, |scanner, member, at| {
            let end = scanner.value(at, depth + 1)?;
            let member = Member { value: Span::new(at, end), ..member };
            if let Some(place) = members.first.get_mut(members.count) {
                *place = member;
                members.count += 1;
            } else {
                members.replace(scanner.text, member, asked);
            }
            Ok(end)
        })
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

    /// Where the value begins behind the key that ends with the quote at `quote`.
    #[inline(always)]
    fn colon(self, quote: usize) -> Scan<usize> {
        let word = self.text.word(quote);
        if word as u16 == const { word_of(b"\":") as u16 } && (word >> 16) as u8 > b' ' {
            return Ok(quote + 2);
        }
        let colon = self.space(quote + 1);
        if self.text.bytes[colon] == b':' { Ok(self.space(colon + 1)) } else { Err(Fault::Character) }
    }

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

    #[inline(always)]
    fn number(self, at: usize) -> Scan<usize> {
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

    /// The position of the first byte at or after `at` that is no white space.
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

    /// The position after an object without white space whose members are no objects or arrays; none if it is another
    /// one, or none at all.
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

    /// A key with its colon; returns where the value begins.
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
        let mut found = Span::default();
        if object.lead(self.text) == b'{' {
            // What was scanned before has no fault.
            let _ = self.object(object.start(), |scanner, member, at| {
                let end = scanner.value(at, 1)?;
                if is_key(scanner.text, member, key) {
                    found = Span::new(at, end);
                }
                Ok(end)
            });
        }
        found
    }
}

#[inline(always)]
fn is_key(text: &Text<'_>, member: Member, key: Key) -> bool {
    if member.escaped {
        return is_escaped_key(text, member, key);
    }
    let length = member.key.length();
    let same = member.head == key.head && length == key.name.len();
    same && (length <= 8 || member.key.of(text) == key.name.as_bytes())
}

#[cold]
fn is_escaped_key(text: &Text<'_>, member: Member, key: Key) -> bool {
    unescape(member.key.of(text)).as_ref() == key.name.as_bytes()
}

/// The highest bit of the first byte that is no ASCII digit, and perhaps of bytes after it.
#[inline(always)]
pub fn not_digits(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let digits = word ^ (ONES * 0x30);
    (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80)
}

/// Objects with more members than this keep those that somebody may ask for.
const MANY: usize = 64;

/// Members of one object. Later ones stand for earlier ones of the same key.
pub struct Members {
    first: [Member; MANY],
    count: usize,
    more: Vec<Member>,
    /// Whether no value that is a string has escapes, nor any key.
    plain: bool,
}

impl Default for Members {
    fn default() -> Self {
        Self { first: [Member::default(); MANY], count: 0, more: Vec::new(), plain: false }
    }
}

impl Members {
    #[inline(always)]
    pub fn clear(&mut self) {
        self.count = 0;
        self.plain = false;
    }

    #[cold]
    fn replace(&mut self, text: &Text<'_>, member: Member, asked: &[Key]) {
        if self.count == MANY {
            self.more.clear();
            self.count += 1;
        }
        let Some(key) = asked.iter().find(|key| is_key(text, member, **key)) else { return };
        match self.more.iter_mut().find(|other| is_key(text, **other, *key)) {
            Some(other) => *other = member,
            None => self.more.push(member),
        }
    }

    #[inline(always)]
    pub fn get(&self, text: &Text<'_>, key: Key) -> Span {
        if self.count > MANY {
            return self.get_of_many(text, key);
        }
        let found = self.first[..self.count].iter().rev().find(|member| is_key(text, **member, key));
        found.map_or_else(Span::default, |member| member.value)
    }

    /// A member's text, given its value with the quotes; none if the value is no string.
    #[inline(always)]
    pub fn string<'a>(&self, text: &Text<'a>, value: Span) -> Option<Cow<'a, [u8]>> {
        if self.plain { plain_string(text, value).map(Cow::Borrowed) } else { string(text, value) }
    }

    #[cold]
    fn get_of_many(&self, text: &Text<'_>, key: Key) -> Span {
        let found = self.more.iter().chain(self.first.iter().rev()).find(|member| is_key(text, **member, key));
        found.map_or_else(Span::default, |member| member.value)
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

/// Gives the text of a string, part by part.
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
    use crate::text::TextBuffer;

    fn is_object(text: &[u8]) -> bool {
        let mut buffer = TextBuffer::new(64);
        buffer.append(text);
        buffer.index();
        let scanner = Scanner { text: &buffer.text(), end: text.len() };
        scanner.whole(0, |scanner, _, at| scanner.value(at, 1)).is_ok()
    }

    #[test]
    fn strictly_json() {
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

    #[test]
    fn integers_however_written() {
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

    #[test]
    fn escapes_become_text() {
        for (escaped, plain) in [
            (r#"a\n\t\r\b\f\/\\\""#, "a\n\t\r\u{8}\u{c}/\\\""),
            (r"\u00e9\ud83d\ude00x", "é😀x"),
            (r"\ud83dx\udc00", "\u{fffd}x\u{fffd}"),
        ] {
            assert_eq!(unescape(escaped.as_bytes()).as_ref(), plain.as_bytes());
        }
    }
}
