//! Who can see what.

use leptos::prelude::*;
use potluck_text::texts;

/// States plainly who could read a chat.
#[component]
pub fn Privacy() -> impl IntoView {
    view! {
        <details class="fold">
            <summary>{texts().privacy.heading()}</summary>
            <WhoSeesWhat />
        </details>
    }
}

/// The list itself.
#[component]
pub fn WhoSeesWhat() -> impl IntoView {
    view! {
            <ul class="plain">
                <li>{texts().privacy.host()}</li>
                <li>
                    {texts().privacy.workers()}
                </li>
                <li>{texts().privacy.guests()}</li>
                <li>
                    {texts().privacy.relay()}
                </li>
                <li>{texts().privacy.browser()}</li>
            </ul>
    }
}
