//! Chooses a room to help: one open on this relay, or any by its link.

use leptos::{ev, prelude::*};

use super::room_list::watch_rooms;
use crate::{
    common::{Dialog, Icon, Symbol},
    relay::Room,
    route::{RoomAddress, Route},
    state::{DialogKind, store},
    text::plural,
};

/// The dialog that lists rooms.
#[component]
pub fn RoomPicker() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Rooms title="Which table?">
            <Rooms />
            <ByLink />
        </Dialog>
    }
}

#[component]
fn Rooms() -> impl IntoView {
    let rooms = watch_rooms();
    let list = move || rooms.get().unwrap_or_default();
    view! {
        <Show
            when=move || !list().is_empty()
            fallback=|| view! {
                <p class="hint">
                    "No room is open on this relay yet. Once a host opens one, it appears here. Or paste a link."
                </p>
            }
        >
            <ul class="cards">
                <For each=list key=|room| room.id.clone() let:room>
                    <RoomCard room />
                </For>
            </ul>
        </Show>
    }
}

#[component]
fn RoomCard(room: Room) -> impl IntoView {
    let store = store();
    let title = if room.title.is_empty() { format!("Room {}", room.id) } else { room.title };
    let address = StoredValue::new(RoomAddress { id: room.id, key: None });
    let enter = move |_| store.enter(address.get_value(), Some(untrack(|| store.lend_by_default())));
    view! {
        <li class="card room-card">
            <Icon symbol=Symbol::Pot />
            <div class="card-words">
                <strong>{title}</strong>
                <span class="hint">{plural(room.members as usize, "device", "devices")}</span>
            </div>
            <button type="button" class="button button-main" on:click=enter>"Contribute"</button>
        </li>
    }
}

#[component]
fn ByLink() -> impl IntoView {
    let store = store();
    let text = RwSignal::new(String::new());
    let wrong = RwSignal::new(false);
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        match Route::parse_link(&text.get_untracked()) {
            Some(address) => store.enter(address, Some(untrack(|| store.lend_by_default()))),
            None => wrong.set(true),
        }
    };
    view! {
        <form class="by-link" on:submit=submit>
            <label class="labelled">
                <span>"Room link"</span>
                <input
                    class="field"
                    type="text"
                    autocomplete="off"
                    placeholder="https://…/r/…"
                    aria-describedby="link-wrong"
                    on:input=move |event| {
                        text.set(event_target_value(&event));
                        wrong.set(false);
                    }
                />
            </label>
            <button type="submit" class="button">"Join"</button>
            <p class="field-wrong" id="link-wrong" aria-live="polite">
                {move || wrong.get().then_some("This is not a room link. Room links look like https://…/r/abcd#key.")}
            </p>
        </form>
    }
}
