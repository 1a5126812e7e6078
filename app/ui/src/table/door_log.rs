//! The host's door log: who came in, who was refused, who was removed.

use leptos::prelude::*;
use potluck_panel::{LogEntry, LogEvent};
use potluck_text::{log_line, log_text, texts, visible_json};

use crate::{browser, state::store};

/// Lines that are shown; all are saved.
const SHOWN: usize = 100;

/// The log, and buttons that save it.
#[component]
pub(super) fn DoorLog() -> impl IntoView {
    let store = store();
    let log = Memo::new(move |_| {
        store.room.status.with(|status| status.doors.as_ref().map(|doors| doors.log.clone()).unwrap_or_default())
    });
    let lines = move || {
        let newest = log.get().into_iter().rev().take(SHOWN);
        newest.map(|entry| view! { <li class:log-bad=is_bad(&entry)><bdi>{log_line(&entry)}</bdi></li> }).collect_view()
    };
    let save_text = move |_| {
        let text = log.with_untracked(|log| log_text(log));
        browser::save_text("potluck-log.txt", "text/plain", &text);
    };
    let save_json = move |_| {
        // Plain data: this cannot fail.
        let json = visible_json(&log.with_untracked(serde_json::to_string_pretty).unwrap_or_default());
        browser::save_text("potluck-log.json", "application/json", &json);
    };
    view! {
        <Show when=move || log.with(|log| !log.is_empty())>
            <details class="given door-log">
                <summary><h3>{texts().door_log.title()}</h3></summary>
                <p class="hint">{texts().door_log.hint()}</p>
                <ul class="log-lines mono">{lines}</ul>
                <div class="row">
                    <button type="button" class="button" on:click=save_text>{texts().door_log.save_text()}</button>
                    <button type="button" class="button" on:click=save_json>{texts().door_log.save_json()}</button>
                </div>
            </details>
        </Show>
    }
}

/// Somebody was kept out, or should be.
fn is_bad(entry: &LogEntry) -> bool {
    match entry.event {
        LogEvent::CameIn(_) | LogEvent::Forgiven | LogEvent::LinkRenewed => false,
        LogEvent::Refused(_) | LogEvent::Removed | LogEvent::Banned | LogEvent::WrongNumbers => true,
    }
}
