//! The door for a visitor with a room's link.

use leptos::prelude::*;

use crate::{
    common::{Icon, Symbol},
    route::{RoomAddress, Route},
    state::store,
};

/// Contribute, or just chat.
#[component]
pub fn JoinCard(
    /// The room that the link names.
    address: RoomAddress,
) -> impl IntoView {
    let store = store();
    let keyed = address.key.is_some();
    let address = StoredValue::new(address);
    let enter = move |lends: Option<u64>| store.enter(address.get_value(), lends);
    let elsewhere = move |_| {
        crate::browser::go("/");
        store.screen.route.set(Route::Door);
    };
    view! {
        <p class="door-invited">
            {if keyed { "You are invited to a table." } else { "The host of this table will be asked to let you in." }}
        </p>
        <div class="presses">
            <button
                type="button"
                class="press press-main"
                aria-describedby="contribute-hint"
                on:click=move |_| enter(Some(untrack(|| store.lend_by_default())))
            >
                <Icon symbol=Symbol::Plus />
                <span class="press-name">"Contribute GPU"</span>
                <span class="press-hint" aria-hidden="true" id="contribute-hint">"Lend memory of this device, and chat"</span>
            </button>
            <button
                type="button"
                class="press"
                aria-describedby="chat-hint"
                on:click=move |_| enter(None)
            >
                <Icon symbol=Symbol::Chats />
                <span class="press-name">"Just chat"</span>
                <span class="press-hint" aria-hidden="true" id="chat-hint">"Other devices do the work"</span>
            </button>
        </div>
        <button type="button" class="button button-quiet door-elsewhere" on:click=elsewhere>"Go to the front door"</button>
    }
}
