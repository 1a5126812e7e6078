//! The relay: its HTTP endpoints that a node uses, and what goes out on its connection ([`RelaySender`]).

mod parts;
mod sender;

use potluck_plan::ModelId;
use potluck_relay_api::http::{ErrorBody, ModelEntry, ModelList, ModelState};
use potluck_relay_api::path;
use potluck_text::texts;
use thiserror::Error;

pub use self::sender::{HoldGuard, RelaySender};
use crate::platform::{HttpReply, HttpRequest, NetError, Platform};

/// Why a request to the relay failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RelayError {
    /// It cannot be reached.
    #[error(transparent)]
    Net(#[from] NetError),
    /// It refused; this is its own sentence.
    #[error("{0}")]
    Refused(String),
    /// The answer is not what the API says.
    #[error("{}", texts().node_relay.unreadable(.0))]
    Unreadable(String),
    /// It does not have the model.
    #[error("{}", no_such_model(.name, .served))]
    NoSuchModel {
        /// What was asked for.
        name: String,
        /// What it has.
        served: Vec<String>,
    },
    /// Its file cannot be used.
    #[error("The relay cannot serve \"{name}\": {message}")]
    BrokenModel {
        /// The model.
        name: String,
        /// One sentence.
        message: String,
    },
}

/// What a relay has, for somebody who asks for something else.
fn no_such_model(name: &str, served: &[String]) -> String {
    const NAMED: usize = 8;
    let texts = &texts().node_relay;
    let few = served[..served.len().min(NAMED)].join(", ");
    match served.len() {
        0 => texts.has_no_model(name),
        1..=NAMED => texts.has_other_models(name, few),
        many => texts.has_other_models(name, texts.and_more(few, many - NAMED)),
    }
}

/// The relay's own sentence from an answer that is not 2xx.
pub fn complaint(reply: &HttpReply) -> String {
    match serde_json::from_slice::<ErrorBody>(&reply.body) {
        Ok(body) => body.message,
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

    /// The absolute address of a path on the relay; an absolute address stays as it is.
    pub fn url(&self, path: &str) -> String {
        if path.contains("://") { path.to_owned() } else { format!("{}{path}", self.origin) }
    }

    /// True for an address of this relay.
    pub fn is_its(&self, url: &str) -> bool {
        url.strip_prefix(&self.origin).is_some_and(|path| path.is_empty() || path.starts_with('/'))
    }

    /// Name and port, as in its address.
    pub fn host(&self) -> &str {
        let host = self.origin.split_once("://").map_or(self.origin.as_str(), |(_, host)| host);
        host.split('/').next().unwrap_or(host)
    }

    /// The WebSocket address of a room.
    pub fn room_url(&self, room: &str) -> String {
        let socket = match self.origin.strip_prefix("https://") {
            Some(host) => format!("wss://{host}"),
            None => format!("ws://{}", self.origin.strip_prefix("http://").unwrap_or(&self.origin)),
        };
        format!("{socket}{}", path::room_socket(room))
    }

    /// All models that the relay serves.
    ///
    /// # Errors
    /// The relay cannot be reached.
    pub async fn models(&self) -> Result<Vec<ModelEntry>, RelayError> {
        let reply = self.platform.transport.request(HttpRequest::get(self.url(path::MODELS))).await?;
        Ok(parse::<ModelList>(&reply)?.models)
    }

    /// A model with its root. Waits while the relay is hashing, calling `waiting` with the bytes hashed and in all.
    ///
    /// # Errors
    /// The relay cannot be reached, or has no such model, or cannot serve it.
    pub async fn model(&self, name: &str, waiting: impl Fn(u64, u64)) -> Result<(ModelId, ModelEntry), RelayError> {
        loop {
            let models = self.models().await?;
            let served = || models.iter().map(|model| model.name.clone()).collect();
            let model = models.iter().find(|model| model.name == name);
            let model = model.ok_or_else(|| RelayError::NoSuchModel { name: name.to_owned(), served: served() })?;
            match &model.state {
                ModelState::Broken { message } => {
                    return Err(RelayError::BrokenModel { name: name.to_owned(), message: message.clone() });
                }
                ModelState::Hashing { done, total } => waiting(*done, *total),
                ModelState::Ready => {}
            }
            if let Some(root) = model.root.as_deref() {
                let root = ModelId::from_hex(root);
                let root = root.ok_or_else(|| RelayError::Unreadable("a model's root".into()))?;
                return Ok((root, model.clone()));
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
