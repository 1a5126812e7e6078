//! `GET /models`, `GET /models/NAME` and `GET /models/NAME.b3`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use potluck_relay_api::http::{GROUP_BYTES, ModelList};
use potluck_relay_api::path::GROUPS_SUFFIX;
use tokio::time::{Instant, sleep};

use super::file::{FileVersion, HashProgress, ModelFile};
use super::range::{self, RangeRequest};
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::net::Client;
use crate::quotas::{Exhausted, Lease, Resource};
use crate::server::Shared;

/// Bytes read from disk at once: what a download holds in memory while its receiver is slow.
const STEP_BYTES: u64 = 256 * 1024;
/// Pause before a download that waits for its turn asks again.
const DOWNLOAD_PAUSE: Duration = Duration::from_millis(50);
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// The page stores weights itself; a second copy in the browser's cache would only push other things out.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// `GET /models`.
pub async fn list(State(shared): State<Arc<Shared>>) -> Response {
    rescan(&shared, shared.limits.rescan_every).await;
    let list = ModelList { group_bytes: GROUP_BYTES, models: shared.library.entries() };
    ([(header::CACHE_CONTROL, NO_STORE)], Json(list)).into_response()
}

/// Scans the folders again unless that was done less than `max_age` ago.
async fn rescan(shared: &Arc<Shared>, max_age: Duration) {
    let library = shared.library.clone();
    // It fails only when the relay is stopping; then the last scan is good enough.
    let _ = tokio::task::spawn_blocking(move || library.scan(max_age)).await;
}

/// `GET` and `HEAD /models/NAME` and `/models/NAME.b3`.
///
/// # Errors
/// There is no such file, it is not hashed yet (for `.b3`), it changed or cannot be read, or the range is unusable.
pub async fn file(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(name) = name.strip_suffix(GROUPS_SUFFIX)
        && let Ok(file) = shared.library.file(name)
    {
        return groups(&file);
    }
    let file = shared.library.file(&name)?;
    let lease = download(&shared, &client).await?;
    let opened = open(&shared, &file).await?;
    weights(&shared.metrics, file, (opened, lease), &method, &headers)
}

/// A place among the downloads, once one is free.
async fn download(shared: &Shared, client: &Client) -> Result<Lease, ApiError> {
    let share = shared.quotas.share(client.address);
    let deadline = Instant::now() + shared.limits.download_wait;
    loop {
        match share.take(Resource::Download) {
            Ok(lease) => return Ok(lease),
            Err(_) if Instant::now() < deadline => sleep(DOWNLOAD_PAUSE).await,
            Err(exhausted) => {
                shared.metrics.requests_limited.inc();
                return Err(match exhausted {
                    Exhausted::Address => ApiError::TooManyDownloads,
                    Exhausted::Relay => ApiError::RelayFull,
                });
            }
        }
    }
}

fn groups(file: &ModelFile) -> Result<Response, ApiError> {
    match file.progress() {
        HashProgress::Ready(hashes) => {
            let headers = [
                (header::CONTENT_TYPE, OCTETS),
                (header::ETAG, etag(&format!("{}{GROUPS_SUFFIX}", hashes.root))),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            ];
            Ok((headers, hashes.groups.clone()).into_response())
        }
        HashProgress::Hashing(done) => {
            let percent = done * 100 / file.version.bytes.max(1);
            Err(ApiError::Hashing { name: file.name.clone(), percent })
        }
        HashProgress::Failed(reason) => Err(ApiError::Unreadable(file.name.clone(), io::Error::other(reason))),
    }
}

/// Opens the file and checks that it is the version that was scanned.
async fn open(shared: &Arc<Shared>, file: &Arc<ModelFile>) -> Result<File, ApiError> {
    let path = file.path.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let opened = File::open(path)?;
        let version = FileVersion::of(&opened.metadata()?);
        Ok((opened, version))
    });
    match opened.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok((opened, version)) if file.version.has_bytes_of(&version) => Ok(opened),
        Ok(_) => {
            rescan(shared, Duration::ZERO).await;
            Err(ApiError::Changed(file.name.clone()))
        }
        Err(error) => Err(ApiError::Unreadable(file.name.clone(), error)),
    }
}

