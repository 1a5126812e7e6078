//! Finds out whether a reply that names another version has other bytes, by reading the samples again.

use futures::StreamExt;

use super::http::{Line, asks_to_wait};
use super::version::{KnownVersion, SAMPLES_AT_ONCE, Sample};
use crate::platform::HttpRequest;

/// How often a sample is requested until a reply has the unknown version name: servers behind one address take turns.
const LOOKS: u32 = 3;

/// What a sample, or all of them, say of a version whose name is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It has the same bytes.
    Same,
    /// It has others.
    Different,
    /// Nothing: there are no samples, or no reply of such a version came.
    None,
    /// Nothing yet: the server has too many requests, and may say how many seconds to wait.
    Refused(Option<u32>),
}

/// Reads the samples of a file of so many bytes again. At least half of them must come under a name that is not known.
pub async fn evidence(line: &Line, url: &str, bytes: u64, known: &KnownVersion) -> Evidence {
    let samples = known.samples();
    let looks = samples.iter().map(|sample| look(line, url, bytes, known, sample));
    let looks: Vec<Evidence> = futures::stream::iter(looks).buffer_unordered(SAMPLES_AT_ONCE).collect().await;
    let same = looks.iter().filter(|look| **look == Evidence::Same).count();
    if looks.contains(&Evidence::Different) {
        Evidence::Different
    } else if same > 0 && 2 * same >= looks.len() {
        Evidence::Same
    } else {
        let refused = looks.into_iter().find(|look| matches!(look, Evidence::Refused(_)));
        refused.unwrap_or(Evidence::None)
    }
}

async fn look(line: &Line, url: &str, bytes: u64, known: &KnownVersion, sample: &Sample) -> Evidence {
    for _ in 0..LOOKS {
        let request = HttpRequest { range: Some(sample.range.clone()), ..HttpRequest::get(url) };
        let Ok((reply, _)) = line.request(request).await else { return Evidence::None };
        if asks_to_wait(&reply) {
            return Evidence::Refused(reply.retry_after);
        }
        let is_of_file = reply.status == 206
            && reply.version.total.is_none_or(|total| total == bytes)
            && reply.body.len() == sample.bytes.len();
        if !is_of_file {
            return Evidence::None;
        }
        if reply.body != sample.bytes {
            return Evidence::Different;
        }
        if !known.knows(&reply.version) {
            return Evidence::Same;
        }
    }
    Evidence::None
}
