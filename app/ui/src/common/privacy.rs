//! Who can see what.

use leptos::prelude::*;

/// The plain truth about who could read a chat.
#[component]
pub fn Privacy() -> impl IntoView {
    view! {
        <details class="fold">
            <summary>"Who can see what"</summary>
            <ul class="plain">
                <li>"The host's device sees every question and answer in the room: it keeps them in order."</li>
                <li>
                    "Devices that lend their GPU get numbers, not text. Somebody who tries hard could guess text from them."
                </li>
                <li>"Frames are not sealed yet: the owner of the relay could read this chat."</li>
                <li>"Your conversations are kept in this browser only. Delete them at any time."</li>
            </ul>
        </details>
    }
}
