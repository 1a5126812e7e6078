//! The room's page: table on the left, chat on the right; narrow screens have one column with the table folded.

use leptos::{ev, prelude::*};
use potluck_text::texts;

use super::{panel::TablePanel, sealed::Padlock, summary::summary};
use crate::{
    browser,
    chat::ChatPanel,
    common::{Icon, Symbol},
    state::{DialogKind, store},
};

/// The room.
#[component]
pub fn RoomPage() -> impl IntoView {
    let store = store();
    let unfolded = RwSignal::new(false);
    let line = Memo::new(move |_| store.room.status.with(summary));
    let alone = Memo::new(move |_| store.room.status.with(|status| status.peers.len() <= 1));
    let is_over = RwSignal::new(false);
    let has_files =
        |event: &ev::DragEvent| event.data_transfer().is_some_and(|data| data.types().includes(&"Files".into(), 0));
    let dragged = move |event: ev::DragEvent| {
        if has_files(&event) {
            event.prevent_default();
            is_over.set(true);
        }
    };
    let dropped = move |event: ev::DragEvent| {
        is_over.set(false);
        if has_files(&event) {
            event.prevent_default();
            store.attach(browser::files_of(event.data_transfer().and_then(|data| data.files())));
        }
    };
    view! {
            <div class="room" class:room-alone=alone>
                <header class="room-top">
                    <h1 class="wordmark" tabindex="-1"><Icon symbol=Symbol::Pot /><span>"Potluck"</span></h1>
                    <button
                        type="button"
                        class="strip"
                        aria-controls="table"
                        aria-expanded=move || unfolded.get().to_string()
                        on:click=move |_| unfolded.update(|open| *open = !*open)
                    >
                        <span>{line}</span>
                        <Icon symbol=Symbol::Down />
                    </button>
                    <span class="room-line" aria-hidden="true">{line}</span>
                    <Padlock />
                    <button
                        type="button"
                        class="button button-icon"
                        aria-label=texts().settings.title()
                        on:click=move |_| store.screen.dialog.set(Some(DialogKind::Settings))
                    >
                        <Icon symbol=Symbol::Sliders />
                    </button>
                    <button type="button" class="button button-icon room-leave" aria-label=texts().leave.title() title=texts().leave.title() on:click=move |_| store.ask_to_leave()>
                        <Icon symbol=Symbol::Leave />
                    </button>
                </header>
                <main class="room-body">
    <section class="room-table" id="table" aria-label=texts().table.heading() class:room-table-open=move || unfolded.get()>
                    <TablePanel />
                </section>
                <section
                    class="room-chat"
                    class:room-chat-over=move || is_over.get()
                    aria-label=texts().chat.heading()
                    on:dragover=dragged
                    on:dragleave=move |_| is_over.set(false)
                    on:drop=dropped
                >
                    <ChatPanel />
                </section>
    </main>
            </div>
        }
}
