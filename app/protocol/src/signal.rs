//! Frames that set up a direct connection between two devices.

use serde::{Deserialize, Serialize};

/// Most bytes of a description. A browser's has about one kilobyte, and 100 bytes more for each of its addresses.
pub const MAX_DESCRIPTION: usize = 16 << 10;

/// One attempt of two devices to connect. Each side numbers the attempts that it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId(pub u32);

/// A message about direct connections, which are WebRTC's. Descriptions are SDP (RFC 8866) with all candidates: they name the sender's
/// addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// From the host: whether members of its room may connect directly.
    Allowed(bool),
    /// The sender would like to connect.
    Offer(AttemptId, String),
    /// Answer to [`Signal::Offer`].
    Answer(AttemptId, String),
    /// The other answer: the sender does not connect.
    Declined(AttemptId),
}
