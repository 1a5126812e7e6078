//! Fetches the relay's lists over HTTP.

use gloo_net::http::Request;
pub use potluck_relay_api::http::{
    Addresses, ModelEntry as Model, ModelList as Models, ModelState, RoomEntry as Room, RoomList as Rooms,
};
use potluck_relay_api::path;
use potluck_text::texts;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::browser;

/// Why a list could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// No answer.
    #[error("{}", texts().relay.silent())]
    Unreachable(String),
    /// An answer with a status other than 2xx.
    #[error("{}", texts().relay.status(_0))]
    Status(u16),
    /// An answer that does not match the API.
    #[error("{}", texts().relay.unreadable())]
    Unreadable(String),
}

/// The models that the relay serves.
///
/// # Errors
/// [`RelayError`] if the list cannot be fetched.
pub async fn models() -> Result<Models, RelayError> {
    get(path::MODELS).await
}

/// The visible rooms on the relay.
///
/// # Errors
/// [`RelayError`] if the list cannot be fetched.
pub async fn rooms() -> Result<Rooms, RelayError> {
    get(path::ROOMS).await
}

/// The addresses at which other devices reach the relay.
///
/// # Errors
/// [`RelayError`] if the list cannot be fetched.
pub async fn addresses() -> Result<Addresses, RelayError> {
    get(path::ADDRESSES).await
}

async fn get<T: DeserializeOwned>(path: &str) -> Result<T, RelayError> {
    let answer =
        Request::get(&browser::at(path)).send().await.map_err(|error| RelayError::Unreachable(error.to_string()))?;
    if !answer.ok() {
        return Err(RelayError::Status(answer.status()));
    }
    answer.json().await.map_err(|error| RelayError::Unreadable(error.to_string()))
}

/// Where the relay has the hashes of the page's files.
const HASHES: &str = "/SHA256SUMS";
/// No list of hashes is longer.
const MAX_HASHES: usize = 256 << 10;

/// The release's hash as this relay says it: the SHA-256 of its list of the page's files; `None` if it has no list.
///
/// # Errors
/// [`RelayError`] if that is not known.
pub async fn release_hash() -> Result<Option<String>, RelayError> {
    let answer =
        Request::get(&browser::at(HASHES)).send().await.map_err(|error| RelayError::Unreachable(error.to_string()))?;
    match answer.status() {
        200 => {}
        404 => return Ok(None),
        status => return Err(RelayError::Status(status)),
    }
    let list = answer.binary().await.map_err(|error| RelayError::Unreadable(error.to_string()))?;
    let hash = || Sha256::digest(&list).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((list.len() <= MAX_HASHES).then(hash))
}
