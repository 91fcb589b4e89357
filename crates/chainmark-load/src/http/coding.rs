//! Bodies that are compressed on their way.

use serde::Deserialize;
use std::borrow::Cow;
use std::io::{Read, Write};

/// A body may grow to this size and no further: some grow a thousandfold.
const MAX_DECODED_BYTES: u64 = 64 << 20;
const BROTLI_BUFFER_BYTES: usize = 4096;
/// Requests are encoded once, before the load.
const BROTLI_QUALITY: u32 = 4;
const BROTLI_WINDOW: u32 = 22;

/// A supported content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    Gzip,
    #[serde(rename = "br")]
    Brotli,
}

/// What a head says of the body's coding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Coded {
    #[default]
    Plain,
    By(Coding),
    /// An unsupported coding, by its name if known, or several.
    Otherwise(&'static str),
}

impl Coding {
    /// As HTTP calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }

    /// The body as it is sent.
    pub fn encoded(self, body: &[u8]) -> Vec<u8> {
        let into_memory = "memory takes any number of bytes";
        match self {
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(body).expect(into_memory);
                encoder.finish().expect(into_memory)
            }
            Self::Brotli => {
                let mut encoded = Vec::new();
                let mut encoder =
                    brotli::CompressorWriter::new(&mut encoded, BROTLI_BUFFER_BYTES, BROTLI_QUALITY, BROTLI_WINDOW);
                encoder.write_all(body).expect(into_memory);
                drop(encoder);
                encoded
            }
        }
    }

    fn decoded(self, body: &[u8]) -> Result<Vec<u8>, String> {
        let mut decoded = Vec::new();
        let mut limited: Box<dyn Read> = match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(body).take(MAX_DECODED_BYTES + 1)),
            Self::Brotli => Box::new(brotli::Decompressor::new(body, BROTLI_BUFFER_BYTES).take(MAX_DECODED_BYTES + 1)),
        };
        match limited.read_to_end(&mut decoded) {
            Err(_) => Err(format!("the body is not {}, although the Content-Encoding declares it", self.name())),
            Ok(_) if decoded.len() as u64 > MAX_DECODED_BYTES => {
                Err(format!("the {} body decodes to more than 64 MiB, the limit for checks", self.name()))
            }
            Ok(_) => Ok(decoded),
        }
    }
}

impl Coded {
    /// Of a `Content-Encoding` field.
    pub fn of(value: &[u8]) -> Self {
        match value.trim_ascii().to_ascii_lowercase().as_slice() {
            b"" | b"identity" => Self::Plain,
            b"gzip" | b"x-gzip" => Self::By(Coding::Gzip),
            b"br" => Self::By(Coding::Brotli),
            b"deflate" => Self::Otherwise("deflate"),
            b"zstd" => Self::Otherwise("zstd"),
            b"compress" | b"x-compress" => Self::Otherwise("compress"),
            value if value.contains(&b',') => Self::SEVERAL,
            _ => Self::Otherwise("an unknown coding"),
        }
    }

    /// Of a body that has been through one coding after the other.
    pub const SEVERAL: Self = Self::Otherwise("several codings");

    /// The decoded body.
    ///
    /// # Errors
    /// A sentence on why it cannot be decoded.
    pub fn decoded<'b>(self, body: &'b [u8]) -> Result<Cow<'b, [u8]>, String> {
        match self {
            Self::Plain => Ok(Cow::Borrowed(body)),
            Self::By(coding) => coding.decoded(body).map(Cow::Owned),
            Self::Otherwise(name) => Err(format!("the body is compressed with {name}; only gzip and br are supported")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_body_is_decoded() {
        let body = "{\"hash\":\"0123456789abcdef\"}".repeat(500);
        for coding in [Coding::Gzip, Coding::Brotli] {
            let encoded = coding.encoded(body.as_bytes());
            assert!(encoded.len() < body.len() / 10, "{coding:?}");
            assert_eq!(Coded::By(coding).decoded(&encoded).unwrap(), body.as_bytes());
            assert_eq!(Coded::of(coding.name().as_bytes()), Coded::By(coding));
        }
    }

    #[test]
    fn a_body_that_would_fill_the_memory_is_not_decoded() {
        for coding in [Coding::Gzip, Coding::Brotli] {
            let bomb = coding.encoded(&vec![0; 65 << 20]);
            let error = Coded::By(coding).decoded(&bomb).unwrap_err();
            assert!(error.contains("64 MiB"), "{error}");
        }
    }

    #[test]
    fn a_body_that_contradicts_its_coding_is_reported() {
        for coded in [Coded::By(Coding::Gzip), Coded::By(Coding::Brotli), Coded::of(b"zstd"), Coded::of(b"gzip, br")] {
            assert!(coded.decoded(b"{\"plain\":true}").unwrap_err().contains("the body"), "{coded:?}");
        }
        assert!(Coded::of(b"gzip, br").decoded(b"").unwrap_err().contains("several codings"));
        assert_eq!(Coded::of(b" Identity ").decoded(b"{}").unwrap().as_ref(), b"{}");
    }
}
