//! Wrappers for the browser features that the page uses, each in one place.

mod address;
mod confirm;
mod database;
mod device;
mod drawing;
mod files;
mod keys;
mod random;
mod save;
mod session;
mod timer;

pub use address::{at, current_route, focus_place, go, go_unless_there, home, replace};
pub use confirm::confirm;
pub use database::{
    StoredData, change_access_tokens, delete_conversation, forget_room, keep_conversation, keep_device_key, keep_draft,
    keep_room, keep_settings, load, relabel_conversation, stored_conversation, stored_room,
};
pub use device::{copy_text, device_kind, device_name, set_appearance, set_title, show_result, user_agent};
pub use drawing::{end_drawing, forget_plain_answer, is_hidden, note_drawing, plain_answers};
pub use files::{decode_text, file_bytes, files_of};
pub use keys::{focus_composer, is_composing};
pub use random::{hex, key_seed, seed};
pub use save::save_text;
pub use session::{keep_session, load_session, stash_conversations, stash_draft, take_draft, take_stash};
pub use timer::{local_day, now, window};
