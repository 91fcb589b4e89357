//! Profiles in the pprof format: bytes to stacks of functions with their values.

mod message;

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use prost::Message;
use rustc_hash::FxHashMap;
use thiserror::Error;

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A node's profile has some hundred kilobytes; beyond this it is no profile of one.
const SIZE_MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, Error)]
pub enum ProfileError {
    #[error("it is no profile in the pprof format: {0}")]
    Format(String),
    #[error("it is larger than {} MiB", SIZE_MAX_BYTES >> 20)]
    TooLarge,
}

/// What a profile says of functions; equal stacks are one.
#[derive(Debug, Default, PartialEq)]
pub struct Stacks {
    /// Type and unit of each value: ("cpu", "nanoseconds").
    pub kinds: Vec<(String, String)>,
    pub duration_ns: i64,
    pub functions: Vec<String>,
    /// Each by its functions' places, the outermost first.
    pub stacks: Vec<Vec<usize>>,
    /// Of each stack, a value of each kind.
    pub values: Vec<Vec<i64>>,
}

/// Read a profile, compressed by gzip or not.
pub fn read(content: &[u8]) -> Result<Stacks, ProfileError> {
    let plain = uncompressed(content)?;
    let profile = message::Profile::decode(&*plain).map_err(|error| ProfileError::Format(error.to_string()))?;
    if profile.sample_type.is_empty() {
        return Err(ProfileError::Format("it does not say what it measures".into()));
    }
    Reader::new(&profile)?.stacks()
}

fn uncompressed(content: &[u8]) -> Result<Cow<'_, [u8]>, ProfileError> {
    if !content.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(content));
    }
    let mut plain = Vec::new();
    let mut decoder = MultiGzDecoder::new(content).take(SIZE_MAX_BYTES + 1);
    decoder.read_to_end(&mut plain).map_err(|error| ProfileError::Format(error.to_string()))?;
    if plain.len() as u64 > SIZE_MAX_BYTES { Err(ProfileError::TooLarge) } else { Ok(Cow::Owned(plain)) }
}

/// Resolves locations to functions.
struct Reader<'a> {
    profile: &'a message::Profile,
    /// By location id, its functions, the innermost first.
    located: FxHashMap<u64, Vec<usize>>,
    stacks: Stacks,
}

impl<'a> Reader<'a> {
    fn new(profile: &'a message::Profile) -> Result<Self, ProfileError> {
        let mut reader = Self { profile, located: FxHashMap::default(), stacks: Stacks::default() };
        reader.stacks.duration_ns = profile.duration_nanos;
        for kind in &profile.sample_type {
            let named = (reader.text(kind.r#type)?.to_owned(), reader.text(kind.unit)?.to_owned());
            reader.stacks.kinds.push(named);
        }
        reader.locate()?;
        Ok(reader)
    }

    fn text(&self, place: i64) -> Result<&'a str, ProfileError> {
        let result = usize::try_from(place).ok().and_then(|place| self.profile.string_table.get(place));
        result.map(String::as_str).ok_or_else(|| ProfileError::Format(format!("it has no text {place}")))
    }

    fn locate(&mut self) -> Result<(), ProfileError> {
        let mut names = FxHashMap::default();
        for function in &self.profile.function {
            names.insert(function.id, self.text(function.name)?.to_owned());
        }
        let mut places = FxHashMap::default();
        for location in &self.profile.location {
            let mut own: Vec<_> =
                location.line.iter().filter_map(|line| names.get(&line.function_id).cloned()).collect();
            if own.is_empty() {
                own.push(format!("{:#x}", location.address)); // unknown
            }
            let functions = &mut self.stacks.functions;
            let at = own.into_iter().map(|name| {
                *places.entry(name.clone()).or_insert_with(|| {
                    functions.push(name);
                    functions.len() - 1
                })
            });
            self.located.insert(location.id, at.collect());
        }
        Ok(())
    }

    fn stacks(mut self) -> Result<Stacks, ProfileError> {
        let kinds = self.stacks.kinds.len();
        let mut known: FxHashMap<Vec<usize>, usize> = FxHashMap::default();
        for sample in &self.profile.sample {
            if sample.value.len() != kinds {
                return Err(ProfileError::Format(format!("a sample has {} values, not {kinds}", sample.value.len())));
            }
            let stack = self.stack(sample)?;
            let place = *known.entry(stack).or_insert_with_key(|stack| {
                self.stacks.stacks.push(stack.clone());
                self.stacks.values.push(vec![0; kinds]);
                self.stacks.stacks.len() - 1
            });
            for (sum, value) in self.stacks.values[place].iter_mut().zip(&sample.value) {
                *sum = sum.saturating_add(*value);
            }
        }
        Ok(self.stacks)
    }

    fn stack(&self, sample: &message::Sample) -> Result<Vec<usize>, ProfileError> {
        let mut stack = Vec::with_capacity(sample.location_id.len());
        for id in &sample.location_id {
            let own = self.located.get(id);
            stack.extend(own.ok_or_else(|| ProfileError::Format(format!("it has no location {id}")))?);
        }
        stack.reverse();
        Ok(stack)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn profile() -> message::Profile {
        let line = |function_id| message::Line { function_id };
        message::Profile {
            sample_type: vec![message::ValueType { r#type: 1, unit: 2 }],
            string_table: ["", "cpu", "nanoseconds", "main", "work", "inlined"].map(String::from).into(),
            function: (3..6).map(|name| message::Function { id: name as u64, name }).collect(),
            location: vec![
                message::Location { id: 7, address: 1, line: vec![line(3)] },
                message::Location { id: 8, address: 2, line: vec![line(5), line(4)] },
                message::Location { id: 9, address: 0x2a, line: vec![] },
            ],
            sample: vec![
                message::Sample { location_id: vec![8, 7], value: vec![10] },
                message::Sample { location_id: vec![8, 7], value: vec![5] },
                message::Sample { location_id: vec![9, 7], value: vec![1] },
            ],
            duration_nanos: 1000,
        }
    }

    #[test]
    fn equal_stacks_are_added_and_inlined_calls_are_separate_frames() {
        let result = read(&profile().encode_to_vec()).unwrap();
        let named: Vec<Vec<&str>> =
            result.stacks.iter().map(|stack| stack.iter().map(|at| result.functions[*at].as_str()).collect()).collect();
        assert_eq!(named, [vec!["main", "work", "inlined"], vec!["main", "0x2a"]]);
        assert_eq!(result.values, [[15], [1]]);
        assert_eq!(result.kinds, [("cpu".to_owned(), "nanoseconds".to_owned())]);
        assert_eq!(result.duration_ns, 1000);
    }

    #[test]
    fn an_inconsistent_profile_is_rejected() {
        let mut no_location = profile();
        no_location.location.pop();
        let mut no_text = profile();
        no_text.sample_type[0].unit = 99;
        let mut values = profile();
        values.sample[0].value.push(1);
        for broken in [no_location, no_text, values, message::Profile::default()] {
            assert!(matches!(read(&broken.encode_to_vec()), Err(ProfileError::Format(_))));
        }
        assert!(read(b"404 page not found\n").is_err());
    }

    #[test]
    fn a_truncated_compressed_profile_is_rejected() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, &profile().encode_to_vec()).unwrap();
        let whole = encoder.finish().unwrap();
        assert_eq!(read(&whole).unwrap(), read(&profile().encode_to_vec()).unwrap());
        assert!(read(&whole[..whole.len() - 9]).is_err());
    }

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(content: Vec<u8>) {
            let _ = read(&content);
        }
    }
}
