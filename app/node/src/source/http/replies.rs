//! Checks that a reply has the requested bytes, of the version that is being read.

use std::ops::Range;

use super::{HttpFile, HttpSource, Remote};
use crate::platform::{HttpReply, host_of};
use crate::relay::complaint;
use crate::source::error::{Change, SourceError};
use crate::source::evidence::{Evidence, evidence};

impl HttpSource {
    /// The bytes of a reply, if they are of this version. If the reply's name for its version is unknown, the samples decide.
    pub(super) async fn judge(
        &self,
        remote: &Remote,
        url: &str,
        range: Option<&Range<u64>>,
        reply: HttpReply,
    ) -> Result<Vec<u8>, Refusal> {
        if remote.file.hashes.is_some() {
            return accept(remote, url, range, reply);
        }
        match name_of(remote, &reply) {
            Name::Known => {}
            Name::OtherLength => return Err(Refusal::OtherVersion(Change::Said)),
            Name::Unknown => match self.evidence(remote, &reply).await {
                Evidence::Same => {}
                Evidence::Different => return Err(Refusal::OtherVersion(Change::Read)),
                Evidence::None => return Err(Refusal::OtherVersion(Change::Said)),
            },
        }
        let bytes = accept(remote, url, range, reply)?;
        remote.version.note(range.map_or(0, |range| range.start), &bytes);
        Ok(bytes)
    }

    /// What the samples say of a reply whose name is not known. One reply at a time: those that wait may have the same name.
    async fn evidence(&self, remote: &Remote, reply: &HttpReply) -> Evidence {
        let _one = remote.version.in_doubt.lock().await;
        if remote.version.accepts(&reply.version) {
            return Evidence::Same;
        }
        let HttpFile { url, bytes, .. } = &remote.file;
        let evidence = evidence(self.platform.transport.as_ref(), url, *bytes, &remote.version).await;
        if evidence == Evidence::Same {
            remote.version.add_name(reply.version.clone());
        }
        evidence
    }
}

/// What a reply calls its version.
enum Name {
    /// By a known name or by none; or the reply has no part of a file.
    Known,
    /// By a name that is not known.
    Unknown,
    /// The reply is about a file of another length.
    OtherLength,
}

fn name_of(remote: &Remote, reply: &HttpReply) -> Name {
    let all = remote.file.bytes;
    let is_whole = reply.length == Some(all) || reply.body.len() as u64 == all;
    match (reply.status, reply.version.total) {
        (206, Some(total)) if total != all => Name::OtherLength,
        (416, total) if total != Some(all) => Name::OtherLength,
        (206, _) if !remote.version.accepts(&reply.version) => Name::Unknown,
        (200, _) if is_whole && !remote.version.accepts(&reply.version) => Name::Unknown,
        _ => Name::Known,
    }
}

fn accept(remote: &Remote, url: &str, range: Option<&Range<u64>>, reply: HttpReply) -> Result<Vec<u8>, Refusal> {
    let host = host_of(url).to_owned();
    let file = &remote.file;
    // The sentence goes to the room's host, who chose the link and must not learn what another server answers.
    let reason = |reply: &HttpReply| match &file.hashes {
        Some(_) => complaint(reply),
        None => format!("status {}", reply.status),
    };
    match (reply.status, range) {
        (200, None) => Ok(reply.body),
        (206, Some(range)) if reply.body.len() as u64 == range.end - range.start => Ok(reply.body),
        // A server without range support will do if the whole file was requested.
        (200, Some(range)) if range.start == 0 && reply.body.len() as u64 == range.end => Ok(reply.body),
        // It sent ranges before: this may be a page about its maintenance.
        (200, Some(_)) if !remote.version.samples().is_empty() => {
            Err(Refusal::Retry(SourceError::NoRanges(host), None))
        }
        (200, Some(_)) => Err(Refusal::Final(SourceError::NoRanges(host))),
        (408 | 429 | 500..=599, _) | (206, _) => {
            let pause = reply.retry_after.map(|seconds| f64::from(seconds.min(30)) * 1000.0);
            Err(Refusal::Retry(SourceError::Status { host, reason: reason(&reply) }, pause))
        }
        _ => Err(Refusal::Final(SourceError::Status { host, reason: reason(&reply) })),
    }
}

/// Why a reply is not usable.
pub(super) enum Refusal {
    /// Try again, after the milliseconds the server asked for.
    Retry(SourceError, Option<f64>),
    /// It is of another version of the file, as far as is known.
    OtherVersion(Change),
    /// Trying again is pointless.
    Final(SourceError),
}
