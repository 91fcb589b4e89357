//! Text in memory, with bitmaps of the bytes at which a reader of JSON or of lines must stop.
//!
//! One pass over the bytes marks where a string does not simply continue (quote, backslash, control character) and
//! where lines end; afterwards a string is skipped by counting zeros in a word instead of reading its bytes.

/// Bytes that are looked at together; also how many bytes beyond the end may be read, all of them 0.
const BLOCK: usize = 64;
/// Bitmap bytes of a block.
const BITS: usize = BLOCK / 8;

/// All bits but the first few.
const FROM_BIT: [u64; 8] = [!0, !0 << 1, !0 << 2, !0 << 3, !0 << 4, !0 << 5, !0 << 6, !0 << 7];

/// Indexed text. Position `len` and those after it hold 0, a control character: no search runs past the end.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// The text and its padding.
    pub bytes: &'a [u8],
    pub len: usize,
    /// Whether all of it is ASCII.
    pub ascii: bool,
    words: Words<'a>,
    special: Words<'a>,
    newline: Words<'a>,
}

impl Text<'_> {
    /// The first quote, backslash or control character at or after `from`; the text's end is one.
    #[inline(always)]
    pub fn next_special(&self, from: usize) -> usize {
        let word = self.special.at(from >> 3) & FROM_BIT[from & 7];
        let first = from & !7;
        if word != 0 { first + word.trailing_zeros() as usize } else { self.later_special(first + BLOCK) }
    }

    #[inline(always)]
    fn later_special(&self, mut from: usize) -> usize {
        loop {
            let word = self.special.at(from >> 3);
            if word != 0 {
                return from + word.trailing_zeros() as usize;
            }
            from += BLOCK;
        }
    }

    /// The first newline at or after `from`; none before the text's end gives `len` or more.
    #[inline(always)]
    pub fn next_newline(&self, from: usize) -> usize {
        let word = self.newline.at(from >> 3) >> (from & 7);
        if word != 0 { from + word.trailing_zeros() as usize } else { self.later_newline((from & !7) + BLOCK) }
    }

    #[inline(always)]
    fn later_newline(&self, mut from: usize) -> usize {
        while from < self.len {
            let word = self.newline.at(from >> 3);
            if word != 0 {
                return from + word.trailing_zeros() as usize;
            }
            from += BLOCK;
        }
        self.len
    }

    /// Eight bytes from `at`, the first one lowest.
    #[inline(always)]
    pub fn word(&self, at: usize) -> u64 {
        self.words.at(at)
    }
}

/// Bytes that are read eight at a time, from any position.
#[derive(Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    /// The start of the last eight bytes.
    last: usize,
}

impl<'a> Words<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, last: bytes.len().checked_sub(8).expect("padded text is longer than a word") }
    }

    /// The eight bytes from `at` as a number, the first one lowest. A slice would check its bounds twice, which is
    /// measurable here.
    #[inline(always)]
    fn at(self, at: usize) -> u64 {
        assert!(at <= self.last);
        // SAFETY: at + 8 <= bytes.len(), by the line above and the constructor; the read needs no alignment.
        u64::from_le(unsafe { self.bytes.as_ptr().add(at).cast::<u64>().read_unaligned() })
    }
}

/// Owns text and its bitmaps. Grows on request, never shrinks by itself.
pub struct TextBuffer {
    bytes: Vec<u8>,
    len: usize,
    ascii: bool,
    special: Vec<u8>,
    newline: Vec<u8>,
}

impl TextBuffer {
    pub fn new(capacity: usize) -> Self {
        let mut buffer = Self { bytes: Vec::new(), len: 0, ascii: true, special: Vec::new(), newline: Vec::new() };
        buffer.grow(capacity);
        buffer.index();
        buffer
    }

    pub fn capacity(&self) -> usize {
        self.bytes.len() - 2 * BLOCK
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for at least `capacity` bytes of text; the content stays.
    pub fn grow(&mut self, capacity: usize) {
        let blocks = capacity.div_ceil(BLOCK) + 2;
        if blocks * BLOCK > self.bytes.len() {
            self.bytes.resize(blocks * BLOCK, 0);
            self.special.resize(blocks * BITS, 0);
            self.newline.resize(blocks * BITS, 0);
        }
    }

    /// Where more text can be put; `extend` says how much of it was.
    pub fn free(&mut self) -> &mut [u8] {
        let capacity = self.capacity();
        &mut self.bytes[self.len..capacity]
    }

    pub fn extend(&mut self, added: usize) {
        self.len += added;
        assert!(self.len <= self.capacity(), "more text than there was room for");
    }

    /// Drops the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.bytes.copy_within(count..self.len, 0);
        self.len -= count;
    }

