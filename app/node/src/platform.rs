//! What the driver needs of the world: small traits, each with a web and a native adapter. Everything runs on one thread, so
//! nothing here is `Send`.

mod access;
mod http;
mod interceptor;

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use potluck_engine::StagingPart;
use potluck_plan::{Millis, ModelId, WeightUnit};
use potluck_protocol::server_of;
use potluck_text::texts;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::access::Access;
pub use self::http::{Arrived, Content, HttpReply, HttpRequest, Method, OpenedReply, Traffic, Version};
pub use self::interceptor::{ComputeInterceptor, Direct, Measured, Receiver, WorkPath};
use crate::blob::{BlobKey, BlobName};
use crate::direct::ConnectionId;
use crate::links::leads_to_the_internet;

/// The adapters, and a source of randomness.
#[derive(Clone)]
pub struct Platform {
    /// The network.
    pub transport: Rc<dyn Transport>,
    /// This device's access tokens.
    pub access: Access,
    /// Finds other tabs of this browser.
    pub same_browser: Rc<dyn SameBrowser>,
    /// Connects to other devices.
    pub connections: Rc<dyn PeerConnections>,
    /// The cache of models.
    pub store: Rc<dyn BlobStore>,
    /// What stands between the node and its engines.
    pub compute: Rc<dyn ComputeInterceptor>,
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
    /// Milliseconds since some fixed moment; monotonic.
    fn now(&self) -> Millis;

    /// Seconds since 1970.
    fn unix_seconds(&self) -> u64;

    /// Resolves after `millis` milliseconds.
    fn sleep(&self, millis: f64) -> LocalBoxFuture<'static, ()>;
}

/// Tasks on this thread.
pub trait Spawn {
    /// Runs a task to its end.
    fn spawn(&self, task: LocalBoxFuture<'static, ()>);
}

/// The network: WebSockets and HTTP requests.
pub trait Transport {
    /// Opens a WebSocket.
    ///
    /// # Errors
    /// The server cannot be reached.
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>>;

    /// Whether this device may fetch from an address that somebody else chose, such as the host of a room that it is in.
    fn may_follow(&self, url: &str) -> bool {
        leads_to_the_internet(url)
    }

    /// Makes a request and reads the whole reply, whatever its status, unless it is longer than [`HttpRequest::limit`].
    /// Dropping the future may end the download.
    ///
    /// # Errors
    /// The server cannot be reached, or the connection broke.
    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>>;

    /// Makes a request and reads the content of its reply as it is asked for: a part of a file may be longer than memory. A reply
    /// that is no success has no content here. The request does not count what arrives.
    ///
    /// # Errors
    /// The server cannot be reached.
    fn open(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<OpenedReply, NetError>> {
        let reply = self.request(HttpRequest { arrived: Traffic::default(), ..request });
        Box::pin(async move {
            let mut reply = reply.await?;
            let content: Box<dyn Content> = Box::new(Arrived::new(std::mem::take(&mut reply.body)));
            Ok((reply, content))
        })
    }

    /// True if the content of an opened reply is fetched only about as fast as it is read. Otherwise all of it may come at once, and
    /// lie in memory.
    fn holds_content_back(&self) -> bool {
        true
    }

    /// True if this network hides the replies of servers that do not name this page: then a refusal looks like a broken connection.
    fn hides_refusals(&self) -> bool {
        false
    }
}

/// Same-browser discovery: finds nodes in other tabs of this browser, which can be reached without the relay.
pub trait SameBrowser {
    /// Announces this node's room and route, and yields a channel to each node that announces the same room, now and later,
    /// with the route it claims. Claims are not verified here. Empty where discovery does not exist. Dropping the stream
    /// withdraws the announcement.
    fn discover(&self, room: &str, route: u32) -> LocalBoxStream<'static, (u32, Socket)>;
}

/// Connections to other devices, WebRTC's. Descriptions are SDP with all candidates; they go to the other device and come from it by
/// another way.
pub trait PeerConnections {
    /// What happens to connections from now on. Earlier ones are closed. Empty where there are none.
    fn events(&self) -> LocalBoxStream<'static, ConnectionEvent>;

