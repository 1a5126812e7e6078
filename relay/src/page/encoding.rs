//! Compressed forms of the page's files, made once and not for each request.

use std::io::Write;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Brotli's quality. Somebody may open the page as soon as the relay runs: 9 saves a few percent and takes seconds.
const BROTLI_QUALITY: i32 = 5;
/// A form is kept if it saves at least one part in this many.
const WORTH: usize = 20;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `br`.
    Brotli,
    /// `gzip`.
    Gzip,
}

impl Encoding {
    /// As it appears in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The compressed forms of a file; none where compression does not pay.
#[derive(Debug, Default)]
pub struct Encoded {
    brotli: Option<Bytes>,
    gzip: Option<Bytes>,
}

impl Encoded {
    /// Compresses a file.
    pub fn new(bytes: &[u8]) -> Self {
        let worth = |form: Vec<u8>| (form.len() + bytes.len() / WORTH < bytes.len()).then(|| form.into());
        Self { brotli: brotli(bytes).and_then(worth), gzip: gzip(bytes).and_then(worth) }
    }

    /// The best form that a request accepts.
    pub fn best(&self, headers: &HeaderMap) -> Option<(Encoding, Bytes)> {
        let form =
            |encoding, form: &Option<Bytes>| Some((encoding, form.clone()?)).filter(|_| accepts(headers, encoding));
        form(Encoding::Brotli, &self.brotli).or_else(|| form(Encoding::Gzip, &self.gzip))
    }
}

fn brotli(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let params = BrotliEncoderParams { quality: BROTLI_QUALITY, size_hint: bytes.len(), ..Default::default() };
    let mut form = Vec::new();
    brotli::BrotliCompress(&mut bytes, &mut form, &params).ok()?;
    Some(form)
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Whether `Accept-Encoding` names it, and not with a weight of zero.
fn accepts(headers: &HeaderMap, encoding: Encoding) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|list| list.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(encoding.name()) && weight.is_some_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_gets_the_best_form_that_it_accepts() {
        let encoded = Encoded::new("potluck ".repeat(500).as_bytes());
        let best = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            encoded.best(&headers).map(|(encoding, _)| encoding.name())
        };
        assert_eq!(best("gzip, deflate, br"), Some("br"));
        assert_eq!(best("gzip;q=0.5, br;q=0"), Some("gzip"));
        for none in ["", "identity", "*", "br;q=0.0", "brotli"] {
            assert_eq!(best(none), None, "{none:?}");
        }
        assert!(encoded.best(&HeaderMap::new()).is_none());
    }

    #[test]
    fn what_does_not_shrink_has_no_other_form() {
        let mut noise = vec![0; 4000];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        let encoded = Encoded::new(&noise);
        assert!(encoded.brotli.is_none() && encoded.gzip.is_none());
    }
}