    pub fn append(&mut self, text: &[u8]) {
        self.grow((self.len + text.len()).next_power_of_two());
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Marks the current text; `text` returns the state of the last marking.
    pub fn index(&mut self) {
        let blocks = self.len / BLOCK + 2;
        self.bytes[self.len..blocks * BLOCK].fill(0);
        self.ascii =
            mark(&self.bytes[..blocks * BLOCK], &mut self.special[..blocks * BITS], &mut self.newline[..blocks * BITS]);
    }

    pub fn text(&self) -> Text<'_> {
        Text {
            bytes: &self.bytes,
            len: self.len,
            ascii: self.ascii,
            words: Words::new(&self.bytes),
            special: Words::new(&self.special),
            newline: Words::new(&self.newline),
        }
    }
}

/// Writes the bitmaps of whole blocks; returns whether all bytes are ASCII.
fn mark(bytes: &[u8], special: &mut [u8], newline: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just checked.
        return unsafe { x86::mark(bytes, special, newline) };
    }
    mark_portable(bytes, special, newline)
}

const ONES: u64 = u64::MAX / 255;

fn mark_portable(bytes: &[u8], special: &mut [u8], newline: &mut [u8]) -> bool {
    let mut all = 0;
    for ((bytes, special), newline) in bytes.chunks_exact(8).zip(special).zip(newline) {
        let word = Words::new(bytes).at(0);
        all |= word;
        let control = zeros(word & (ONES * 0xe0));
        *special = gather(zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c)) | control);
        *newline = gather(zeros(word ^ (ONES * 0x0a)));
    }
    all & (ONES * 0x80) == 0
}

/// The highest bit of every byte that is 0.
fn zeros(word: u64) -> u64 {
    let low = ONES * 0x7f;
    !(((word & low) + low) | word | low)
}

/// The highest bits of the eight bytes as one byte.
fn gather(flags: u64) -> u8 {
    ((flags >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8,
    };

    #[target_feature(enable = "avx2")]
    pub fn mark(bytes: &[u8], special: &mut [u8], newline: &mut [u8]) -> bool {
        let (quote, backslash) = (_mm256_set1_epi8(0x22), _mm256_set1_epi8(0x5c));
        let (last_control, line_feed) = (_mm256_set1_epi8(0x1f), _mm256_set1_epi8(0x0a));
        let mut all = _mm256_set1_epi8(0);
        let bits = special.chunks_exact_mut(4).zip(newline.chunks_exact_mut(4));
        for (bytes, (special, newline)) in bytes.chunks_exact(32).zip(bits) {
            // SAFETY: a chunk is 32 bytes long, and the load needs no alignment.
            let block = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>()) };
            let control = _mm256_cmpeq_epi8(_mm256_min_epu8(block, last_control), block);
            let ends = _mm256_or_si256(_mm256_cmpeq_epi8(block, quote), _mm256_cmpeq_epi8(block, backslash));
            let marks = _mm256_movemask_epi8(_mm256_or_si256(ends, control));
            special.copy_from_slice(&marks.to_le_bytes());
            newline.copy_from_slice(&_mm256_movemask_epi8(_mm256_cmpeq_epi8(block, line_feed)).to_le_bytes());
            all = _mm256_or_si256(all, block);
        }
        _mm256_movemask_epi8(all) == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_search_agrees_with_a_naive_one(text in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut buffer = TextBuffer::new(16);
            buffer.append(&text);
            buffer.index();
            let mut portable = TextBuffer::new(buffer.capacity());
            portable.append(&text);
            let ascii = mark_portable(&portable.bytes, &mut portable.special, &mut portable.newline);
            portable.ascii = ascii;
            for indexed in [buffer.text(), portable.text()] {
                prop_assert_eq!(indexed.ascii, text.is_ascii());
                for from in 0..=text.len() {
                    let rest = &text[from..];
                    let special = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
                    prop_assert_eq!(indexed.next_special(from), from + special.unwrap_or(rest.len()));
                    let newline = rest.iter().position(|&byte| byte == b'\n');
                    prop_assert_eq!(indexed.next_newline(from), from + newline.unwrap_or(rest.len()));
                }
            }
        }
    }
}
