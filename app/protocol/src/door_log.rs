//! The door log that a host keeps. It is not a frame: others never get it.

use potluck_plan::DeviceId;
use serde::{Deserialize, Serialize};

use crate::{InviteId, UnixSeconds};

/// How a device came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// The room's own link.
    Link,
    /// An invite.
    Invite(InviteId),
    /// The public list of rooms, or an address without a key.
    List,
    /// It had been let in before.
    Before,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEvent {
    /// A device came in.
    CameIn(Way),
    /// A device was not let in: the sentence that it was told.
    Refused(String),
    /// The host removed a device. It may come back.
    Removed,
    /// The host banned a device.
    Banned,
    /// The host lets a banned device in again.
    Forgiven,
    /// A device sent numbers that cannot be right, and lost its work.
    WrongNumbers,
    /// The host renewed the room's link. No device's doing.
    LinkRenewed,
}

impl LogEvent {
    /// The kind of event, whatever its details.
    #[must_use]
    pub const fn kind(&self) -> LogKind {
        match self {
            Self::CameIn(_) => LogKind::CameIn,
            Self::Refused(_) => LogKind::Refused,
            Self::Removed => LogKind::Removed,
            Self::Banned => LogKind::Banned,
            Self::Forgiven => LogKind::Forgiven,
            Self::WrongNumbers => LogKind::WrongNumbers,
            Self::LinkRenewed => LogKind::LinkRenewed,
        }
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are those of LogEvent")]
pub enum LogKind {
    CameIn,
    Refused,
    Removed,
    Banned,
    Forgiven,
    WrongNumbers,
    LinkRenewed,
}

/// A line of the log: one device, one event, perhaps several times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When it happened first, by the host's clock.
    pub first: UnixSeconds,
    /// When it happened last.
    pub last: UnixSeconds,
    /// How often.
    pub times: u32,
    /// The device; none if it had proved no key.
    pub device: Option<DeviceId>,
    /// The name that it gave itself last.
    pub name: String,
    /// What happened.
    pub event: LogEvent,
}
