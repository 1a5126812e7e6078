//! The first bytes of links' files, and their lengths. Both come with one read: many servers refuse `HEAD`, above all for addresses
//! that are signed for one kind of request.

use futures::{StreamExt, TryStreamExt};
use potluck_text::texts;

use super::line::{Attempts, Line};
use super::parts::Parts;
use super::replies::{Refusal, refusal};
use super::{HttpFile, HttpSource, Remote};
use crate::hashes::GROUP_BYTES;
use crate::platform::{HttpReply, HttpRequest, Platform, Traffic, host_of};
use crate::source::error::SourceError;
use crate::source::version::SAMPLES_AT_ONCE;

/// Bytes of the first read: as many as the header's first read takes.
const FIRST_BYTES: u64 = GROUP_BYTES;

impl HttpSource {
    /// The files of a model at these links.
    ///
    /// # Errors
    /// A server cannot be reached, refuses, sends no parts of files, or does not say how long a file is.
    pub async fn of_links(platform: Platform, links: Vec<String>, traffic: Traffic) -> Result<Self, SourceError> {
        let line = Line::new(platform, traffic, true);
        let first = links.into_iter().map(|link| first_read(&line, link));
        let files = futures::stream::iter(first).buffered(SAMPLES_AT_ONCE).try_collect().await?;
        Ok(Self { line, files, parts: Parts::default(), next_sample: Default::default() })
    }
}

impl Remote {
    /// Bytes of a range that came with the first read.
    pub(super) fn beginning(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        let (start, end) = (usize::try_from(offset).ok()?, usize::try_from(offset.checked_add(len)?).ok()?);
        self.beginning.borrow().get(start..end).map(<[u8]>::to_vec)
    }
}

async fn first_read(line: &Line, url: String) -> Result<Remote, SourceError> {
    let mut remote = Remote::new(HttpFile { url, bytes: 0, hashes: None });
    let mut attempts = Attempts::default();
    loop {
        let url = remote.file.url.clone();
        let request = HttpRequest { range: Some(0..FIRST_BYTES), ..HttpRequest::get(&url) };
        // Whoever has mistyped a server's name wants to know soon.
        let (reply, sent) = line.request(request).await?;
        match length(line, &remote, &reply).await {
            Ok(bytes) => {
                line.works(sent);
                remote.file.bytes = bytes;
                remote.version.accepts(&reply.version);
                remote.version.note(0, &reply.body);
                *remote.beginning.get_mut() = reply.body;
                return Ok(remote);
            }
            Err(refusal) => attempts.wait(line, &url, refusal).await?,
        }
    }
}

/// The length of a file, by the reply to its first read.
async fn length(line: &Line, remote: &Remote, reply: &HttpReply) -> Result<u64, Refusal> {
    let (url, read) = (&remote.file.url, reply.body.len() as u64);
    let host = host_of(url);
    // Some servers call every file that they do not know a page.
    let is_page = reply.is_page && !reply.body.starts_with(b"GGUF");
    match (reply.status, reply.version.total) {
        (200 | 206, _) if is_page => Err(Refusal::Final(SourceError::Page(texts().weights.is_page(host)))),
        (206, Some(total)) if reply.start.is_none_or(|start| start == 0) && read == FIRST_BYTES.min(total) => Ok(total),
        // Its server does not let this page read `Content-Range`.
        (206, None) if read < FIRST_BYTES => Ok(read),
        (206, None) => whole_length(line, remote).await,
        (416, Some(0)) => Ok(0),
        // The whole file, which is not longer than the first read: nothing is read of a longer one.
        (200, _) if read > 0 || reply.length == Some(0) => Ok(read),
        _ => Err(refusal(remote, url, true, reply)),
    }
}

/// The length of the whole file, whose content is not read.
async fn whole_length(line: &Line, remote: &Remote) -> Result<u64, Refusal> {
    let url = &remote.file.url;
    let ((reply, content), _) =
        line.open(HttpRequest::get(url)).await.map_err(|error| Refusal::Retry(SourceError::Net(error)))?;
    drop(content);
    if reply.status != 200 {
        return Err(refusal(remote, url, false, &reply));
    }
    reply.length.ok_or_else(|| Refusal::Final(SourceError::NoLength(host_of(url).to_owned())))
}
