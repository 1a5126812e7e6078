//! The body of a request, in bounds.

use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::ApiError;

/// Bytes of a body, at most: a room's longest conversation has 1 MiB of text, and programs send images beside it, which become notes.
pub(crate) const MAX_BODY: usize = 32 << 20;
/// A body of more bytes is large: few are read at a time.
const LARGE: usize = 1 << 20;
/// Large bodies that are read at a time.
const MAX_LARGE: usize = 4;
/// Values of a body, at most: each takes many times its bytes in memory.
const MAX_VALUES: usize = 200_000;
/// Bytes of an unwanted body that are read and dropped, at most. If the connection ended while the client still sends, it would be
/// reset, and the client could not read the reply.
const MAX_DROPPED: usize = 1 << 30;
/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads bodies.
pub(crate) struct Bodies {
    large: Semaphore,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { large: Semaphore::new(MAX_LARGE) }
    }
}

impl Bodies {
    /// The JSON of a body.
    ///
    /// # Errors
    /// It is too large, too slow, or no JSON.
    pub async fn json(&self, body: Body) -> Result<Value, ApiError> {
        timeout(PATIENCE, self.read(body)).await.map_err(|_| ApiError::TooSlow)?
    }

    async fn read(&self, body: Body) -> Result<Value, ApiError> {
        let mut chunks = body.into_data_stream();
        let mut bytes = Vec::new();
        let mut turn = None;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| ApiError::CutShort)?;
            let length = bytes.len() + chunk.len();
            if length > MAX_BODY {
                drop(bytes);
                skip(Body::from_stream(chunks)).await;
                return Err(ApiError::TooLarge(MAX_BODY as u64));
            }
            if length > LARGE && turn.is_none() {
                // The semaphore is never closed.
                turn = self.large.acquire().await.ok();
            }
            bytes.extend_from_slice(&chunk);
        }
        if bytes.len() <= LARGE {
            return parse(&bytes);
        }
        // Meanwhile other programs read their answers.
        let parsing = tokio::task::spawn_blocking(move || parse(&bytes));
        parsing.await.unwrap_or_else(|error| Err(ApiError::Failed(error.to_string())))
    }
}

fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    if values(bytes) > MAX_VALUES {
        return Err(ApiError::NotJson(format!("it has more than {MAX_VALUES} values")));
    }
    serde_json::from_slice(bytes).map_err(|error| ApiError::NotJson(error.to_string()))
}

/// At least the number of values in this JSON, not counting the first: each other one follows a comma or is the first in an array or
/// an object.
fn values(json: &[u8]) -> usize {
    let (mut is_text, mut is_escaped) = (false, false);
    let counts = |byte: &&u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' => return !is_text,
            _ => {}
        }
        false
    };
    json.iter().filter(counts).count()
}

/// Reads a body that nobody wants, so that the client gets to reading the reply.
pub(crate) async fn skip(body: Body) {
    let mut chunks = body.into_data_stream();
    let dropping = async {
        let mut dropped = 0;
        while let Some(Ok(chunk)) = chunks.next().await {
            dropped += chunk.len();
            if dropped > MAX_DROPPED {
                break;
            }
        }
    };
    // Whoever is too slow may not read the reply.
    _ = timeout(PATIENCE, dropping).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    async fn json(body: impl Into<Body>) -> Result<Value, ApiError> {
        Bodies::default().json(body.into()).await
    }

    #[tokio::test]
    async fn a_body_is_json_in_bounds() {
        assert_eq!(json(r#"{"a": 1}"#).await.unwrap()["a"], 1);
        for broken in ["", "{", "{\"a\": NaN}", "{} {}", "\u{feff}{}"] {
            assert!(matches!(json(broken).await, Err(ApiError::NotJson(_))), "{broken:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(json(deep).await, Err(ApiError::NotJson(_))), "nesting has a limit");
        let large = vec![b' '; MAX_BODY + 1];
        assert_eq!(json(large).await, Err(ApiError::TooLarge(MAX_BODY as u64)));
    }

    #[tokio::test]
    async fn a_body_may_be_large_but_not_have_values_without_end() {
        let text = "a,[{\\\"".repeat(MAX_VALUES);
        assert_eq!(json(format!("\"{text}\"")).await.unwrap().as_str().map(str::len), Some(5 * MAX_VALUES));
        let many = format!("[{}0]", "{\"\":0},".repeat(MAX_VALUES / 2));
        assert!(matches!(json(many).await, Err(ApiError::NotJson(_))));
        assert_eq!(values(br#"{"a": [1, "\",", {}]}"#), 5);
    }

    #[tokio::test]
    async fn few_large_bodies_are_read_at_a_time_and_small_ones_pass() {
        let bodies = Bodies::default();
        let _all = bodies.large.acquire_many(MAX_LARGE as u32).await.unwrap();
        let large = bodies.json(Body::from(vec![b' '; LARGE + 1]));
        tokio::pin!(large);
        assert!(futures::poll!(&mut large).is_pending());
        assert_eq!(bodies.json(Body::from("1")).await, Ok(Value::from(1)));
    }
}
