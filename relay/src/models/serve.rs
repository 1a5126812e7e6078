//! `GET /models`, `GET /models/NAME` and `GET /models/NAME.b3`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use futures::stream;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;

use super::file::{ModelFile, Progressed, Stamp};
use super::groups::GROUP_BYTES;
use super::library::ModelLine;
use super::range::{Wanted, read};
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::server::Shared;

/// Bytes read from disk at once.
const STEP_BYTES: u64 = 1024 * 1024;
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Weights are kept by the page itself; a second copy in the browser's cache would only push other things out.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

#[derive(Serialize)]
struct List {
    group_bytes: u64,
    models: Vec<ModelLine>,
}

/// `GET /models`.
pub async fn list(State(shared): State<Arc<Shared>>) -> Response {
    look(&shared, false).await;
    let list = List { group_bytes: GROUP_BYTES, models: shared.library.lines() };
    ([(header::CACHE_CONTROL, NO_STORE)], Json(list)).into_response()
}

/// Looks through the folders again, if it is time or `now` is set.
async fn look(shared: &Arc<Shared>, now: bool) {
    let library = shared.library.clone();
    let fresh = if now { std::time::Duration::ZERO } else { shared.limits.rescan_every };
    // It fails only when the relay is stopping; then the last state is as good.
    let _ = tokio::task::spawn_blocking(move || library.look(fresh)).await;
}

/// `GET` and `HEAD /models/NAME` and `/models/NAME.b3`.
pub async fn file(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(name) = name.strip_suffix(".b3")
        && let Ok(file) = shared.library.file(name)
    {
        return groups(&file);
    }
    let file = shared.library.file(&name)?;
    let opened = open(&shared, &file).await?;
    weights(&shared.metrics, file, opened, &method, &headers, shared.limits.ranges)
}

fn groups(file: &ModelFile) -> Result<Response, ApiError> {
    match file.progress() {
        Progressed::Ready(hashed) => {
            let headers = [
                (header::CONTENT_TYPE, OCTETS),
                (header::ETAG, tag(&format!("{}.b3", hashed.root))),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            ];
            Ok((headers, hashed.list.clone()).into_response())
        }
        Progressed::Hashing(done) => {
            let percent = done * 100 / file.stamp.bytes.max(1);
            Err(ApiError::Hashing { name: file.name.clone(), percent })
        }
        Progressed::Failed(reason) => Err(ApiError::Unreadable(file.name.clone(), io::Error::other(reason))),
    }
}

/// Opens the file and makes sure that it is the version that was hashed.
async fn open(shared: &Arc<Shared>, file: &Arc<ModelFile>) -> Result<File, ApiError> {
    let path = file.path.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let opened = File::open(path)?;
        let stamp = Stamp::of(&opened.metadata()?);
        Ok((opened, stamp))
    });
    match opened.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok((opened, stamp)) if stamp == file.stamp => Ok(opened),
        Ok(_) => {
            look(shared, true).await;
            Err(ApiError::Changed(file.name.clone()))
        }
        Err(error) => Err(ApiError::Unreadable(file.name.clone(), error)),
    }
}

