//! Chooses a room to help: one open on this relay, or any by its link.

use leptos::{ev, prelude::*};
use potluck_text::{strangers_title, texts};

use super::room_list::watch_rooms;
use crate::{
    common::{Dialog, Icon, Symbol},
    relay::Room,
    route::{RoomAddress, Route},
    state::{DialogKind, store},
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

/// The dialog that lists rooms.
#[component]
pub fn RoomPicker() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Rooms title=texts().rooms.title()>
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
    let enter = move |_| store.enter(address.get_value(), Some(untrack(|| store.lend_by_default())));
    view! {
        <li class="card room-card">
            <Icon symbol=Symbol::Pot />
            <div class="card-words">
                {(!room.title.is_empty()).then(|| view! { <strong><bdi>{title}</bdi></strong> })}
                <span class="hint">{tag}</span>
            </div>
            <button type="button" class="button button-main" on:click=enter>{texts().rooms.contribute()}</button>
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
            <button type="submit" class="button">{texts().rooms.join()}</button>
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
    fn rooms_of_one_title_are_told_apart_by_what_their_keys_make() {
        assert_eq!(room_tag("k3v9abcdefgh"), "k3v9-abcd");
        assert_eq!(room_tag("k3v"), "k3v");
    }
}
