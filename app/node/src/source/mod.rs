//! Where a model's bytes come from: HTTP range requests, a file on this device, or the host's file through the room.

mod chunk_cache;
mod error;
mod evidence;
mod group_reader;
mod http;
mod local;
mod permits;
mod pieces;
mod reading;
mod version;

pub use crate::platform::Traffic;
pub use error::{Change, SourceError};
pub use http::{HttpFile, HttpSource};
pub use local::LocalSource;
pub(crate) use permits::{Permit, Permits};
pub use pieces::{GROUP_HASHES, PendingRequests, PieceSource};
pub use reading::{Expected, FetchPolicy, Source};
