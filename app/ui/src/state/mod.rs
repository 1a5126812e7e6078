//! What the page remembers. Everything but [`Store`] is plain data with pure functions.

mod benching;
mod conversation;
mod history;
mod notices;
mod session;
mod settings;
mod store;
mod thinking;

pub use benching::Benching;
pub use conversation::{Answer, AnswerState, Conversation, Heading};
pub use history::History;
pub use notices::{Notices, Shown};
pub use session::{Part, Place, Session};
pub use settings::{Appearance, Settings};
pub use store::{Opening, Sheet, StorageReport, Store, store};
pub use thinking::split_thinking;
