//! Notices: what a person should read.

use serde::{Deserialize, Serialize};

/// Something a person should read: what happened, why, what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// How bad.
    pub level: NoticeLevel,
    /// One sentence.
    pub sentence: String,
    /// The rest, for "Copy details".
    pub details: String,
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
