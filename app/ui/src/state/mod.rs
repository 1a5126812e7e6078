//! The page's state. [`Store`] combines the parts that hold signals; the rest is plain data with pure functions.

mod answer_settings;
mod attached;
mod bench;
mod chats;
mod conversation;
mod diagnostics;
mod history;
mod notices;
mod own_rooms;
mod period;
mod record;
mod room;
mod saved_answers;
mod search;
mod session;
mod settings;
mod store;
mod transfer;
mod waiting;

pub use answer_settings::{AnswerSettings, Difference};
pub use attached::{AttachedFile, QuestionParts, encoding_of};
pub use bench::{BenchProgress, BenchState};
pub use chats::{Chats, Stashed};
pub use conversation::{
    Answer, AnswerState, ContextUse, Conversation, Heading, TakenBack, Turn, TurnId, TurnKey, Versioned, Versions,
    estimated_tokens,
};
pub use diagnostics::diagnostics;
pub use history::History;
pub use notices::{Notices, ShownNotice};
pub use own_rooms::{OwnRoom, OwnRooms};
pub use period::{Day, Period};
pub use record::{KnownRecord, PendingWrite, Record, Revision, WriteOutcome};
pub use room::{Opening, RoomState};
pub use saved_answers::SavedAnswers;
pub use search::{Search, Words, excerpt};
pub use session::{Part, Place, Session};
pub use settings::{Appearance, Settings};
pub use store::{DialogKind, StorageReport, Store, arrive, store};
pub use transfer::{FileForm, ImportError, Imported, LARGEST_FILE, read as read_file};
pub use waiting::Waiting;
