//! What the driver needs of the world, as five small traits with a web and a native adapter each. Everything runs on one
//! thread, so nothing here is `Send`.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use potluck_engine::Staging;
use potluck_plan::{Millis, ModelId, WeightUnit};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::blob::{BlobKey, BlobName};

/// The adapters, and a source of randomness.
#[derive(Clone)]
pub struct Platform {
    /// The network.
    pub transport: Rc<dyn Transport>,
    /// Other nodes that can be reached without the network.
    pub neighbours: Rc<dyn Neighbours>,
    /// The cache of weights.
    pub store: Rc<dyn BlobStore>,
    /// Time.
    pub clock: Rc<dyn Clock>,
    /// Tasks.
    pub spawn: Rc<dyn Spawn>,
    /// Fills a slice with unpredictable bytes.
    pub random: fn(&mut [u8]),
}

impl Platform {
    /// Unpredictable bytes.
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.random)(&mut bytes);
        bytes
    }
}

/// Time on this device.
pub trait Clock {
    /// Milliseconds since some moment, never backwards.
    fn now(&self) -> Millis;

    /// Seconds since 1970.
    fn unix_seconds(&self) -> u64;

    /// Resolves after so many milliseconds.
    fn sleep(&self, millis: f64) -> LocalBoxFuture<'static, ()>;
}

/// Tasks on this thread.
pub trait Spawn {
    /// Runs a task until it ends by itself.
    fn spawn(&self, task: LocalBoxFuture<'static, ()>);
}

/// The network: WebSockets and HTTP requests.
pub trait Transport {
    /// Opens a WebSocket.
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>>;

    /// Makes a request and reads the whole answer. An answer of any status is an answer.
    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>>;
}

/// Nodes that this one can reach without the relay: tabs of one browser.
pub trait Neighbours {
    /// Says in which room this node is and by which route, and gives channels to those who say the same room, now and later,
    /// each with the route that it says; none where nothing of the kind exists. What they say is not checked here. This node
    /// is no longer met once the stream is dropped.
    fn meet(&self, room: &str, route: u32) -> LocalBoxStream<'static, (u32, Socket)>;
}

/// An open WebSocket, or a channel to a neighbour.
pub struct Socket {
    /// Sends; messages wait inside, bounded by what the relay lets through.
    pub sender: Rc<dyn SocketSender>,
    /// What arrives; ends when the connection does.
    pub messages: LocalBoxStream<'static, SocketMessage>,
}

/// The sending half of a [`Socket`].
pub trait SocketSender {
    /// Sends a message; dropped if the connection has ended (the receiving half tells).
    fn send(&self, message: SocketMessage);

    /// Ends the connection.
    fn close(&self);
}

/// One message of a [`Socket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// The relay's own words, or those of [`crate::direct`].
    Text(String),
    /// A frame, through the relay with its route.
    Binary(Vec<u8>),
}

/// What to do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read it.
    Get,
    /// Ask for its length.
    Head,
    /// Send JSON to it.
    Post,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// What to do.
    pub method: Method,
    /// Absolute address.
    pub url: String,
    /// Which bytes, or all.
    pub range: Option<Range<u64>>,
    /// JSON, for [`Method::Post`].
    pub body: Option<String>,
}

impl HttpRequest {
    /// Reads a whole resource.
    pub fn get(url: impl Into<String>) -> Self {
        Self { method: Method::Get, url: url.into(), range: None, body: None }
    }

    /// Reads some bytes of a resource.
    pub fn get_range(url: impl Into<String>, range: Range<u64>) -> Self {
        Self { range: Some(range), ..Self::get(url) }
    }

    /// Asks for a resource's length.
    pub fn head(url: impl Into<String>) -> Self {
        Self { method: Method::Head, ..Self::get(url) }
    }

