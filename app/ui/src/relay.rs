//! The relay's lists, by HTTP.

use gloo_net::http::Request;
use serde::{Deserialize, de::DeserializeOwned};

/// A list could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// No answer at all.
    #[error("The relay does not answer. Check the network, then try again.")]
    Unreachable(String),
    /// An answer, but not a list.
    #[error("The relay answered with status {0}. Try again in a moment.")]
    Status(u16),
    /// An answer of another version.
    #[error("The relay's answer could not be read. Reload the page.")]
    Unreadable(String),
}

/// `GET /models`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Models {
    /// Those the relay serves.
    pub models: Vec<Model>,
}

/// A model the relay serves.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Model {
    /// Its name in addresses.
    pub name: String,
    /// Size of its file or files.
    pub bytes: u64,
    /// Whether it can be had now.
    pub state: ModelState,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// "Q4_K_M".
    pub quantization: Option<String>,
    /// Blocks.
    pub blocks: Option<u32>,
    /// Experts a block, 0 if dense.
    pub experts: Option<u32>,
    /// Experts a token uses.
    pub experts_used: Option<u32>,
    /// All parameters.
    pub parameters: Option<u64>,
    /// Parameters a token uses.
    #[serde(default)]
    pub active_parameters: Option<u64>,
    /// Positions it was trained for.
    pub context: Option<u32>,
    /// Bytes of state a position takes, all blocks together.
    #[serde(default)]
    pub kv_cache_bytes_per_position: Option<u64>,
    /// Licence as the file says.
    pub licence: Option<String>,
    /// Its name for people.
    pub title: Option<String>,
    /// It comes with the program and is there at once.
    #[serde(default)]
    pub embedded: bool,
}

impl Model {
    /// It comes with the program: the relay says so, or its file is one of the project's own.
    #[must_use]
    pub fn comes_along(&self) -> bool {
        self.embedded || self.name.starts_with("potluck")
    }
}

/// Whether a model can be had now.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum ModelState {
    /// Yes.
    Ready,
    /// Soon: its hashes are computed.
    Hashing {
        /// Bytes hashed.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// No.
    Broken {
        /// One sentence why.
        message: String,
    },
}

/// `GET /rooms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Rooms {
    /// Those their hosts left visible.
    pub rooms: Vec<Room>,
}

/// A room on everyone's door.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Room {
    /// Its id.
    pub id: String,
    /// What its host calls it.
    pub title: String,
    /// Devices in it.
    pub members: u32,
}

/// `GET /addresses`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Addresses {
    /// Where other devices reach the relay.
    pub urls: Vec<String>,
    /// It listens for this computer only.
    #[serde(default)]
    pub local_only: bool,
    /// Its certificate is its own: browsers warn once.
    #[serde(default)]
    pub self_signed: bool,
}

/// Models on the relay.
///
/// # Errors
/// [`RelayError`] when the list cannot be had.
pub async fn models() -> Result<Models, RelayError> {
    get("/models").await
}

/// Open rooms on the relay.
///
/// # Errors
/// [`RelayError`] when the list cannot be had.
pub async fn rooms() -> Result<Rooms, RelayError> {
    get("/rooms").await
}

/// Where other devices reach the relay.
///
/// # Errors
/// [`RelayError`] when the list cannot be had.
pub async fn addresses() -> Result<Addresses, RelayError> {
    get("/addresses").await
}

async fn get<T: DeserializeOwned>(path: &str) -> Result<T, RelayError> {
    let answer = Request::get(path).send().await.map_err(|error| RelayError::Unreachable(error.to_string()))?;
    if !answer.ok() {
        return Err(RelayError::Status(answer.status()));
    }
    answer.json().await.map_err(|error| RelayError::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_relay_list_reads() {
        let text = r#"{"group_bytes":65536,"models":[{"name":"a","bytes":7,"root":null,
            "state":{"phase":"hashing","done":1,"total":7},"architecture":"llama","quantization":"Q8_0","blocks":4,
            "experts":null,"experts_used":null,"parameters":9,"context":512,"licence":null,"title":null,"files":[]}]}"#;
        let models: Models = serde_json::from_str(text).unwrap();
        assert_eq!(models.models[0].state, ModelState::Hashing { done: 1, total: 7 });
        assert!(!models.models[0].embedded);
    }
}