    /// Begins a connection.
    fn offer(&self, connection: ConnectionId);

    /// Begins a connection that another device offers with this description.
    fn answer(&self, connection: ConnectionId, offer: String);

    /// The other device answered the offer with this description.
    fn accept(&self, connection: ConnectionId, answer: String);

    /// Closes a connection, also one that is not open yet. No event follows.
    fn close(&self, connection: ConnectionId);
}

/// What happens to a connection.
pub enum ConnectionEvent {
    /// This is the description of this side.
    Described(ConnectionId, String),
    /// The channel is open.
    Opened(ConnectionId, Socket),
    /// It failed, or the other side closed it.
    Ended(ConnectionId),
}

/// No connections to other devices.
pub struct NoConnections;

impl PeerConnections for NoConnections {
    fn events(&self) -> LocalBoxStream<'static, ConnectionEvent> {
        Box::pin(futures::stream::empty())
    }

    fn offer(&self, _: ConnectionId) {}

    fn answer(&self, _: ConnectionId, _: String) {}

    fn accept(&self, _: ConnectionId, _: String) {}

    fn close(&self, _: ConnectionId) {}
}

/// An open WebSocket, or a channel to another tab of this browser or to another device.
pub struct Socket {
    /// Sends messages. They queue inside, limited by what the relay lets through.
    pub sender: Rc<dyn SocketSender>,
    /// Messages that arrive; ends with the connection.
    pub messages: LocalBoxStream<'static, SocketMessage>,
}

/// The sending half of a [`Socket`].
pub trait SocketSender {
    /// Sends a message. Dropped if the connection has ended, which the receiving half reports.
    fn send(&self, message: SocketMessage);

    /// Ends the connection.
    fn close(&self);
}

/// One message of a [`Socket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// A control message of the relay or of [`crate::direct`].
    Text(String),
    /// A frame, through the relay with its route.
    Binary(Vec<u8>),
}

/// Why there is no reply or no connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// The other side cannot be reached, or the connection broke.
    #[error("{host} cannot be reached ({reason}). Check the network.")]
    Unreachable {
        /// The host.
        host: String,
        /// The reason that the system gives.
        reason: String,
    },
    /// The relay answers requests, but a socket to it does not open.
    #[error("{host} answers, but this browser cannot open a live connection (WebSocket) to it.")]
    SocketsRefused {
        /// The host.
        host: String,
    },
    /// Something other than the intended relay answers: trying again would not help.
    #[error("{}", texts().node_relay.no_relay(.host, .reason))]
    NoRelay {
        /// The host.
        host: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The URL is not valid.
    #[error("\"{0}\" is not a valid address.")]
    BadUrl(String),
}

impl NetError {
    /// The host of `url` cannot be reached.
    pub fn unreachable(url: &str, reason: impl ToString) -> Self {
        Self::Unreachable { host: host_of(url).to_owned(), reason: reason.to_string() }
    }

    /// What answers at `url` is not the relay that is meant.
    pub fn no_relay(url: &str, reason: impl ToString) -> Self {
        Self::NoRelay { host: host_of(url).to_owned(), reason: reason.to_string() }
    }

    /// The reason alone.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Unreachable { reason, .. } | Self::NoRelay { reason, .. } => reason,
            Self::SocketsRefused { .. } => "it answers, but no connection to it opens",
            Self::BadUrl(_) => "its address is not valid",
        }
    }
}

/// `relay.example:8787` of `https://relay.example:8787/models`. Without the user name and password that may precede it.
pub fn host_of(url: &str) -> &str {
    server_of(url)
}

