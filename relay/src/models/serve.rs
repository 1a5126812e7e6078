//! `GET /models`, `GET /models/NAME` and `GET /models/NAME.b3`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use potluck_relay_api::http::{GROUP_BYTES, ModelList};
use potluck_relay_api::path::GROUPS_SUFFIX;
use tokio::time::{Instant, sleep};

use super::body::{self, Piece};
use super::content::Content;
use super::file::{HashProgress, ModelFile};
use super::origin::OriginError;
use super::range::{self, RangeRequest};
use crate::error::{ApiError, in_one_line};
use crate::etag;
use crate::metrics::Metrics;
use crate::net::Client;
use crate::quotas::{Exhausted, Lease, Resource};
use crate::server::Shared;

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
        return groups(&shared, &file, &headers).await;
    }
    let file = shared.library.file(&name)?;
    let lease = download(&shared, &client).await?;
    let opened = open(&shared, &file).await?;
    weights(&shared.metrics, file, (opened, lease), &method, &headers).await
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

async fn groups(shared: &Arc<Shared>, file: &ModelFile, headers: &HeaderMap) -> Result<Response, ApiError> {
    match file.progress() {
        HashProgress::Ready(hashes) => {
            let tag = tag(&format!("{}{GROUPS_SUFFIX}", hashes.root));
            let is_known = etag::is_known(headers, &tag);
            let headers = [
                (header::CONTENT_TYPE, OCTETS),
                (header::ETAG, tag),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            ];
            Ok(match is_known {
                true => (StatusCode::NOT_MODIFIED, headers).into_response(),
                false => (headers, hashes.groups.clone()).into_response(),
            })
        }
        HashProgress::Hashing(done) => {
            let percent = done * 100 / file.version.bytes.max(1);
            Err(ApiError::Hashing { name: file.name.clone(), percent })
        }
        HashProgress::Failed(reason) if file.origin.is_some() => {
            Err(ApiError::Unreadable(file.name.clone(), io::Error::other(reason)))
        }
        HashProgress::Failed(reason) => {
            let path = file.path.clone();
            let there = tokio::task::spawn_blocking(move || path.try_exists()).await;
            match there {
                Ok(Ok(false)) => Err(gone(shared, &file.name).await),
                _ => Err(ApiError::Unreadable(file.name.clone(), io::Error::other(reason))),
            }
        }
    }
}

/// Looks for a file again that was removed or moved since the last scan.
async fn gone(shared: &Arc<Shared>, name: &str) -> ApiError {
    rescan(shared, Duration::ZERO).await;
    match shared.library.file(name) {
        Ok(_) => ApiError::Changed(name.to_owned()),
        Err(error) => error,
    }
}

/// Opens the file and checks that it is the version that was scanned.
async fn open(shared: &Arc<Shared>, file: &Arc<ModelFile>) -> Result<Content, ApiError> {
    let wanted = file.clone();
    let opened = tokio::task::spawn_blocking(move || Content::open(&wanted));
    match opened.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok((opened, version)) if file.version.has_bytes_of(&version) => Ok(opened),
        Ok(_) => {
            rescan(shared, Duration::ZERO).await;
            Err(ApiError::Changed(file.name.clone()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(gone(shared, &file.name).await),
        Err(error) => {
            // Once for each file: anybody may ask for it again and again.
            if file.is_first_fault() {
                tracing::warn!("{} cannot be read: {error}", in_one_line(&file.name));
            }
            Err(ApiError::Unreadable(file.name.clone(), error))
        }
    }
}

fn tag(text: &str) -> HeaderValue {
    // Hexadecimal digits and a suffix are always valid in a header.
    HeaderValue::try_from(format!("\"{text}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

async fn weights(
    metrics: &Arc<Metrics>,
    file: Arc<ModelFile>,
    (mut content, lease): (Content, Lease),
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let bytes = file.version.bytes;
    let etag = file.hashes().map(|hashes| tag(&hashes.root.to_string()));
    let unchanged = etag.as_ref().is_some_and(|etag| etag::is_known(headers, etag));
    // A range of another version is useless: `If-Range` asks for the whole file then.
    let same_version = headers.get(header::IF_RANGE).is_none_or(|known| etag.as_ref() == Some(known));
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok()).filter(|_| same_version);
    let request = if method == Method::GET { range::parse(range, bytes) } else { RangeRequest::Whole };
    let name = file.name.clone();
    let broken = |error: io::Error| ApiError::Unreadable(name, error);

    let mut response =
        Response::builder().header(header::ACCEPT_RANGES, "bytes").header(header::CACHE_CONTROL, NO_STORE);
    if let Some(etag) = etag {
        response = response.header(header::ETAG, etag);
    }
    if unchanged {
        let response = response.status(StatusCode::NOT_MODIFIED).body(Body::empty());
        return response.map_err(|error| broken(io::Error::other(error)));
    }
    let (response, pieces) = match request {
        RangeRequest::Unsatisfiable => return Err(ApiError::RangeOutside { bytes }),
        RangeRequest::Whole => (response.header(header::CONTENT_TYPE, OCTETS), vec![Piece::Part(0..bytes)]),
        RangeRequest::Part(part) => {
            let content_range = format!("bytes {}-{}/{bytes}", part.start, part.end - 1);
            let response = response.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_TYPE, OCTETS);
            (response.header(header::CONTENT_RANGE, content_range), vec![Piece::Part(part)])
        }
        RangeRequest::Parts(parts) => match body::multipart(parts, bytes) {
            Some((pieces, kind)) => {
                (response.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_TYPE, kind), pieces)
            }
            None => return Err(broken(io::Error::other("the system has no random numbers"))),
        },
    };
    let response = response.header(header::CONTENT_LENGTH, pieces.iter().map(Piece::bytes).sum::<u64>());
    // What an origin lacks shows before the first byte of the answer.
    let first = pieces.iter().find_map(|piece| if let Piece::Part(part) = piece { Some(part.start) } else { None });
    if let Some(first) = first.filter(|first| file.origin.is_some() && method == Method::GET && *first < bytes) {
        let read = body::read(content, file.clone(), first..first + 1).await;
        (content, _) = read.map_err(|error| of_origin(&file.name, error))?;
    }
    let body = match method == Method::GET {
        true => body::stream(metrics.clone(), file, (content, lease), pieces),
        false => Body::empty(),
    };
    response.body(body).map_err(|error| broken(io::Error::other(error)))
}

fn of_origin(name: &str, error: io::Error) -> ApiError {
    match error.downcast::<OriginError>() {
        Ok(error) => ApiError::Origin(name.to_owned(), error),
        Err(error) => ApiError::Unreadable(name.to_owned(), error),
    }
}
