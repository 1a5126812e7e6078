//! The first page.

use leptos::prelude::*;
use potluck_text::texts;

use super::{device_line::DeviceLine, join::JoinCard, own_rooms::OwnRooms, picture::Picture, room_list::watch_rooms};
use crate::{
    common::{Icon, Privacy, Symbol},
    relay::Room,
    route::Route,
    state::{DialogKind, store},
};

/// The door.
#[component]
pub fn Door() -> impl IntoView {
    let store = store();
    let rooms = watch_rooms();
    let invited = Memo::new(move |_| match store.screen.route.get() {
        Route::Room(address) => Some(address),
        Route::Door | Route::Chats | Route::Bench => None,
    });
    view! {
        <main class="door">
            <div class="door-column">
                <header class="door-top">
                    <ChatsButton />
                    <button
                        type="button"
                        class="button button-icon"
                        aria-label=texts().settings.title()
                        on:click=move |_| store.screen.dialog.set(Some(DialogKind::Settings))
                    >
                        <Icon symbol=Symbol::Sliders />
                    </button>
                </header>
                <Picture />
                <h1 class="door-name" tabindex="-1">"Potluck"</h1>
                <p class="door-sentence">
                    {texts().door.about()}
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
    // Anybody can list a room under any title, so the user must choose one from the list, even if there is only one. The list also
    // accepts a link.
    let contribute = move |_| store.screen.dialog.set(Some(DialogKind::Rooms));
    let hint = move || match rooms.get().as_deref() {
        None => texts().door.looking().to_owned(),
        Some([]) => texts().door.none().to_owned(),
        Some(rooms) => texts().door.open(rooms.len()),
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
                <span class="press-name">{texts().host.title()}</span>
                <span class="press-hint" aria-hidden="true" id="host-hint">{texts().door.host_hint()}</span>
            </button>
            <button
                type="button"
                class="press"
                aria-describedby="contribute-hint"
                on:click=contribute
            >
                <Icon symbol=Symbol::Plus />
                <span class="press-name">{texts().own.contribute()}</span>
                <span class="press-hint" aria-hidden="true" id="contribute-hint">{hint}</span>
            </button>
        </div>
    }
}

/// Opens the list of conversations, if there are any.
#[component]
fn ChatsButton() -> impl IntoView {
    let store = store();
    let any = Memo::new(move |_| store.chats.headings.with(|headings| !headings.is_empty()));
    view! {
        <Show when=move || any.get()>
            <button
                type="button"
                class="button button-quiet"
                on:click=move |_| store.screen.dialog.set(Some(DialogKind::Chats))
            >
                <Icon symbol=Symbol::Chats />
                <span>{texts().chat.all()}</span>
            </button>
        </Show>
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
        <a class="button button-quiet button-small" href="bench" on:click=open>{texts().door.bench()}</a>
    }
}

/// Leads back for a user who left the table with the browser's back button, or to read conversations.
#[component]
pub fn BackToTable() -> impl IntoView {
    let store = store();
    let address = move || {
        let here = matches!(store.screen.route.get(), Route::Door | Route::Chats);
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
                {texts().door.still_seated()} " "
                <button type="button" class="button" on:click=back>{texts().door.back()}</button>
            </p>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_before_the_program_has_loaded_says_the_same() {
        let html = include_str!("../../../../index.html");
        assert!(html.contains(&format!(">{}<", texts().door.about())), "index.html has the door's sentence");
    }
}
