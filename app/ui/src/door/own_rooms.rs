//! Rooms of this browser whose tab is gone.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    common::{Icon, Symbol},
    state::{OwnRoom, store},
};

/// How often the browser is asked which rooms other tabs host, milliseconds.
const EVERY: u32 = 2_000;

/// "Your room … This room is not open in any tab", with a way back and a way to end it.
#[component]
pub fn OwnRooms() -> impl IntoView {
    let store = store();
    let asked = RwSignal::new(false);
    let link = store.node.link.with_value(Clone::clone);
    leptos::task::spawn_local(async move {
        while !asked.is_disposed() {
            store.own_rooms.found_elsewhere(link.held_rooms().await);
            asked.try_set(true);
            gloo_timers::future::TimeoutFuture::new(EVERY).await;
        }
    });
    // Until the browser has answered, a room may seem free that is not.
    let rooms = move || if asked.get() { store.own_rooms.free() } else { Vec::new() };
    view! {
        <ul class="own-rooms" aria-label=texts().door.own_rooms() aria-live="polite" aria-busy=move || (!asked.get()).to_string()>
            <For each=rooms key=|room| (room.id().to_owned(), room.title.clone()) let:room>
                <OwnRoomCard room />
            </For>
        </ul>
    }
}

#[component]
fn OwnRoomCard(room: OwnRoom) -> impl IntoView {
    let store = store();
    let name = if room.title.is_empty() {
        texts().door.own_room().to_owned()
    } else {
        texts().door.own_room_with(&room.title)
    };
    let room = StoredValue::new(room);
    view! {
        <li class="card own-room">
            <Icon symbol=Symbol::Pot />
            <p class="card-words">
                <strong>{name}</strong>
                <span class="hint">{texts().door.still_yours()}</span>
            </p>
            <div class="row">
                <button type="button" class="button button-main" on:click=move |_| store.open_again(room.get_value())>
                    {texts().door.open_again()}
                </button>
                <button type="button" class="button" on:click=move |_| room.with_value(|room| store.ask_to_end_room(room.id()))>
                    {texts().door.end()}
                </button>
            </div>
        </li>
    }
}
