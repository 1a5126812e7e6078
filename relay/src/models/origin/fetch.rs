//! Requests to an origin.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use tokio::sync::SemaphorePermit;
use ureq::{Agent, Error};

use super::{OriginError, OriginUrl, Origins};
use crate::models::file::{FileHashes, FileVersion, Record};

/// Redirects that are followed: stores lead to other addresses, but not often.
const REDIRECTS: u32 = 5;

/// Makes requests to origins.
pub fn agent(timeout: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(REDIRECTS)
        .timeout_connect(Some(timeout))
        .timeout_recv_response(Some(timeout))
        .timeout_per_read(Some(timeout))
        .build();
    config.into()
}

/// A version of a file at an origin.
pub struct RemoteFile {
    pub(super) url: OriginUrl,
    pub(super) bytes: u64,
    /// The origin's name for this version, if it has one.
    validator: Option<String>,
    origins: Arc<Origins>,
    is_wrong: AtomicBool,
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.url.fmt(f)
    }
}

impl RemoteFile {
    /// Asks for the first byte, which tells length and version.
    ///
    /// # Errors
    /// There is no such file, or it cannot be had in parts.
    pub fn look(url: &OriginUrl, origins: &Arc<Origins>) -> Result<Self, OriginError> {
        let mut file = Self {
            url: url.clone(),
            bytes: 0,
            validator: None,
            origins: origins.clone(),
            is_wrong: AtomicBool::new(false),
        };
        let reply = file.ask(0..1)?;
        match reply.status().as_u16() {
            206 => {}
            200 => return Err(OriginError::NoRanges(url.host.clone())),
            status => return Err(file.status(status)),
        }
        let total = total_bytes(reply.headers()).ok_or_else(|| OriginError::NoRanges(url.host.clone()))?;
        (file.bytes, file.validator) = (total, validator(reply.headers()));
        Ok(file)
    }

    /// Where it is.
    pub fn url(&self) -> &OriginUrl {
        &self.url
    }

    /// What tells its versions apart, for the stored hashes.
    pub fn version(&self) -> FileVersion {
        let hash = blake3::hash(self.validator.as_deref().unwrap_or_default().as_bytes());
        let (number, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 16], &[]));
        FileVersion { bytes: self.bytes, modified: u128::from_le_bytes(*number), record: Record::default() }
    }

    /// The address and the version, for the cache's file names.
    pub(super) fn key(&self) -> String {
        let validator = self.validator.as_deref().unwrap_or_default();
        let key = blake3::hash(format!("{}\n{}\n{validator}", self.url.as_str(), self.bytes).as_bytes());
        key.to_hex()[..24].to_owned()
    }

    /// Some part of the file, from the cache or the origin.
    ///
    /// # Errors
    /// It cannot be had, or is not what was hashed.
    pub fn part(&self, index: u64, hashes: Option<&FileHashes>) -> Result<Bytes, OriginError> {
        self.origins.part(self, index, hashes)
    }

    /// A place among those who read from origins, once one is free.
    pub async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.origins.permit().await
    }

    /// Notes that its hashes are of other bytes.
    pub(super) fn distrust(&self, error: &OriginError) {
        self.is_wrong.fetch_or(matches!(error, OriginError::WrongHash(_)), Ordering::Relaxed);
    }

    /// Whether its hashes are of other bytes.
    pub(super) fn is_wrong(&self) -> bool {
        self.is_wrong.load(Ordering::Relaxed)
    }

    /// Fetches bytes.
    pub(super) fn fetch(&self, range: Range<u64>) -> Result<Bytes, OriginError> {
        let host = || self.url.host.clone();
        let mut reply = self.ask(range.clone())?;
        match reply.status().as_u16() {
            206 => {}
            // It has no more this version, or forgot about parts.
            200 | 416 => return Err(OriginError::Changed(host())),
            status => return Err(self.status(status)),
        }
        let changed = self.validator.is_some() && validator(reply.headers()) != self.validator;
        if changed || total_bytes(reply.headers()) != Some(self.bytes) {
            return Err(OriginError::Changed(host()));
        }
        let length = range.end - range.start;
        let mut bytes = Vec::with_capacity(length as usize);
        let mut body = reply.body_mut().as_reader().take(length + 1);
        body.read_to_end(&mut bytes).map_err(|error| self.fault(error.into()))?;
        if bytes.len() as u64 != length {
            return Err(OriginError::Unreachable(host(), "it sent another number of bytes than it said".into()));
        }
        Ok(bytes.into())
    }

    fn ask(&self, range: Range<u64>) -> Result<ureq::http::Response<ureq::Body>, OriginError> {
        let mut request = self.origins.agent.get(self.url.as_str());
        request = request.header("range", format!("bytes={}-{}", range.start, range.end - 1));
        if let Some(validator) = &self.validator {
            request = request.header("if-range", validator);
        }
        request.call().map_err(|error| self.fault(error))
    }

    fn status(&self, status: u16) -> OriginError {
        let host = self.url.host.clone();
        match status {
            404 | 410 => OriginError::NotThere(host),
            _ => OriginError::Status(host, status),
        }
    }

    fn fault(&self, error: Error) -> OriginError {
        let host = self.url.host.clone();
        match error {
            Error::Timeout(_) => OriginError::Slow(host),
            Error::TooManyRedirects => OriginError::TooManyRedirects(host),
            // A body's errors come as those of a file.
            Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(Error::Timeout(_)) => OriginError::Slow(host),
                _ => OriginError::Unreachable(host, error.to_string()),
            },
            error => OriginError::Unreachable(host, error.to_string()),
        }
    }
}

/// A strong tag, or else the time of the last change.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    text("etag").filter(|tag| !tag.starts_with("W/")).or_else(|| text("last-modified"))
}

/// The length of the whole file, from `Content-Range: bytes 0-0/1234`.
fn total_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get("content-range")?.to_str().ok()?.rsplit_once('/')?.1.parse().ok()
}
