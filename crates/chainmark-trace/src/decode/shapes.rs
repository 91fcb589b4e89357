//! Lines that differ from an earlier one only in numbers and texts.
//!
//! A node writes every message with the same members in the same order. The text between the values of such a line is
//! compared with that of an earlier one, which was scanned, and the values are skipped: the consequences of the rest
//! (that it is an object, which message it is, which value is needed) were found there.

use crate::json::{Scanner, Span};
use crate::message::{Message, Routed};
use crate::text::Text;

/// Lines with more values than this are no shape, nor are longer ones: lists, mostly, which are never alike.
const MOST_VALUES: usize = 24;
const LONGEST: usize = 512;
/// Members whose texts identify a line, or that are needed of every line.
const SAYING: [&[u8]; 4] = [b"kind", b"ns", b"sev", b"host"];

/// The content of a line of a shape besides its time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    Ignored,
    /// The number in this message.
    Number(Message),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// The text between the quotes.
    Text,
}

/// The text before a value, and the value's kind.
struct Step {
    literal: Box<[u8]>,
    kind: Kind,
}

struct Shape {
    steps: Vec<Step>,
    /// The text after the last value.
    end: Box<[u8]>,
    /// The needed value.
    requested: usize,
    routed: Routed,
    says: Says,
}

/// Whether a text continues with these bytes.
#[inline(always)]
fn goes_on(text: &Text<'_>, at: usize, literal: &[u8]) -> bool {
    text.bytes.get(at..at + literal.len()) == Some(literal)
}

impl Shape {
    /// The shape of the line whose time ends at `start`; it was scanned, and is valid.
    fn of(scanner: Scanner<'_>, start: usize, requested: Span, routed: Routed, says: Says) -> Option<Self> {
        let Scanner { text, end } = scanner;
        let (mut steps, mut requested_at) = (Vec::new(), None);
        let (mut literal, mut at, mut key): (_, _, &[u8]) = (start, start + 1, &[]);
        while at < end {
            let (from, to, kind) = match text.bytes[at] {
                b'"' => {
                    let close = text.next_special(at + 1);
                    // No text with escapes, which would have to be understood.
                    if text.bytes[close] != b'"' {
                        return None;
                    }
                    let inside = at + 1..close;
                    at = close + 1;
                    if text.bytes[at] == b':' {
                        key = &text.bytes[inside];
                        continue;
                    }
                    if SAYING.contains(&key) {
                        continue;
                    }
                    (inside.start, inside.end, Kind::Text)
                }
                b'-' | b'0'..=b'9' => {
                    let from = at;
                    at = scanner.number(at).ok()?;
                    (from, at, Kind::Number)
                }
                // Where white space is allowed, a key is not recognised by the colon after it.
                0..=b' ' => return None,
                _ => {
                    at += 1;
                    continue;
                }
            };
            if kind == Kind::Number && Span::new(from, to) == requested {
                requested_at = Some(steps.len());
            }
            steps.push(Step { literal: text.bytes[literal..from].into(), kind });
            literal = to;
        }
        let requested = if requested.present() { requested_at? } else { 0 };
        let end = text.bytes[literal..end].into();
        (steps.len() <= MOST_VALUES).then_some(Self { steps, end, requested, routed, says })
    }

    /// The needed value, if the line whose time ends at `start` is of this shape.
    #[inline(always)]
    fn value(&self, scanner: Scanner<'_>, start: usize) -> Option<Span> {
        let text = scanner.text;
        let (mut at, mut requested) = (start, Span::default());
        for (place, Step { literal, kind }) in self.steps.iter().enumerate() {
            if !goes_on(text, at, literal) {
                return None;
            }
            let from = at + literal.len();
            at = match kind {
                Kind::Number => scanner.number(from).ok()?,
                Kind::Text => text.next_special(from),
            };
            if place == self.requested {
                requested = Span::new(from, at);
            }
        }
        // A text that does not end with a quote is not followed by what begins with one.
        (goes_on(text, at, &self.end) && at + self.end.len() == scanner.end).then_some(requested)
    }
}

#[derive(Default)]
struct Place {
    shape: Option<Shape>,
    /// Lines without a shape. It overflows, so that another one is tried now and then.
    in_vain: u16,
}

/// The shapes of the messages of one host.
pub(super) struct Shapes {
    places: Vec<Place>,
    is_empty: bool,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { places: std::iter::repeat_with(Place::default).take(Self::PLACES).collect(), is_empty: true }
    }
}

impl Shapes {
    const PLACES: usize = 256;

    /// A place for a namespace, by how it begins and ends.
    #[inline(always)]
    fn place(text: &Text<'_>, start: usize) -> usize {
        let from = start + br#"","ns":""#.len();
        let to = text.next_special(from);
        let mixed = text.word(from) ^ text.word(to - 8).rotate_left(29) ^ (to - from) as u64;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % Self::PLACES
    }

    /// The content of a line of a known shape, and the needed value.
    #[inline(always)]
    pub fn find(&self, scanner: Scanner<'_>, start: usize) -> Option<(Routed, Says, Span)> {
        let shape = self.places[Self::place(scanner.text, start)].shape.as_ref()?;
        Some((shape.routed, shape.says, shape.value(scanner, start)?))
    }

    /// Keeps the shape of a line that was of none, unless those of its namespace hardly ever are.
    #[inline(always)]
    pub fn keep(&mut self, scanner: Scanner<'_>, start: usize, requested: Span, routed: Routed, says: Says) {
        let place = &mut self.places[Self::place(scanner.text, start)];
        place.in_vain = place.in_vain.wrapping_add(1);
        if place.in_vain.is_power_of_two() && scanner.end - start <= LONGEST {
            place.shape = Shape::of(scanner, start, requested, routed, says);
            self.is_empty = false;
        }
    }

    pub fn clear(&mut self) {
        if !self.is_empty {
            self.places.iter_mut().for_each(|place| place.shape = None);
            self.is_empty = true;
        }
    }
}
