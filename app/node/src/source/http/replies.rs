//! Checks that a reply has the requested bytes, of the version that is being read.

use std::ops::Range;

use potluck_text::texts;

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
        self.check_version(remote, &reply).await?;
        let bytes = accept(remote, url, range, reply)?;
        remote.version.note(range.map_or(0, |range| range.start), &bytes);
        Ok(bytes)
    }

    /// Checks that the content of a reply, which is still to come, is what was asked for, or its beginning.
    pub(super) async fn judge_opened(
        &self,
        remote: &Remote,
        range: &Range<u64>,
        reply: &HttpReply,
    ) -> Result<(), Refusal> {
        self.check_version(remote, reply).await?;
        if reply.status == 206 && sends(range, reply) {
            return Ok(());
        }
        Err(refusal(remote, &remote.file.url, true, reply))
    }

    async fn check_version(&self, remote: &Remote, reply: &HttpReply) -> Result<(), Refusal> {
        let change = match name_of(remote, reply) {
            Name::Known => return Ok(()),
            Name::OtherLength => Change::Said,
            Name::Unknown => match self.evidence(remote, reply).await {
                Evidence::Same => return Ok(()),
                Evidence::Different => Change::Read,
                Evidence::None => Change::Said,
                Evidence::Refused(seconds) => return Err(Refusal::Busy(seconds)),
            },
        };
        Err(Refusal::OtherVersion(remote.error(change)))
    }

    /// What the samples say of a reply whose name is not known. One reply at a time: those that wait may have the same name.
    async fn evidence(&self, remote: &Remote, reply: &HttpReply) -> Evidence {
        let _one = remote.version.in_doubt.lock().await;
        if remote.version.accepts(&reply.version) {
            return Evidence::Same;
        }
        let HttpFile { url, bytes, .. } = &remote.file;
        let evidence = evidence(&self.line, url, *bytes, &remote.version).await;
        if evidence == Evidence::Same {
            remote.version.add_name(reply.version.clone());
        }
        evidence
    }
}

/// Whether a reply with a part says, as far as it can be read, that it is this one or its beginning. Where the browser hides which
/// part it is, its length has to tell: a server may send the whole file under this status.
fn sends(range: &Range<u64>, reply: &HttpReply) -> bool {
    let wanted = range.end.saturating_sub(range.start);
    let is_of_range = match reply.start {
        Some(start) => start == range.start && reply.length.is_none_or(|length| length <= wanted),
        None => reply.length == Some(wanted),
    };
    is_of_range && !reply.is_multipart
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
    match (reply.status, range) {
        (200, None) => Ok(reply.body),
        (206, Some(range)) if reply.body.len() as u64 == range.end - range.start && !reply.is_multipart => {
            Ok(reply.body)
        }
        // A server without range support will do if the whole file was requested.
        (200, Some(range)) if range.start == 0 && reply.body.len() as u64 == range.end => Ok(reply.body),
        (_, range) => Err(refusal(remote, url, range.is_some(), &reply)),
    }
}

/// Whether a server has too many requests. A 503 without a time is of a server that does not work.
pub(in crate::source) fn asks_to_wait(reply: &HttpReply) -> bool {
    reply.status == 429 || (reply.status == 503 && reply.retry_after.is_some())
}

/// Why a reply is of no use.
pub(super) fn refusal(remote: &Remote, url: &str, is_part: bool, reply: &HttpReply) -> Refusal {
    let host = host_of(url).to_owned();
    // The sentence goes to the room's host, who chose the link and must not learn what another server answers.
    let reason = match (&remote.file.hashes, reply.status) {
        (Some(_), _) => complaint(reply),
        (None, 206) => texts().weights.other_bytes().to_owned(),
        (None, 404 | 410) => texts().weights.no_such_file(reply.status),
        (None, 408 | 429 | 500..=599) => texts().weights.fails_now(reply.status),
        (None, _) => texts().weights.gives_no_file(reply.status),
    };
    match reply.status {
        // It sent ranges before: this may be a page about its maintenance.
        200 if is_part && remote.has_sent_parts() => Refusal::Retry(SourceError::NoRanges(host)),
        200 if is_part => Refusal::Final(SourceError::NoRanges(host)),
        // A relay that is not busy says what else it cannot do now.
        _ if asks_to_wait(reply) && (remote.file.hashes.is_none() || reply.retry_after.is_some()) => {
            Refusal::Busy(reply.retry_after)
        }
        401 | 403 if remote.file.hashes.is_none() => Refusal::Final(SourceError::Locked(texts().weights.locked(&host))),
        503 if remote.file.hashes.is_none() => Refusal::Full(SourceError::Status { host, reason }),
        206 | 408 | 429 | 500..=599 => Refusal::Retry(SourceError::Status { host, reason }),
        _ => Refusal::Final(SourceError::Status { host, reason }),
    }
}

/// Why a reply is not usable.
pub(super) enum Refusal {
    /// Try again.
    Retry(SourceError),
    /// The server has too many requests, and may say how many seconds to wait.
    Busy(Option<u32>),
    /// Try again; the server may allow fewer connections than this device has.
    Full(SourceError),
    /// It is of another version of the file, as far as is known.
    OtherVersion(SourceError),
    /// Trying again is pointless.
    Final(SourceError),
}