fn tag(text: &str) -> HeaderValue {
    // Hexadecimal digits and a suffix, always allowed in a header.
    HeaderValue::try_from(format!("\"{text}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

fn weights(
    metrics: &Arc<Metrics>,
    file: Arc<ModelFile>,
    opened: File,
    method: &Method,
    headers: &HeaderMap,
    most: usize,
) -> Result<Response, ApiError> {
    let bytes = file.stamp.bytes;
    let etag = file.hashed().map(|hashed| tag(&hashed.root.to_string()));
    let unchanged = headers.get(header::IF_NONE_MATCH).zip(etag.as_ref()).is_some_and(|(asked, etag)| {
        asked == "*" || asked.to_str().is_ok_and(|list| list.split(',').any(|one| *etag == *one.trim()))
    });
    // A range of another version is of no use: then the whole file goes out, as If-Range wants it.
    let same = headers.get(header::IF_RANGE).is_none_or(|asked| etag.as_ref() == Some(asked));
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok()).filter(|_| same);
    let wanted = if method == Method::GET { read(range, bytes, most) } else { Wanted::Whole };

    let mut response =
        Response::builder().header(header::ACCEPT_RANGES, "bytes").header(header::CACHE_CONTROL, NO_STORE);
    if let Some(etag) = etag {
        response = response.header(header::ETAG, etag);
    }
    let sender = |pieces: Vec<Piece>| send(metrics.clone(), file.clone(), opened, pieces);
    let response = match wanted {
        _ if unchanged => response.status(StatusCode::NOT_MODIFIED).body(Body::empty()),
        Wanted::Nothing => return Err(ApiError::RangeOutside { bytes }),
        Wanted::Whole => response
            .header(header::CONTENT_TYPE, OCTETS)
            .header(header::CONTENT_LENGTH, bytes)
            .body(if method == Method::GET { sender(vec![Piece::Part(0..bytes)]) } else { Body::empty() }),
        Wanted::Parts(parts) if parts.len() == 1 => response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::CONTENT_TYPE, OCTETS)
            .header(header::CONTENT_LENGTH, parts[0].end - parts[0].start)
            .header(header::CONTENT_RANGE, content_range(&parts[0], bytes))
            .body(sender(parts.into_iter().map(Piece::Part).collect())),
        Wanted::Parts(parts) => {
            let boundary = boundary();
            let pieces = multipart(parts, bytes, &boundary);
            response
                .status(StatusCode::PARTIAL_CONTENT)
                .header(header::CONTENT_TYPE, format!("multipart/byteranges; boundary={boundary}"))
                .header(header::CONTENT_LENGTH, pieces.iter().map(Piece::bytes).sum::<u64>())
                .body(sender(pieces))
        }
    };
    response.map_err(|error| ApiError::Unreadable(file.name.clone(), io::Error::other(error)))
}

fn content_range(part: &Range<u64>, bytes: u64) -> String {
    format!("bytes {}-{}/{bytes}", part.start, part.end - 1)
}

/// A line that does not occur in the file: random, as the file may hold anything else.
fn boundary() -> String {
    let mut bytes = [0; 16];
    // Without randomness the boundary is a fixed one, which still is improbable in weights.
    let _ = SystemRandom::new().fill(&mut bytes);
    format!("potluck-{}", HEXLOWER.encode(&bytes))
}

/// A part of a body.
enum Piece {
    Text(Bytes),
    Part(Range<u64>),
}

impl Piece {
    fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Part(part) => part.end - part.start,
        }
    }
}

fn multipart(parts: Vec<Range<u64>>, bytes: u64, boundary: &str) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(2 * parts.len() + 1);
    let mut lead = "";
    for part in parts {
        let range = content_range(&part, bytes);
        let head =
            format!("{lead}--{boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: {range}\r\n\r\n");
        pieces.push(Piece::Text(head.into()));
        pieces.push(Piece::Part(part));
        lead = "\r\n";
    }
    pieces.push(Piece::Text(format!("\r\n--{boundary}--\r\n").into()));
    pieces
}

/// The body: pieces one after another, read as fast as the other side takes them, and counted.
fn send(metrics: Arc<Metrics>, file: Arc<ModelFile>, opened: File, pieces: Vec<Piece>) -> Body {
    let start = (opened, pieces.into_iter(), 0..0);
    Body::from_stream(stream::try_unfold(start, move |(opened, mut pieces, mut part)| {
        let (metrics, file) = (metrics.clone(), file.clone());
        async move {
            while part.is_empty() {
                match pieces.next() {
                    None => return Ok(None),
                    Some(Piece::Text(text)) => return Ok(Some((text, (opened, pieces, part)))),
                    Some(Piece::Part(next)) => part = next,
                }
            }
            let step = part.start..part.end.min(part.start + STEP_BYTES);
            let (opened, bytes) = tokio::task::spawn_blocking({
                let step = step.clone();
                move || read_step(opened, step)
            })
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))?;
            metrics.weight_bytes.add(bytes.len() as u64);
            file.served.add(bytes.len() as u64);
            Ok::<_, io::Error>(Some((bytes, (opened, pieces, step.end..part.end))))
        }
    }))
}

fn read_step(mut file: File, step: Range<u64>) -> io::Result<(File, Bytes)> {
    let mut buffer = vec![0; (step.end - step.start) as usize];
    file.seek(SeekFrom::Start(step.start))?;
    file.read_exact(&mut buffer)?;
    Ok((file, buffer.into()))
}
