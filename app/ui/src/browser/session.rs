//! The tab's own storage: it survives a reload of this tab and nothing else.

use super::window;
use crate::state::{Conversation, Session};

const SESSION: &str = "potluck.session";
const STASH: &str = "potluck.stash";

fn storage() -> Option<web_sys::Storage> {
    window().session_storage().ok().flatten()
}

/// What the tab remembers.
#[must_use]
pub fn load_session() -> Session {
    let text = storage().and_then(|storage| storage.get_item(SESSION).ok().flatten());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Remembers it.
pub fn keep_session(session: &Session) {
    if let (Some(storage), Ok(text)) = (storage(), serde_json::to_string(session)) {
        // A full or forbidden storage only costs the comfort of coming back.
        let _refused = storage.set_item(SESSION, &text);
    }
}

/// Puts the open conversation aside while the page goes away: the database may not be fast enough.
pub fn stash_conversation(conversation: &Conversation) {
    if let (Some(storage), Ok(text)) = (storage(), serde_json::to_string(conversation)) {
        let _refused = storage.set_item(STASH, &text);
    }
}

/// Takes back what was put aside.
#[must_use]
pub fn take_stash() -> Option<Conversation> {
    let storage = storage()?;
    let text = storage.get_item(STASH).ok().flatten()?;
    let _refused = storage.remove_item(STASH);
    serde_json::from_str(&text).ok()
}