/// The cache: blobs that grow at their end, in one folder per model. A blob is never sparse, because gaps would use quota.
///
/// # Errors
/// Every method fails with [`StoreError`] if the storage does.
pub trait BlobStore {
    /// The blobs of a model and their lengths.
    fn list(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<BlobName, u64>, StoreError>>;

    /// The cached units of a model and their lengths: the part of [`BlobStore::list`] that is fast.
    fn units(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<WeightUnit, u64>, StoreError>>;

    /// The length of a blob; 0 if it does not exist.
    fn len(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<u64, StoreError>>;

    /// Appends bytes to a blob, which must be `offset` bytes long (0 creates it). After an error the blob is as long as
    /// before.
    fn append(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// Reads exactly `len` bytes.
    fn read(&self, key: BlobKey, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, StoreError>>;

    /// Opens a blob to read it piece by piece. It cannot be written or deleted until the reader is dropped.
    fn reader(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<Rc<dyn BlobReader>, StoreError>>;

    /// Deletes a blob, if it exists.
    fn delete(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// Deletes a model's folder.
    fn delete_model(&self, model: ModelId) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// The models that have a folder.
    fn models(&self) -> LocalBoxFuture<'static, Result<Vec<ModelId>, StoreError>>;

    /// How much of the storage is used.
    fn usage(&self) -> LocalBoxFuture<'static, Result<Usage, StoreError>>;

    /// Waits for the lock of this name, which is shared with other tabs of the browser profile. Held until the guard is
    /// dropped.
    fn lock(&self, name: String) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>>;

    /// True if somebody waits for the lock of this name; false if that cannot be known.
    fn is_awaited(&self, name: String) -> LocalBoxFuture<'static, bool> {
        let _ = name;
        Box::pin(std::future::ready(false))
    }
}

/// An open blob; closed on drop.
pub trait BlobReader {
    /// Begins to read bytes from `offset` on into a part of a staging buffer, as many as it has. Natively that goes on in
    /// another thread; in a browser it is done when this returns, if this worker can read the file.
    ///
    /// # Errors
    /// Not all bytes could be read.
    fn read(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), StoreError>>;
}

/// Holds a lock until it is dropped.
pub type LockGuard = Box<dyn Any>;

/// How much of a storage is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes used.
    pub used: u64,
    /// Bytes allowed.
    pub quota: u64,
    /// The browser will not evict them.
    pub persistent: bool,
}

/// Why the storage failed.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum StoreError {
    /// The storage is full, or the browser allows no more.
    #[error("The storage for models is full, or refused: free some space.")]
    Full,
    /// Fewer bytes were written than requested.
    #[error("The storage took {written} of {wanted} bytes: it is probably full.")]
    ShortWrite {
        /// Bytes written.
        written: u64,
        /// Bytes to write.
        wanted: u64,
    },
    /// Fewer bytes are stored than expected.
    #[error("A stored piece of the model is incomplete. Delete the stored model and load it again.")]
    ShortRead,
    /// Another tab has the file open.
    #[error("Another Potluck on this device uses the storage. Try again in a moment.")]
    Busy,
    /// There is no storage (private browsing, or an old browser).
    #[error("There is no storage for weights here ({0}), so they are downloaded again next time.")]
    Unavailable(String),
    /// Any other error.
    #[error("The storage failed: {0}")]
    Failed(String),
}

/// A file on this device that its owner selected.
pub trait LocalFile {
    /// Its name.
    fn name(&self) -> String;

    /// Its length in bytes.
    fn len(&self) -> u64;

    /// When it was changed last, in milliseconds since 1970, if that is known.
    fn modified(&self) -> Option<u64> {
        None
    }

    /// True if it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads exactly `len` bytes.
    ///
    /// # Errors
    /// A sentence on why they cannot be read.
    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>>;

    /// True if [`LocalFile::read_into`] reads in another thread, several at a time.
    fn reads_beside(&self) -> bool {
        false
    }

    /// Begins to read bytes from `offset` on into a part of a staging buffer, as many as it has.
    ///
    /// # Errors
    /// A sentence on why they cannot be read.
    fn read_into(&self, offset: u64, mut part: StagingPart) -> LocalBoxFuture<'static, Result<(), String>> {
        let read = self.read(offset, part.len());
        Box::pin(async move {
            part.write(0, &read.await?);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_host_only() {
        let error = NetError::unreachable("https://relay.example:8787/models/a?b#c", "timed out");
        assert_eq!(error.to_string(), "relay.example:8787 cannot be reached (timed out). Check the network.");
        assert_eq!(host_of("localhost/x"), "localhost");
    }
}
