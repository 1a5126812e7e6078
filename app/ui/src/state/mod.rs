//! The page's state. [`Store`] combines the parts that hold signals; the rest is plain data with pure functions.

mod bench;
mod chats;
mod conversation;
mod history;
mod notices;
mod own_rooms;
mod record;
mod room;
mod session;
mod settings;
mod store;
mod thinking;

pub use bench::{BenchState, Benching};
pub use chats::{Chats, Stashed};
pub use conversation::{Answer, AnswerState, Conversation, Heading, TakenBack, Turn, TurnId};
pub use history::History;
pub use notices::{Notices, ShownNotice};
pub use own_rooms::{OwnRoom, OwnRooms};
pub use record::{Record, Revision, Seen, Verdict, Write};
pub use room::{Opening, RoomState};
pub use session::{Part, Place, Session};
pub use settings::{Appearance, Settings};
pub use store::{DialogKind, StorageReport, Store, store};
pub use thinking::split_thinking;
