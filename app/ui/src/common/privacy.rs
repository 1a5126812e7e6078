//! Who can see what.

use leptos::prelude::*;
use potluck_panel::{Ends, Status};
use potluck_text::texts;

use crate::state::store;

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

/// What the device is called that hosts the room if its host leaves.
pub fn deputy_name(status: &Status) -> Option<String> {
    let member = status.peers.iter().find(|member| Some(member.peer) == status.deputy)?;
    Some(member.name.clone())
}

/// The list itself.
#[component]
pub fn WhoSeesWhat() -> impl IntoView {
    let store = store();
    let kept =
        move || store.room.status.with(|status| status.plan.as_ref().is_some_and(|plan| plan.ends == Ends::OnHost));
    let deputy = move || store.room.status.with(deputy_name);
    view! {
            <ul class="plain">
                <li>{texts().privacy.host()}</li>
                <li>
                    {move || if kept() { texts().privacy.workers_kept() } else { texts().privacy.workers() }}
                </li>
                {move || deputy().map(|name| view! { <li>{texts().deputy.sees(&name)}</li> })}
                <li>{texts().privacy.guests()}</li>
                <li>
                    {texts().privacy.relay()}
                </li>
                <li>{texts().privacy.addresses()}</li>
                <li>{texts().privacy.browser()}</li>
            </ul>
    }
}
