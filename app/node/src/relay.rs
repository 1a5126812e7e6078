//! The relay's HTTP forms that a node uses (`relay/src/protocol.rs`, `relay/src/models`).

use potluck_plan::ModelId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::platform::{HttpReply, HttpRequest, NetError, Platform};

/// `GET /models`.
#[derive(Clone, Debug, Deserialize)]
pub struct ModelList {
    /// The relay's models.
    pub models: Vec<RelayModel>,
}

/// A model of the relay.
#[derive(Clone, Debug, Deserialize)]
pub struct RelayModel {
    /// Its name, as in `ModelSource::Relay`.
    pub name: String,
    /// Bytes of all its files.
    pub bytes: u64,
    /// BLAKE3 root, 64 hexadecimal digits; absent while the relay is hashing.
    pub root: Option<String>,
    /// Whether it can be used yet.
    pub state: RelayModelState,
    /// Its files, in the order of a split.
    pub files: Vec<RelayFile>,
}

/// Whether a model of the relay can be used.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum RelayModelState {
    /// Yes.
    Ready,
    /// Not yet.
    Hashing {
        /// Bytes hashed.
        done: u64,
        /// Bytes to hash.
        total: u64,
    },
    /// No.
    Broken {
        /// One sentence.
        message: String,
    },
}

/// A file of a model of the relay.
#[derive(Clone, Debug, Deserialize)]
pub struct RelayFile {
    /// Path on the relay.
    pub url: String,
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 root of the file.
    pub root: Option<String>,
    /// Path of the group hashes.
    #[serde(default)]
    pub groups: Option<String>,
}

/// A room that was opened with `POST /rooms`.
#[derive(Clone, Debug, Deserialize)]
pub struct NewRoom {
    /// Its id.
    pub id: String,
    /// The secret that may change its listing.
    pub owner: String,
}

#[derive(Serialize)]
struct RoomWish<'a> {
    title: &'a str,
    visible: bool,
}

#[derive(Deserialize)]
struct RelayComplaint {
    message: String,
}

/// Why the relay did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RelayError {
    /// It cannot be reached.
    #[error(transparent)]
    Net(#[from] NetError),
    /// It said no, in its own sentence.
    #[error("{0}")]
    Refused(String),
    /// An answer that is not of the relay's protocol.
    #[error("The relay's answer cannot be read ({0}); relay and page are of different versions, so reload.")]
    Unreadable(String),
    /// It does not have the model.
    #[error("The relay has no model called \"{0}\" any more; choose another one.")]
    NoSuchModel(String),
    /// Its file cannot be used.
    #[error("The relay cannot serve \"{name}\": {message}")]
    BrokenModel {
        /// The model.
        name: String,
        /// One sentence.
        message: String,
    },
}

/// The relay's sentence of an answer that is not 2xx.
pub fn complaint(reply: &HttpReply) -> String {
    match serde_json::from_slice::<RelayComplaint>(&reply.body) {
        Ok(complaint) => complaint.message,
        Err(_) => format!("The server answered with status {}.", reply.status),
    }
}

/// A relay, by its origin.
#[derive(Clone)]
pub struct Relay {
    platform: Platform,
    origin: String,
}

impl Relay {
    /// The relay at an origin, `http://localhost:8787`.
    pub fn new(platform: Platform, origin: &str) -> Self {
        Self { platform, origin: origin.trim_end_matches('/').to_owned() }
    }

    /// A path as an absolute address.
    pub fn url(&self, path: &str) -> String {
        if path.contains("://") { path.to_owned() } else { format!("{}{path}", self.origin) }
    }

    /// The WebSocket address of a room. `create` makes the room if the relay has forgotten it.
    pub fn room_url(&self, room: &str, create: bool) -> String {
        let socket = match self.origin.strip_prefix("https://") {
            Some(host) => format!("wss://{host}"),
            None => format!("ws://{}", self.origin.strip_prefix("http://").unwrap_or(&self.origin)),
        };
        format!("{socket}/rooms/{room}{}", if create { "?create=1" } else { "" })
    }

    /// Opens a room.
    ///
    /// # Errors
    /// The relay cannot be reached, or is full.
    pub async fn open_room(&self, title: &str, visible: bool) -> Result<NewRoom, RelayError> {
        let wish = RoomWish { title, visible };
        let body = serde_json::to_string(&wish).map_err(|error| RelayError::Unreadable(error.to_string()))?;
        let reply = self.platform.transport.request(HttpRequest::post(self.url("/rooms"), body)).await?;
        parse(&reply)
    }

    /// All models of the relay.
    ///
    /// # Errors
    /// The relay cannot be reached.
    pub async fn models(&self) -> Result<Vec<RelayModel>, RelayError> {
        let reply = self.platform.transport.request(HttpRequest::get(self.url("/models"))).await?;
        Ok(parse::<ModelList>(&reply)?.models)
    }

    /// A model with its root; waits while the relay is hashing, and tells `waiting` how far that is.
    ///
    /// # Errors
    /// The relay cannot be reached, or has no such model, or cannot serve it.
    pub async fn model(&self, name: &str, waiting: impl Fn(u64, u64)) -> Result<(ModelId, RelayModel), RelayError> {
        loop {
            let model = self.models().await?.into_iter().find(|model| model.name == name);
            let model = model.ok_or_else(|| RelayError::NoSuchModel(name.to_owned()))?;
            match &model.state {
                RelayModelState::Broken { message } => {
                    return Err(RelayError::BrokenModel { name: name.to_owned(), message: message.clone() });
                }
                RelayModelState::Hashing { done, total } => waiting(*done, *total),
                RelayModelState::Ready => {}
            }
            if let Some(root) = model.root.as_deref() {
                let root = ModelId::from_hex(root);
                return Ok((root.ok_or_else(|| RelayError::Unreadable("a model's root".into()))?, model));
            }
            self.platform.clock.sleep(500.0).await;
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(reply: &HttpReply) -> Result<T, RelayError> {
    if !(200..300).contains(&reply.status) {
        return Err(RelayError::Refused(complaint(reply)));
    }
    serde_json::from_slice(&reply.body).map_err(|error| RelayError::Unreadable(error.to_string()))
}
