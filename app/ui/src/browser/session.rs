//! The tab's session storage, which survives only a reload of this tab.

use super::window;
use crate::state::{Session, Stashed};

const SESSION: &str = "potluck.session";
const STASH: &str = "potluck.stash";
const DRAFT: &str = "potluck.draft";

fn storage() -> Option<web_sys::Storage> {
    window().session_storage().ok().flatten()
}

/// Loads the session.
#[must_use]
pub fn load_session() -> Session {
    let text = storage().and_then(|storage| storage.get_item(SESSION).ok().flatten());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Stores the session. False if storage is full or forbidden: then the tab cannot return after a reload.
pub fn keep_session(session: &Session) -> bool {
    let text = serde_json::to_string(session);
    storage().zip(text.ok()).is_some_and(|(storage, text)| storage.set_item(SESSION, &text).is_ok())
}

/// Stashes the unsaved conversations when the page goes away, because the database may be too slow. They replace those of
/// an earlier time, from which the page may have come back.
pub fn stash_conversations(stash: &[Stashed]) {
    if let (Some(storage), Ok(text)) = (storage(), serde_json::to_string(stash)) {
        let _refused = storage.set_item(STASH, &text);
    }
}

/// Takes back the stashed conversations.
#[must_use]
pub fn take_stash() -> Vec<Stashed> {
    let Some(storage) = storage() else { return Vec::new() };
    let text = storage.get_item(STASH).ok().flatten();
    let _refused = storage.remove_item(STASH);
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Stashes the composer's text when the page goes away, because the database may be too slow.
pub fn stash_draft(draft: Option<String>) {
    let Some(storage) = storage() else { return };
    let _refused = match draft {
        Some(draft) => storage.set_item(DRAFT, &draft),
        // One of an earlier time, from which the page has come back, is not the newest any more.
        None => storage.remove_item(DRAFT),
    };
}

/// Takes back the composer's text.
#[must_use]
pub fn take_draft() -> Option<String> {
    let storage = storage()?;
    let draft = storage.get_item(DRAFT).ok().flatten();
    let _refused = storage.remove_item(DRAFT);
    draft
}