fn etag(text: &str) -> HeaderValue {
    // Hexadecimal digits and a suffix are always valid in a header.
    HeaderValue::try_from(format!("\"{text}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

fn weights(
    metrics: &Arc<Metrics>,
    file: Arc<ModelFile>,
    opened: (File, Lease),
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let bytes = file.version.bytes;
    let etag = file.hashes().map(|hashes| etag(&hashes.root.to_string()));
    let unchanged = headers.get(header::IF_NONE_MATCH).zip(etag.as_ref()).is_some_and(|(known, etag)| {
        known == "*" || known.to_str().is_ok_and(|list| list.split(',').any(|one| *etag == *one.trim()))
    });
    // A range of another version is useless: `If-Range` asks for the whole file then.
    let same_version = headers.get(header::IF_RANGE).is_none_or(|known| etag.as_ref() == Some(known));
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok()).filter(|_| same_version);
    let request = if method == Method::GET { range::parse(range, bytes) } else { RangeRequest::Whole };

    let mut response =
        Response::builder().header(header::ACCEPT_RANGES, "bytes").header(header::CACHE_CONTROL, NO_STORE);
    if let Some(etag) = etag {
        response = response.header(header::ETAG, etag);
    }
    let (response, part) = match request {
        _ if unchanged => (response.status(StatusCode::NOT_MODIFIED), None),
        RangeRequest::Unsatisfiable => return Err(ApiError::RangeOutside { bytes }),
        RangeRequest::Several => return Err(ApiError::SeveralRanges { bytes }),
        RangeRequest::Whole => {
            let response = response.header(header::CONTENT_TYPE, OCTETS).header(header::CONTENT_LENGTH, bytes);
            (response, (method == Method::GET).then_some(0..bytes))
        }
        RangeRequest::Part(part) => {
            let content_range = format!("bytes {}-{}/{bytes}", part.start, part.end - 1);
            let response = response
                .status(StatusCode::PARTIAL_CONTENT)
                .header(header::CONTENT_TYPE, OCTETS)
                .header(header::CONTENT_LENGTH, part.end - part.start)
                .header(header::CONTENT_RANGE, content_range);
            (response, Some(part))
        }
    };
    let name = file.name.clone();
    let body = part.map_or_else(Body::empty, |part| stream_part(metrics.clone(), file, opened, part));
    response.body(body).map_err(|error| ApiError::Unreadable(name, io::Error::other(error)))
}

/// A body that reads `part` of the file as fast as the other side takes it, and counts the bytes. It breaks off if the file is
/// written to meanwhile: all its bytes are of one version.
fn stream_part(metrics: Arc<Metrics>, file: Arc<ModelFile>, opened: (File, Lease), part: Range<u64>) -> Body {
    Body::from_stream(stream::try_unfold((opened, part), move |((opened, lease), part)| {
        let (metrics, file) = (metrics.clone(), file.clone());
        async move {
            if part.is_empty() {
                return Ok(None);
            }
            let step = part.start..part.end.min(part.start + STEP_BYTES);
            let rest = step.end..part.end;
            let version = file.version;
            let (opened, bytes) = tokio::task::spawn_blocking(move || read_step(opened, &version, step))
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)))?;
            metrics.weight_bytes.add(bytes.len() as u64);
            file.bytes_served.add(bytes.len() as u64);
            Ok::<_, io::Error>(Some((bytes, ((opened, lease), rest))))
        }
    }))
}

fn read_step(mut file: File, version: &FileVersion, step: Range<u64>) -> io::Result<(File, Bytes)> {
    let mut buffer = vec![0; (step.end - step.start) as usize];
    file.seek(SeekFrom::Start(step.start))?;
    file.read_exact(&mut buffer)?;
    // A write updates the file's times before its bytes.
    version.check(&file)?;
    Ok((file, buffer.into()))
}
