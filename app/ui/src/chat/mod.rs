//! The conversation.

mod answer_foot;
mod answer_view;
mod attached_files;
mod beside;
mod chat_list;
mod chat_row;
mod chats_page;
mod code_buttons;
mod composer;
mod context_meter;
pub(crate) mod highlight;
mod html_file;
pub(crate) mod markdown;
mod maths;
mod own_answers;
mod panel;
mod phase_line;
mod prose;
mod prose_view;
mod question_editor;
mod question_foot;
mod saved_answers;
mod shortcuts;
pub(crate) mod spoken;
pub(crate) mod too_long;
mod transfer_view;
mod turn_view;
mod version_steps;
mod waiting_list;

pub use chat_list::ChatList;
pub use chats_page::ChatsPage;
pub use own_answers::OwnAnswers;
pub use panel::ChatPanel;
pub use shortcuts::Shortcuts;
