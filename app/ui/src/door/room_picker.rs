//! Chooses a room to help: one open on this relay, or any by its link.

use leptos::{ev, prelude::*};
use potluck_text::{strangers_title, texts};

use super::room_list::watch_rooms;
use crate::{
    common::{Dialog, Icon, NameField, Symbol},
    relay::Room,
    route::{RoomAddress, Route},
    state::{DialogKind, Store, store},
};

/// Letters of a title that are shown.
const TITLE_LETTERS: usize = 60;

/// What tells rooms apart, whatever their titles: the beginning of the id, which follows from the key of the room's owner.
fn room_tag(id: &str) -> String {
    let letters: String = id.chars().take(8).collect();
    match letters.char_indices().nth(4) {
        Some((middle, _)) => format!("{}-{}", &letters[..middle], &letters[middle..]),
        None => letters,
    }
}

/// Enters a room, and lends this device unless the link is one to chat.
fn enter(store: Store, address: RoomAddress) {
    let lends = (!address.is_for_chat()).then(|| untrack(|| store.lend_by_default()));
    store.enter(address, lends);
}

/// The label of the press that enters: it says whether this device lends its GPU.
fn entry_label(can_lend: bool, is_for_chat: bool) -> &'static str {
    if can_lend && !is_for_chat { texts().own.contribute() } else { texts().door.chat() }
}

/// The dialog that lists rooms.
#[component]
pub fn RoomPicker() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Rooms title=texts().rooms.title()>
            <Rooms />
            <ByLink />
            <NameField />
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
                    {texts().rooms.none()}
                </p>
            }
        >
            <p class="hint">{texts().rooms.strangers()}</p>
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
    let title = texts().rooms.called(strangers_title(&room.title, TITLE_LETTERS));
    let tag = texts().rooms.tag(room.members, room_tag(&room.id));
    let address = StoredValue::new(RoomAddress { id: room.id, key: None });
    view! {
        <li class="card room-card">
            <Icon symbol=Symbol::Pot />
            <div class="card-words">
                {(!room.title.is_empty()).then(|| view! { <strong><bdi>{title}</bdi></strong> })}
                <span class="hint">{tag}</span>
            </div>
            <button type="button" class="button button-main" on:click=move |_| enter(store, address.get_value())>
                {move || entry_label(store.can_lend(), false)}
            </button>
        </li>
    }
}

#[component]
fn ByLink() -> impl IntoView {
    let store = store();
    let text = RwSignal::new(String::new());
    let wrong = RwSignal::new(false);
    let is_for_chat = move || text.with(|text| Route::parse_link(text).is_some_and(|address| address.is_for_chat()));
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        match Route::parse_link(&text.get_untracked()) {
            Some(address) => enter(store, address),
            None => wrong.set(true),
        }
    };
    view! {
        <form class="by-link" on:submit=submit>
            <label class="labelled">
                <span>{texts().rooms.link()}</span>
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
            <button type="submit" class="button">{move || entry_label(store.can_lend(), is_for_chat())}</button>
            <p class="field-wrong" id="link-wrong" aria-live="polite">
                {move || wrong.get().then_some(texts().rooms.no_link())}
            </p>
        </form>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_says_whether_it_lends_the_gpu() {
        assert_eq!(entry_label(true, false), "Contribute GPU", "as the press of an opened link says");
        assert_eq!(entry_label(true, true), "Just chat", "an invite to chat");
        assert_eq!(entry_label(false, false), "Just chat", "a browser without a GPU");
    }

    #[test]
    fn rooms_of_one_title_are_told_apart_by_what_their_keys_make() {
        assert_eq!(room_tag("k3v9abcdefgh"), "k3v9-abcd");
        assert_eq!(room_tag("k3v"), "k3v");
    }
}
