//! Who can see what.

use leptos::prelude::*;

/// States plainly who could read a chat.
#[component]
pub fn Privacy() -> impl IntoView {
    view! {
        <details class="fold">
            <summary>"Who can see what"</summary>
            <WhoSeesWhat />
        </details>
    }
}

/// The list itself.
#[component]
pub fn WhoSeesWhat() -> impl IntoView {
    view! {
            <ul class="plain">
                <li>"The host's device sees every question and answer in the room."</li>
                <li>
                    "Devices that lend their GPU get numbers from which text can be guessed. The one with the first layers gets the tokens."
                </li>
                <li>"Other guests see only their own conversations, and who is in the room."</li>
                <li>
                    "Messages are sealed between devices. The relay sees addresses, sizes and times, but it serves this page: use a page that you trust."
                </li>
                <li>"Your conversations are stored only in this browser. You can delete them at any time."</li>
            </ul>
    }
}
