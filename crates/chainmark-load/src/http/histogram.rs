//! Histograms of times: 1 µs to 120 s with 3 significant digits, in nanoseconds, mergeable and stored whole.

use super::error::HttpError;
use crate::clock::NS_PER_S;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Deserializer as Reading, Serialize, Serializer as Writing, de};

const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 120 * NS_PER_S as u64;
const SIGNIFICANT_DIGITS: u8 = 3;

type Counts = hdrhistogram::Histogram<u64>;

fn new_counts() -> Counts {
    Counts::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS).expect("the bounds are possible")
}

fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / NS_PER_S as f64
}

/// A histogram that can be stored, merged and queried. Times beyond 120 s count as 120 s.
#[derive(Debug, Clone)]
pub struct Histogram(Counts);

impl Default for Histogram {
    fn default() -> Self {
        Self(new_counts())
    }
}

impl Histogram {
    /// # Errors
    /// The text is no histogram, or not one of these.
    pub fn from_base64(text: &str) -> Result<Self, HttpError> {
        let refuse = |reason: String| HttpError::Histogram { bytes: text.len(), reason };
        let bytes = STANDARD.decode(text.trim()).map_err(|error| refuse(error.to_string()))?;
        let counts: Counts =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| refuse(error.to_string()))?;
        let mut histogram = Self::default();
        histogram.0.add(counts).map_err(|error| refuse(error.to_string()))?;
        Ok(histogram)
    }

    /// HdrHistogram's V2 form, deflated, as base64; the values are nanoseconds.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("a vector takes any number of bytes");
        STANDARD.encode(bytes)
    }

    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the bounds are the same");
    }

    pub fn len(&self) -> u64 {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many were longer than `time_s`, to the histogram's resolution: what falls into its bucket is not.
    pub fn count_over(&self, time_s: f64) -> u64 {
        let limit_ns = (time_s * NS_PER_S as f64).round().clamp(0.0, HIGHEST_NS as f64) as u64;
        self.len() - self.0.count_between(0, limit_ns).min(self.len())
    }

    /// The time that this share did not exceed, in seconds; None of an empty histogram.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        // The last bucket's upper end is beyond the recorded range.
        (!self.is_empty()).then(|| seconds(self.0.value_at_quantile(share).min(HIGHEST_NS)))
    }

    pub(super) fn record(&mut self, time_ns: u64) {
        self.0.saturating_record(time_ns.min(HIGHEST_NS));
    }
}

impl Serialize for Histogram {
    fn serialize<W: Writing>(&self, writing: W) -> Result<W::Ok, W::Error> {
        writing.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<R: Reading<'de>>(reading: R) -> Result<Self, R::Error> {
        Self::from_base64(&String::deserialize(reading)?).map_err(de::Error::custom)
    }
}

/// A histogram, and exactly what a histogram only has to its resolution.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recorder {
    histogram: Histogram,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { histogram: Histogram::default(), sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Recorder {
    /// Clocks of one machine do not run backwards, but rounding of due times may.
    pub fn record(&mut self, time_ns: i64) {
        let time_ns = time_ns.max(0) as u64;
        self.histogram.record(time_ns);
        self.sum_ns += u128::from(time_ns);
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }

    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn summarise(&self) -> Times {
        let n = self.histogram.len();
        let some = |value: f64| (n > 0).then_some(value);
        let quantile = |share| {
            // The bucket's upper end may be above the observed maximum.
            self.histogram.quantile(share).map(|time_s| time_s.min(seconds(self.max_ns)))
        };
        Times {
            n,
            min_s: some(seconds(self.min_ns)),
            mean_s: some(self.sum_ns as f64 / n as f64 / NS_PER_S as f64),
            max_s: some(seconds(self.max_ns)),
            p50_s: quantile(0.5),
            p90_s: quantile(0.9),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
            hdr: self.histogram.to_base64(),
        }
    }
}

/// The summary of a histogram; None if nothing was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    pub n: u64,
    pub min_s: Option<f64>,
    pub mean_s: Option<f64>,
    pub max_s: Option<f64>,
    pub p50_s: Option<f64>,
    pub p90_s: Option<f64>,
    pub p95_s: Option<f64>,
    pub p99_s: Option<f64>,
    pub p999_s: Option<f64>,
    /// [`Histogram::to_base64`].
    pub hdr: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_no_figures_and_can_be_stored() {
        let times = Recorder::default().summarise();
        assert_eq!((times.n, times.p99_s, times.mean_s), (0, None, None));
        assert_eq!(Histogram::from_base64(&times.hdr).unwrap().len(), 0);
    }

    #[test]
    fn a_text_that_is_not_a_histogram_is_rejected() {
        for text in ["", "%", "AAAA", "HISTFAAAABx4nJNpmSzMwMDAxgABzGDSCUQ"] {
            assert!(Histogram::from_base64(text).unwrap_err().to_string().contains("not a histogram"));
        }
    }

    #[test]
    fn times_beyond_the_last_bucket_count_and_the_maximum_is_exact() {
        let mut recorder = Recorder::default();
        recorder.record(500 * NS_PER_S);
        let times = recorder.summarise();
        assert_eq!((times.n, times.max_s), (1, Some(500.0)));
        assert_eq!(Histogram::from_base64(&times.hdr).unwrap().count_over(119.0), 1);
    }

    proptest! {
        #[test]
        fn quantiles_agree_with_sorting_after_storage_and_merging(
            mut times in prop::collection::vec(0i64..130 * NS_PER_S, 1..200), share in 0.0f64..=1.0, cut in 0usize..200,
        ) {
            let (mut one, mut two) = (Recorder::default(), Recorder::default());
            let cut = cut.min(times.len());
            times[..cut].iter().for_each(|&time| one.record(time));
            times[cut..].iter().for_each(|&time| two.record(time));
            one.merge(&two);
            let stored = Histogram::from_base64(&one.summarise().hdr).unwrap();
            times.sort_unstable();
            let rank = ((share * times.len() as f64).ceil() as usize).clamp(1, times.len());
            let exact_s = (times[rank - 1] as f64 / 1e9).min(120.0);
            let read_s = stored.quantile(share).unwrap();
            prop_assert!((read_s - exact_s).abs() <= exact_s * 1e-3 + 1.1e-6, "{read_s} {exact_s}");
            let limit_s = exact_s * 0.5;
            let over = times.iter().filter(|&&time| time as f64 / 1e9 > limit_s * 1.001 + 2e-6).count() as u64;
            let over_at_most = times.iter().filter(|&&time| time as f64 / 1e9 > limit_s * 0.999 - 2e-6).count() as u64;
            prop_assert!((over..=over_at_most).contains(&stored.count_over(limit_s)));
        }
    }
}
