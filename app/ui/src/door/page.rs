//! The first page.

use leptos::prelude::*;

use super::{device_line::DeviceLine, join::JoinCard, own_rooms::OwnRooms, picture::Picture, room_list::watch_rooms};
use crate::{
    common::{Icon, Privacy, Symbol},
    relay::Room,
    route::{RoomAddress, Route},
    state::{DialogKind, store},
    text::plural,
};

/// The door.
#[component]
pub fn Door() -> impl IntoView {
    let store = store();
    let rooms = watch_rooms();
    let invited = Memo::new(move |_| match store.screen.route.get() {
        Route::Room(address) => Some(address),
        Route::Door | Route::Bench => None,
    });
    view! {
        <main class="door">
            <div class="door-column">
                <header class="door-top">
                    <button
                        type="button"
                        class="button button-icon"
                        aria-label="Settings"
                        on:click=move |_| store.screen.dialog.set(Some(DialogKind::Settings))
                    >
                        <Icon symbol=Symbol::Sliders />
                    </button>
                </header>
                <Picture />
                <h1 class="door-name" tabindex="-1">"Potluck"</h1>
                <p class="door-sentence">
                    "Together, your devices can run a model that none of them could run alone."
                </p>
                <Show when=move || invited.get().is_some() fallback=move || view! { <OwnRooms /> <Presses rooms /> }>
                    {move || invited.get().map(|address| view! { <JoinCard address /> })}
                </Show>
                <BackToTable />
                <footer class="door-foot">
                    <DeviceLine />
                    <Privacy />
                    <BenchLink />
                </footer>
            </div>
        </main>
    }
}

/// The two large buttons.
#[component]
fn Presses(rooms: RwSignal<Option<Vec<Room>>>) -> impl IntoView {
    let store = store();
    // With exactly one open room, enter it directly. Otherwise show the list, which also accepts a link.
    let contribute = move |_| {
        let only = rooms.with_untracked(|rooms| match rooms.as_deref() {
            Some([room]) => Some(room.id.clone()),
            _ => None,
        });
        match only {
            Some(id) => store.enter(RoomAddress { id, key: None }, Some(untrack(|| store.lend_by_default()))),
            None => store.screen.dialog.set(Some(DialogKind::Rooms)),
        }
    };
    let hint = move || match rooms.get().as_deref() {
        None => "Looking for open rooms".to_owned(),
        Some([]) => "No room is open here yet".to_owned(),
        Some([room]) if room.title.is_empty() => "One room is open here".to_owned(),
        Some([room]) => format!("Helps “{}”", room.title),
        Some(rooms) => plural(rooms.len(), "room is open here", "rooms are open here"),
    };
    view! {
        <div class="presses">
            <button
                type="button"
                class="press press-main"
                aria-describedby="host-hint"
                on:click=move |_| store.screen.dialog.set(Some(DialogKind::Host))
            >
                <Icon symbol=Symbol::Pot />
                <span class="press-name">"Host a model"</span>
                <span class="press-hint" aria-hidden="true" id="host-hint">"Pick a model and open a room"</span>
            </button>
            <button
                type="button"
                class="press"
                aria-describedby="contribute-hint"
                on:click=contribute
            >
                <Icon symbol=Symbol::Plus />
                <span class="press-name">"Contribute GPU"</span>
                <span class="press-hint" aria-hidden="true" id="contribute-hint">{hint}</span>
            </button>
        </div>
    }
}

/// Leads to the bench.
#[component]
fn BenchLink() -> impl IntoView {
    let store = store();
    let open = move |event: leptos::ev::MouseEvent| {
        event.prevent_default();
        crate::browser::go("/bench");
        store.screen.route.set(Route::Bench);
    };
    view! {
        <a class="button button-quiet button-small" href="/bench" on:click=open>"How fast is this device?"</a>
    }
}

/// Leads back for a user who left the table with the browser's back button.
#[component]
fn BackToTable() -> impl IntoView {
    let store = store();
    let address = move || {
        let here = matches!(store.screen.route.get(), Route::Door);
        store.session.with(|session| session.place.as_ref().filter(|_| here).map(crate::state::Place::address))
    };
    let back = move |_| {
        if let Some(address) = untrack(address) {
            crate::browser::go(&address.path());
            store.follow_route(Route::Room(address));
        }
    };
    view! {
        <Show when=move || address().is_some()>
            <p class="door-back">
                "You still have a seat at a table. "
                <button type="button" class="button" on:click=back>"Back to the table"</button>
            </p>
        </Show>
    }
}
