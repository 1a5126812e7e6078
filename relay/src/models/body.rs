//! The bodies of downloads: parts of a file, alone or as `multipart/byteranges` (RFC 9110, section 14.6).

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use data_encoding::HEXLOWER;
use futures_util::stream;
use ring::rand::{SecureRandom, SystemRandom};

use super::content::Content;
use super::file::ModelFile;
use crate::metrics::Metrics;
use crate::quotas::Lease;

/// Bytes read from disk at once: what a download holds in memory while its receiver is slow.
const STEP_BYTES: u64 = 256 * 1024;

/// A piece of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the file.
    Part(Range<u64>),
    /// The head of a part, or the end.
    Text(Bytes),
}

impl Piece {
    /// Its length.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Part(part) => part.end - part.start,
            Self::Text(text) => text.len() as u64,
        }
    }
}

/// The pieces of a body with several parts of a file of `bytes` bytes, and its media type. `None` if the system has no random numbers:
/// the line between parts must not occur in the file, so nobody may know it before.
pub fn multipart(parts: Vec<Range<u64>>, bytes: u64) -> Option<(Vec<Piece>, String)> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).ok()?;
    let boundary = HEXLOWER.encode(&random);
    let mut pieces = Vec::with_capacity(2 * parts.len() + 1);
    for part in parts {
        let range = format!("bytes {}-{}/{bytes}", part.start, part.end - 1);
        let line = if pieces.is_empty() { "--" } else { "\r\n--" };
        let head =
            format!("{line}{boundary}\r\ncontent-type: application/octet-stream\r\ncontent-range: {range}\r\n\r\n");
        pieces.extend([Piece::Text(head.into()), Piece::Part(part)]);
    }
    pieces.push(Piece::Text(format!("\r\n--{boundary}--\r\n").into()));
    Some((pieces, format!("multipart/byteranges; boundary={boundary}")))
}

/// A body that reads the pieces as fast as the other side takes them, and counts the bytes. It breaks off if the file is written to
/// meanwhile: all its bytes are of one version.
pub fn stream(metrics: Arc<Metrics>, file: Arc<ModelFile>, opened: (Content, Lease), pieces: Vec<Piece>) -> Body {
    let pieces = VecDeque::from(pieces);
    Body::from_stream(stream::try_unfold((opened, pieces), move |((opened, lease), mut pieces)| {
        let (metrics, file) = (metrics.clone(), file.clone());
        async move {
            let part = match pieces.pop_front() {
                None => return Ok(None),
                Some(Piece::Text(text)) => return Ok(Some((text, ((opened, lease), pieces)))),
                Some(Piece::Part(part)) => part,
            };
            let step = part.start..part.end.min(part.start + STEP_BYTES);
            if step.end < part.end {
                pieces.push_front(Piece::Part(step.end..part.end));
            }
            let (opened, bytes) = read(opened, file.clone(), step).await?;
            metrics.weight_bytes.add(bytes.len() as u64);
            file.bytes_served.add(bytes.len() as u64);
            Ok::<_, io::Error>(Some((bytes, ((opened, lease), pieces))))
        }
    }))
}

/// Reads bytes of a file that is open, on a thread that may wait.
///
/// # Errors
/// They cannot be read, or are of another version.
pub async fn read(mut content: Content, file: Arc<ModelFile>, range: Range<u64>) -> io::Result<(Content, Bytes)> {
    let origin = file.origin.clone();
    let _permit = match &origin {
        Some(origin) => origin.permit().await,
        None => None,
    };
    let reading = tokio::task::spawn_blocking(move || content.read(&file, range).map(|bytes| (content, bytes)));
    reading.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
