//! Whether this device connects to others past the relay.

use leptos::prelude::*;
use potluck_panel::{DirectConnections, ToNode};
use potluck_text::texts;

use crate::state::store;

/// Chooses where direct connections may be made.
#[component]
pub fn ConnectionsChoice() -> impl IntoView {
    let store = store();
    let option = move |choice: DirectConnections, name: &'static str| {
        let chosen = move || store.settings.with(|settings| settings.direct == choice);
        let choose = move |_| {
            store.set(|settings| settings.direct = choice);
            store.send(ToNode::DirectConnections(choice));
        };
        view! {
            <label class="segment">
                <input type="radio" name="direct-connections" prop:checked=chosen on:change=choose />
                <span>{name}</span>
            </label>
        }
    };
    let words = &texts().connections;
    view! {
        <fieldset class="group">
            <legend>{words.heading()}</legend>
            <div class="segments">
                {option(DirectConnections::InPrivateNetworks, words.private())}
                {option(DirectConnections::Always, words.always())} {option(DirectConnections::Never, words.never())}
            </div>
            <p class="hint">{words.hint()}</p>
        </fieldset>
    }
}
