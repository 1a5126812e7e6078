//! The door for a visitor with a room's link.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    common::{Icon, NameField, Symbol},
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
    let chat_only = address.is_for_chat();
    let room = address.id.clone();
    let hosted_here = move || store.own_rooms.is_elsewhere(&room);
    let address = StoredValue::new(address);
    let enter = move |lends: Option<u64>| store.enter(address.get_value(), lends);
    let elsewhere = move |_| {
        crate::browser::go("/");
        store.screen.route.set(Route::Door);
    };
    view! {
        <p class="door-invited">
            {if chat_only { texts().door.invited_to_chat() } else if keyed { texts().door.invited() } else { texts().door.asks() }}
        </p>
        <Show when=hosted_here>
            <p class="hint" role="status">{texts().door.hosted_elsewhere()}</p>
        </Show>
        <div class="presses">
            {(!chat_only).then(|| view! {
                <button
                    type="button"
                    class="press press-main"
                    aria-describedby="contribute-hint"
                    disabled=move || !store.can_lend()
                    on:click=move |_| enter(Some(untrack(|| store.lend_by_default())))
                >
                    <Icon symbol=Symbol::Plus />
                    <span class="press-name">{texts().own.contribute()}</span>
                    <span class="press-hint" aria-hidden="true" id="contribute-hint">
                        {move || if store.can_lend() { texts().door.lend_hint() } else { texts().door.no_gpu() }}
                    </span>
                </button>
            })}
            <button
                type="button"
                class="press"
                class:press-main=chat_only
                aria-describedby="chat-hint"
                on:click=move |_| enter(None)
            >
                <Icon symbol=Symbol::Chats />
                <span class="press-name">{texts().door.chat()}</span>
                <span class="press-hint" aria-hidden="true" id="chat-hint">{texts().door.chat_hint()}</span>
            </button>
        </div>
        <div class="door-called"><NameField /></div>
        <button type="button" class="button button-quiet door-elsewhere" on:click=elsewhere>{texts().connection.go_to_front()}</button>
    }
}
