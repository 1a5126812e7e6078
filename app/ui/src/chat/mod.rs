//! The conversation.

mod answer_foot;
mod answer_view;
mod chat_list;
mod code_block;
mod composer;
mod markdown;
mod markdown_view;
mod panel;
mod phase_line;
mod shortcuts;
mod turn_view;

pub use chat_list::ChatList;
pub use panel::ChatPanel;
pub use shortcuts::Shortcuts;
