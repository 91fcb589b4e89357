//! Members of an object: recorded in one pass, then looked up by key.

use std::borrow::Cow;

use crate::json::{NEXT_KEY, Scan, Scanner, Span, plain_string, string, unescape, word_of};
use crate::text::Text;

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
    pub(super) fn new(text: &Text<'_>, start: usize, quote: usize, escaped: bool) -> Self {
        let head = low_bytes(text.word(start), quote - start);
        Self { key: Span::new(start, quote), value: Span::default(), head, escaped }
    }
}

/// A key to look up, prepared for comparison.
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

#[inline(always)]
pub(super) fn is_key(text: &Text<'_>, member: Member, key: Key) -> bool {
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

/// Objects with more members than this only keep those that may be looked up.
const MANY: usize = 64;

/// Members of one object. Later ones replace earlier ones with the same key.
pub struct Members {
    first: [Member; MANY],
    count: usize,
    more: Vec<Member>,
    /// Whether no string value has escapes, nor any key.
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
    fn replace(&mut self, text: &Text<'_>, member: Member, wanted: &[Key]) {
        if self.count == MANY {
            self.more.clear();
            self.count += 1;
        }
        let Some(key) = wanted.iter().find(|key| is_key(text, member, **key)) else { return };
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
        let result = self.first[..self.count].iter().rev().find(|member| is_key(text, **member, key));
        result.map_or_else(Span::default, |member| member.value)
    }

    /// A member's text, given its value with the quotes; none if the value is no string.
    #[inline(always)]
    pub fn string<'a>(&self, text: &Text<'a>, value: Span) -> Option<Cow<'a, [u8]>> {
        if self.plain { plain_string(text, value).map(Cow::Borrowed) } else { string(text, value) }
    }

    #[cold]
    fn get_of_many(&self, text: &Text<'_>, key: Key) -> Span {
        let result = self.more.iter().chain(self.first.iter().rev()).find(|member| is_key(text, **member, key));
        result.map_or_else(Span::default, |member| member.value)
    }
}

impl Scanner<'_> {
    /// Scans the object that begins at `start` inside `depth` others, and notes its members. Returns the position
    /// after it.
    #[inline(never)]
    pub fn members(self, start: usize, depth: u32, members: &mut Members, wanted: &[Key]) -> Scan<usize> {
        match self.usual_members(start, depth, members) {
            Some(end) => Ok(end),
            None => self.any_members(start, depth, members, wanted),
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
    fn any_members(self, start: usize, depth: u32, members: &mut Members, wanted: &[Key]) -> Scan<usize> {
        members.clear();
        self.object(start, |scanner, member, at| {
            let end = scanner.value(at, depth + 1)?;
            let member = Member { value: Span::new(at, end), ..member };
            if let Some(place) = members.first.get_mut(members.count) {
                *place = member;
                members.count += 1;
            } else {
                members.replace(scanner.text, member, wanted);
            }
            Ok(end)
        })
    }
}
