//! The body of a request, in bounds.

use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::ApiError;

/// Bytes of a body, at most: a room's longest conversation has 1 MiB of text, and programs send images beside it, which become notes.
pub(crate) const MAX_BODY: usize = 32 << 20;
/// Of a larger body, this much is read and dropped: a connection that ends while the client sends resets, and the client never reads why.
const MAX_DROPPED: usize = 1 << 30;
/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The JSON of a body.
///
/// # Errors
/// It is too large, too slow, or no JSON.
pub(crate) async fn json(body: Body) -> Result<Value, ApiError> {
    let bytes = timeout(PATIENCE, read(body)).await.map_err(|_| ApiError::TooSlow)??;
    serde_json::from_slice(&bytes).map_err(|error| ApiError::NotJson(error.to_string()))
}

async fn read(body: Body) -> Result<Vec<u8>, ApiError> {
    let mut chunks = body.into_data_stream();
    let (mut bytes, mut dropped) = (Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| ApiError::CutShort)?;
        if dropped == 0 && bytes.len() + chunk.len() <= MAX_BODY {
            bytes.extend_from_slice(&chunk);
            continue;
        }
        dropped += bytes.len() + chunk.len();
        bytes = Vec::new();
        if dropped > MAX_DROPPED {
            break;
        }
    }
    if dropped > 0 { Err(ApiError::TooLarge(MAX_BODY as u64)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[tokio::test]
    async fn a_body_is_json_in_bounds() {
        assert_eq!(json(Body::from(r#"{"a": 1}"#)).await.unwrap()["a"], 1);
        for broken in ["", "{", "{\"a\": NaN}", "{} {}", "\u{feff}{}"] {
            assert!(matches!(json(Body::from(broken)).await, Err(ApiError::NotJson(_))), "{broken:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(json(Body::from(deep)).await, Err(ApiError::NotJson(_))), "nesting has a limit");
        let large = vec![b' '; MAX_BODY + 1];
        assert_eq!(json(Body::from(large)).await, Err(ApiError::TooLarge(MAX_BODY as u64)));
    }
}
