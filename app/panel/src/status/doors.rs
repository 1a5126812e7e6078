//! Who may come into a hosted room.

use potluck_plan::DeviceId;
use potluck_protocol::{Invite, LogEntry, UnixSeconds};
use serde::{Deserialize, Serialize};

/// Who may come into a hosted room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoorsReport {
    /// Invites, newest first.
    pub invites: Vec<InviteReport>,
    /// Devices that may not come in.
    pub banned: Vec<BannedReport>,
    /// What happened, by its last time.
    pub log: Vec<LogEntry>,
}

/// An invite that the host gave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteReport {
    /// Its terms.
    pub invite: Invite,
    /// Path and fragment of its link.
    pub link: String,
    /// Devices that came by it.
    pub used: u16,
    /// The host took it back.
    pub revoked: bool,
}

impl InviteReport {
    /// Whether it lets a new device in.
    #[must_use]
    pub fn state(&self, now: UnixSeconds) -> InviteState {
        match () {
            () if self.revoked => InviteState::Revoked,
            () if now > self.invite.expires => InviteState::Expired,
            () if self.used >= self.invite.uses => InviteState::UsedUp,
            () => InviteState::Open,
        }
    }
}

/// Whether an invite lets a new device in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteState {
    /// It does.
    Open,
    /// Its time is over.
    Expired,
    /// As many devices as it was for came by it.
    UsedUp,
    /// The host took it back.
    Revoked,
}

/// A device that may not come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BannedReport {
    /// Its key.
    pub device: DeviceId,
    /// The name it had.
    pub name: String,
}
