//! The conversations without a room: they are read here, and continued in one.

use leptos::{ev, prelude::*};
use potluck_text::texts;

use super::panel::ChatPanel;
use crate::{
    browser,
    common::{Icon, Symbol},
    door::BackToTable,
    route::Route,
    state::{DialogKind, store},
};

/// The page of the conversations.
#[component]
pub fn ChatsPage() -> impl IntoView {
    let store = store();
    view! {
        <div class="reading">
            <header class="room-top">
                <h1 class="wordmark" tabindex="-1"><Icon symbol=Symbol::Pot /><span>"Potluck"</span></h1>
                <span class="reading-door"><DoorLink /></span>
                <button
                    type="button"
                    class="button button-icon"
                    aria-label=texts().settings.title()
                    on:click=move |_| store.screen.dialog.set(Some(DialogKind::Settings))
                >
                    <Icon symbol=Symbol::Sliders />
                </button>
            </header>
            <main class="room-chat" aria-label=texts().chat.heading()>
                <ChatPanel />
            </main>
        </div>
    }
}

/// Leads to the door.
#[component]
fn DoorLink() -> impl IntoView {
    let store = store();
    let open = move |event: ev::MouseEvent| {
        event.prevent_default();
        browser::go("/");
        store.follow_route(Route::Door);
    };
    view! { <a class="button button-quiet" href="./" on:click=open>{texts().chat.to_door()}</a> }
}

/// In place of the turns, before a conversation is chosen.
#[component]
pub fn NoneChosen() -> impl IntoView {
    view! {
        <div class="turns welcome">
            <div class="turns-column"><p class="hint">{texts().chat.none_chosen()}</p></div>
        </div>
    }
}

/// In place of the composer: how the conversation goes on.
#[component]
pub fn ReadingFoot() -> impl IntoView {
    view! {
        <div class="composer reading-foot">
            <p class="hint">{texts().chat.only_read()}</p>
            <BackToTable />
        </div>
    }
}
