//! The room: the round table with its seats, and the chat beside it.

mod admit;
mod credit;
mod deputy;
mod door_log;
mod experts;
mod failure;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fixtures;
pub(crate) mod geometry;
mod holder_lights;
mod hops;
mod invite;
mod invites;
mod leave;
mod line;
mod page;
mod panel;
mod programs;
mod put_out;
mod sealed;
mod seat_list;
mod seat_row;
mod share;
pub(crate) mod summary;
pub(crate) mod svg;
mod timeline;
pub(crate) mod token_path;
mod waiting;
mod why;

pub use failure::{Failure, failure};
pub use invite::Invite;
pub use leave::Leave;
pub use page::RoomPage;
pub use sealed::Sealed;
pub use summary::why_not_yet;
