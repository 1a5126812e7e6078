//! Notices: what a person should read.

use serde::{Deserialize, Serialize};

use crate::{Connection, Status};

/// Something a person should read: what happened, why, what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// How bad.
    pub level: NoticeLevel,
    /// One sentence.
    pub sentence: String,
    /// The rest, for "Copy details".
    pub details: String,
    /// The condition that it reports, if a later status shows when that is over.
    pub condition: Option<Condition>,
}

/// A condition that a warning reports. Once it is over, the warning is no longer true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// The host is away.
    HostAway,
    /// This device's GPU is lost.
    GpuLost,
    /// The hosted file is being checked.
    FileChecked,
}

impl Condition {
    /// It is over, by a newer status.
    #[must_use]
    pub fn is_over(self, status: &Status) -> bool {
        match self {
            // While this tab itself is reconnecting, it does not know.
            Self::HostAway => {
                matches!(status.connection, Connection::Connected | Connection::Closed { .. } | Connection::Idle)
            }
            Self::GpuLost => status.device.webgpu,
            Self::FileChecked => status.model.is_some() || !status.role.coordinator,
        }
    }
}

/// How bad a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_over_once_the_status_says_so() {
        let mut status = Status { connection: Connection::WaitingForHost, ..Status::default() };
        status.role.coordinator = true;
        for condition in [Condition::HostAway, Condition::GpuLost, Condition::FileChecked] {
            assert!(!condition.is_over(&status), "{condition:?}");
        }
        status.connection = Connection::Reconnecting { attempt: 1, cause: String::new() };
        assert!(!Condition::HostAway.is_over(&status), "the host may be away still");
        status.connection = Connection::Connected;
        status.device.webgpu = true;
        status.role.coordinator = false;
        for condition in [Condition::HostAway, Condition::GpuLost, Condition::FileChecked] {
            assert!(condition.is_over(&status), "{condition:?}");
        }
    }
}
