//! Who can see what.

use leptos::prelude::*;

/// States plainly who could read a chat.
#[component]
pub fn Privacy() -> impl IntoView {
    view! {
        <details class="fold">
            <summary>"Who can see what"</summary>
            <ul class="plain">
                <li>"The host's device sees every question and answer in the room."</li>
                <li>
                    "Devices that lend their GPU receive numbers, not text. A determined attacker could recover text from them."
                </li>
                <li>"Messages are not end-to-end encrypted yet. Whoever runs the relay could read this chat."</li>
                <li>"Your conversations are stored only in this browser. You can delete them at any time."</li>
            </ul>
        </details>
    }
}