    /// Sends JSON.
    pub fn post(url: impl Into<String>, body: String) -> Self {
        Self { method: Method::Post, body: Some(body), ..Self::get(url) }
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpReply {
    /// The status, 200 to 599.
    pub status: u16,
    /// `Content-Length`, if it may be read.
    pub length: Option<u64>,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// The content.
    pub body: Vec<u8>,
}

/// No answer, or no connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// The other side cannot be reached, or the connection broke.
    #[error("{host} cannot be reached ({reason}); check the network.")]
    Unreachable {
        /// Which host.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// An address that is none.
    #[error("\"{0}\" is not an address that can be opened.")]
    BadUrl(String),
}

impl NetError {
    /// Names the host of a URL.
    pub fn unreachable(url: &str, reason: impl ToString) -> Self {
        Self::Unreachable { host: host_of(url).to_owned(), reason: reason.to_string() }
    }
}

/// `relay.example:8787` of `https://relay.example:8787/models`.
pub fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// The cache: blobs that grow from the front, one folder a model. A blob is never sparse: an offset would cost quota.
pub trait BlobStore {
    /// The blobs of a model with the bytes each has.
    fn list(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<BlobName, u64>, StoreError>>;

    /// The units of a model with the bytes each has: a part of [`BlobStore::list`] that takes less time.
    fn units(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<WeightUnit, u64>, StoreError>>;

    /// The length of a blob, 0 if it is not there.
    fn len(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<u64, StoreError>>;

    /// Adds bytes to the end of a blob, which must be `offset` bytes long (0 makes it). After an error the blob is as long
    /// as before.
    fn append(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// Reads bytes; all of them or an error.
    fn read(&self, key: BlobKey, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, StoreError>>;

    /// Opens a blob to be read piece by piece. Nobody can write to it or delete it until the reader is dropped.
    fn reader(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<Rc<dyn BlobReader>, StoreError>>;

    /// Deletes one blob, if it is there.
    fn delete(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// Deletes a model's folder.
    fn delete_model(&self, model: ModelId) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// The models that have a folder.
    fn models(&self) -> LocalBoxFuture<'static, Result<Vec<ModelId>, StoreError>>;

    /// How full the storage is.
    fn usage(&self) -> LocalBoxFuture<'static, Result<Usage, StoreError>>;

    /// Waits until nobody else on this device (another tab of the profile) holds the lock of this name; held until the
    /// guard is dropped.
    fn lock(&self, name: String) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>>;

    /// Whether somebody waits for the lock of this name. False where nobody can tell.
    fn is_awaited(&self, name: String) -> LocalBoxFuture<'static, bool> {
        let _ = name;
        Box::pin(std::future::ready(false))
    }
}

/// An open blob; closes when dropped.
pub trait BlobReader {
    /// Reads `len` bytes from `offset` on straight into a staging buffer, to `at`; all of them or an error.
    fn read<'a>(
        &'a self,
        offset: u64,
        len: u64,
        staging: &'a mut Staging,
        at: u64,
    ) -> LocalBoxFuture<'a, Result<(), StoreError>>;
}

/// Holds a lock until it is dropped.
pub type LockGuard = Box<dyn Any>;

/// How full a storage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes used.
    pub used: u64,
    /// Bytes allowed.
    pub quota: u64,
    /// They will not be evicted.
    pub persistent: bool,
}

/// Why the storage did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum StoreError {
    /// The storage is full, or the browser allows no more.
    #[error("This browser's storage is full or refused: free some space in the settings of this site.")]
    Full,
    /// Fewer bytes were written than asked.
    #[error("The storage took {written} of {wanted} bytes: it is probably full.")]
    ShortWrite {
        /// Bytes written.
        written: u64,
        /// Bytes to write.
        wanted: u64,
    },
    /// Fewer bytes are there than should be.
    #[error("A stored piece of the model is shorter than it should be; delete the stored model and load it again.")]
    ShortRead,
    /// Somebody else has it open.
    #[error("The storage is in use by another tab of this browser: try again in a moment.")]
    Busy,
    /// There is no storage here (private browsing, or an old browser).
    #[error("This browser offers no storage for weights ({0}), so they are downloaded again next time.")]
    Unavailable(String),
    /// Anything else.
    #[error("The storage failed: {0}")]
    Failed(String),
}

/// A file on this device that its owner chose.
pub trait LocalFile {
    /// Its name.
    fn name(&self) -> String;

    /// Its length in bytes.
    fn len(&self) -> u64;

    /// True if it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes, all of them or an error of one sentence.
    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_host_only() {
        let error = NetError::unreachable("https://relay.example:8787/models/a?b#c", "timed out");
        assert_eq!(error.to_string(), "relay.example:8787 cannot be reached (timed out); check the network.");
        assert_eq!(host_of("localhost/x"), "localhost");
    }
}
