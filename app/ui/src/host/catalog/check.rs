//! Compares a file with its entry before it is loaded: its length and its licence.

use gloo_net::http::{Method, Response};
use potluck_text::texts;

use super::{
    super::link_request,
    entry::Entry,
    header::{self, is_same_licence},
};
use crate::state::Store;

/// Bytes of the beginning that are read: the general keys come before the vocabulary.
const BEGINNING: u64 = 64 << 10;

/// What an address holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RemoteFile {
    /// Length of the file, if the server tells it to other sites' pages.
    bytes: Option<u64>,
    /// The licence, if the file names it.
    licence: Option<String>,
}

/// Why a listed file should not be loaded without a second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The address has no such file.
    Gone,
    /// The server wants to know who asks.
    Forbidden,
    /// No answer, or none that this page may read.
    Unreachable,
    /// The server sends whole files only, or its answer is an error.
    NoRanges,
    /// Not a GGUF file.
    NotGguf,
    /// It differs from the entry: bytes listed and found, licences listed and found.
    Differs {
        /// Listed and found.
        bytes: Option<(u64, u64)>,
        /// Listed and found.
        licence: Option<(String, String)>,
    },
}

impl Doubt {
    /// True if the file can be loaded all the same.
    #[must_use]
    pub const fn can_load(&self) -> bool {
        matches!(self, Self::Differs { .. })
    }

    /// One sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let texts = &texts().catalog;
        match self {
            Self::Gone => texts.gone().into(),
            Self::Forbidden => texts.forbidden().into(),
            Self::Unreachable => texts.unreachable().into(),
            Self::NoRanges => texts.no_ranges().into(),
            Self::NotGguf => texts.not_gguf().into(),
            Self::Differs { bytes: Some((listed, found)), licence: None } => texts.other_bytes(found, listed),
            Self::Differs { bytes: None, licence: Some((listed, found)) } => texts.other_licence(found, listed),
            Self::Differs { bytes: Some((bytes, found_bytes)), licence: Some((licence, found)) } => {
                texts.other_both(found_bytes, bytes, found, licence)
            }
            Self::Differs { bytes: None, licence: None } => String::new(),
        }
    }
}

/// Reads the beginning of an entry's file and compares.
///
/// # Errors
/// A [`Doubt`].
pub async fn examine(store: Store, entry: &Entry) -> Result<(), Doubt> {
    compare(entry, &read(store, &entry.address).await?)
}

/// What the server does not tell is not compared.
fn compare(entry: &Entry, found: &RemoteFile) -> Result<(), Doubt> {
    let bytes = found.bytes.filter(|bytes| *bytes != entry.bytes).map(|bytes| (entry.bytes, bytes));
    let licence = found.licence.clone().filter(|licence| !is_same_licence(licence, &entry.licence));
    let licence = licence.map(|licence| (entry.licence.clone(), licence));
    if bytes.is_none() && licence.is_none() { Ok(()) } else { Err(Doubt::Differs { bytes, licence }) }
}

async fn read(store: Store, url: &str) -> Result<RemoteFile, Doubt> {
    let range = format!("bytes=0-{}", BEGINNING - 1);
    let answer = link_request::get(store, url).header("range", &range).send().await.map_err(|_| Doubt::Unreachable)?;
    judge_status(answer.status()).inspect_err(|_| hang_up(&answer))?;
    let in_range = answer.headers().get("content-range").and_then(|range| total(&range));
    let bytes = match in_range {
        Some(bytes) => Some(bytes),
        None => length(store, url).await,
    };
    let beginning = answer.binary().await.map_err(|_| Doubt::Unreachable)?;
    let licence = header::licence(&beginning).map_err(|_| Doubt::NotGguf)?;
    Ok(RemoteFile { bytes, licence })
}

const fn judge_status(status: u16) -> Result<(), Doubt> {
    match status {
        206 => Ok(()),
        404 | 410 => Err(Doubt::Gone),
        401 | 403 | 451 => Err(Doubt::Forbidden),
        _ => Err(Doubt::NoRanges),
    }
}

/// Whoever sends the whole file despite the range shall stop.
fn hang_up(answer: &Response) {
    if let Some(body) = answer.body() {
        // A body that cannot be cancelled ends with the page.
        let _ended = body.cancel();
    }
}

/// Servers that hide `Content-Range` from other sites' pages still show the length of the whole.
async fn length(store: Store, url: &str) -> Option<u64> {
    let answer = link_request::get(store, url).method(Method::HEAD).send().await.ok()?;
    answer.headers().get("content-length").filter(|_| answer.ok())?.parse().ok()
}

/// The length in `bytes 0-65535/2497280256`.
fn total(content_range: &str) -> Option<u64> {
    content_range.rsplit_once('/')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::host::catalog::entry::tests::listed;

    fn compared(bytes: Option<u64>, licence: Option<&str>) -> Option<String> {
        let found = RemoteFile { bytes, licence: licence.map(Into::into) };
        compare(&listed()[0], &found).err().map(|doubt| doubt.sentence())
    }

    #[test]
    fn the_same_file_raises_no_doubt() {
        assert_eq!(compared(Some(386_404_992), Some("apache-2.0")), None);
        assert_eq!(compared(None, None), None, "what is not told is not compared");
    }

    #[test]
    fn each_difference_is_one_sentence() {
        let bytes = compared(Some(5), Some("apache-2.0")).unwrap();
        assert!(bytes.contains("5 bytes") && bytes.contains("386,404,992"), "{bytes}");
        let licence = compared(None, Some("mit")).unwrap();
        assert!(licence.contains("mit") && licence.contains("Apache-2.0") && !licence.contains("bytes"), "{licence}");
        let both = compared(Some(5), Some("mit")).unwrap();
        assert!(both.contains("5 bytes") && both.contains("mit"), "{both}");
        for sentence in [bytes, licence, both] {
            assert_eq!(sentence.matches(". ").count() + usize::from(sentence.ends_with('.')), 1, "{sentence}");
        }
    }

    #[test]
    fn only_a_file_that_is_there_can_be_loaded_anyway() {
        assert!(Doubt::Differs { bytes: Some((1, 2)), licence: None }.can_load());
        assert!(!Doubt::Gone.can_load());
    }

    #[test]
    fn answers_are_told_apart_by_their_status() {
        assert_eq!(judge_status(206), Ok(()));
        assert_eq!(judge_status(404), Err(Doubt::Gone));
        assert_eq!(judge_status(401), Err(Doubt::Forbidden));
        assert_eq!(judge_status(200), Err(Doubt::NoRanges));
    }

    #[test]
    fn the_length_is_read_from_the_range() {
        assert_eq!(total("bytes 0-65535/2497280256"), Some(2_497_280_256));
        assert_eq!(total("bytes 0-65535/*"), None);
    }
}
