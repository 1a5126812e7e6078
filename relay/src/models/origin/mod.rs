//! Weights that lie at an HTTP origin, such as an object store: fetched in parts, checked against their hashes, and kept in a bounded
//! cache if there is a folder for it.

mod fetch;
mod parts;
mod store;
mod watch;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use percent_encoding::percent_decode_str;

pub use fetch::RemoteFile;
pub use parts::{Origins, PART_BYTES};
pub use watch::watch;

/// Where a file of weights is. It may hold a secret, so nothing shows more of it than host and name.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginUrl {
    url: Arc<str>,
    host: Arc<str>,
    name: Arc<str>,
}

impl OriginUrl {
    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole address.
    pub(super) fn as_str(&self) -> &str {
        &self.url
    }
}

impl fmt::Debug for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.host)
    }
}

/// Why text is no address of weights.
#[derive(Debug, thiserror::Error)]
#[error("expected the address of a GGUF file, such as https://weights.example/model.gguf")]
pub struct NotWeights;

impl FromStr for OriginUrl {
    type Err = NotWeights;

    fn from_str(text: &str) -> Result<Self, NotWeights> {
        let uri: Uri = text.parse().map_err(|_| NotWeights)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.host().filter(|_| is_http).ok_or(NotWeights)?;
        let last = uri.path().rsplit('/').next().unwrap_or_default();
        let name = percent_decode_str(last).decode_utf8().map_err(|_| NotWeights)?;
        let is_name = name.ends_with(".gguf") && !name.starts_with('.') && !name.contains(['/', '\\']);
        is_name.then(|| Self { url: text.into(), host: host.into(), name: name.into() }).ok_or(NotWeights)
    }
}

/// Which weights come from elsewhere, and what is kept of them.
#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// The files.
    pub weights: Vec<OriginUrl>,
    /// The folder that keeps parts of them, and how many bytes it may hold.
    pub cache: Option<(PathBuf, u64)>,
    /// How long an origin may take to answer, or to go on.
    pub timeout: Duration,
    /// Time between two looks whether a file has changed.
    pub look_every: Duration,
}

impl Default for OriginConfig {
    fn default() -> Self {
        Self { weights: Vec::new(), cache: None, timeout: Duration::from_secs(20), look_every: Duration::from_secs(30) }
    }
}

/// Why bytes do not come from an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// There is no connection, or it broke off.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(Arc<str>, String),
    /// Nothing came for too long.
    #[error("{0} takes too long to answer")]
    Slow(Arc<str>),
    /// It does not send parts of files.
    #[error("{0} does not answer range requests, which are needed for weights")]
    NoRanges(Arc<str>),
    /// It leads from one address to the next.
    #[error("{0} redirects too often")]
    TooManyRedirects(Arc<str>),
    /// It has no such file.
    #[error("{0} has no such file")]
    NotThere(Arc<str>),
    /// It answers with another status.
    #[error("{0} answers with status {1}")]
    Status(Arc<str>, u16),
    /// The file there is another one by now.
    #[error("the file at {0} has changed and is read again")]
    Changed(Arc<str>),
    /// Its bytes are not those that were hashed.
    #[error("{0} sent bytes that do not match the file's hash")]
    WrongHash(Arc<str>),
}

impl OriginError {
    /// Whether the file has to be looked at again.
    fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Changed(_) | Self::WrongHash(_) | Self::NotThere(_))
    }
}

impl From<OriginError> for std::io::Error {
    fn from(error: OriginError) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn an_address_of_weights_names_a_file_and_hides_its_secrets() {
        let url: OriginUrl = "https://user:pw@s3.example/a/b%20c.gguf?sig=secret".parse().unwrap();
        assert_eq!((url.name(), format!("{url:?}").as_str()), ("b c.gguf", "b c.gguf at s3.example"));
        for wrong in [
            "",
            "a.gguf",
            "ftp://a.example/a.gguf",
            "https://a.example/",
            "https://a.example/a%2Fb.gguf",
            "https://a/.gguf",
        ] {
            assert!(wrong.parse::<OriginUrl>().is_err(), "{wrong}");
        }
    }
}
