//! A conversation in the list.

use leptos::{ev, html, prelude::*};
use potluck_text::texts;

use crate::{
    browser,
    common::{Icon, Symbol},
    state::{Heading, Words, store},
};

/// One conversation.
#[component]
pub fn Row(
    /// Its entry.
    heading: Heading,
    /// What was looked for.
    words: Signal<Option<Words>>,
    /// The conversation that was pinned or unpinned last, until its row is there.
    moved: RwSignal<Option<String>>,
) -> impl IntoView {
    let store = store();
    let id = StoredValue::new(heading.id);
    let title = StoredValue::new(heading.title);
    let pinned = heading.pinned;
    let pin = NodeRef::<html::Button>::new();
    let renaming = RwSignal::new(false);
    let text = RwSignal::new(title.get_value());
    let open = Memo::new(move |_| store.chats.open.with(|open| id.with_value(|id| open.id == *id)));
    let excerpt = Memo::new(move |_| {
        let words = words.get()?;
        id.with_value(|id| store.chats.excerpt(id, &words))
    });
    let choose = move |_| id.with_value(|id| store.open_from_list(id));
    let rename = move |event: ev::SubmitEvent| {
        event.prevent_default();
        renaming.set(false);
        id.with_value(|id| store.rename_conversation(id, &text.get_untracked()));
    };
    let press_pin = move |_| {
        id.with_value(|id| {
            moved.set(Some(id.clone()));
            store.pin_conversation(id, !pinned);
        });
    };
    Effect::new(move |_| {
        let Some(pin) = pin.get() else { return };
        let is_it = |moved: &Option<String>| id.with_value(|id| moved.as_ref() == Some(id));
        if moved.with_untracked(is_it) {
            moved.set(None);
            // Ignore the error: the list may be closed by now.
            let _refused = pin.focus();
        }
    });
    let delete = move |_| {
        let question = texts().conversations.confirm_delete(title.get_value());
        if browser::confirm(&question) {
            store.delete_conversation(&id.get_value());
        }
    };
    view! {
        <li class="chat-row" class:chat-row-open=move || open.get()>
            <Show
                when=move || renaming.get()
                fallback=move || view! {
                    <button type="button" class="chat-name" dir="auto" aria-current=move || open.get().then_some("true") on:click=choose>
                        {title.get_value()}
                    </button>
                    <button
                        node_ref=pin
                        type="button"
                        class="button button-icon chat-pin"
                        aria-label=texts().conversations.pin(title.get_value())
                        aria-pressed=if pinned { "true" } else { "false" }
                        on:click=press_pin
                    >
                        <Icon symbol=Symbol::Pin />
                    </button>
                    <button type="button" class="button button-icon" aria-label=texts().conversations.rename(title.get_value()) on:click=move |_| renaming.set(true)>
                        <Icon symbol=Symbol::Pencil />
                    </button>
                    <button type="button" class="button button-icon" aria-label=texts().conversations.delete(title.get_value()) on:click=delete>
                        <Icon symbol=Symbol::Bin />
                    </button>
                }
            >
                <form class="row chat-rename" on:submit=rename>
                    <input
                        class="field"
                        type="text"
                        dir="auto"
                        aria-label=texts().conversations.new_title()
                        prop:value=move || text.get()
                        on:input=move |event| text.set(event_target_value(&event))
                    />
                    <button type="submit" class="button">{texts().conversations.rename_now()}</button>
                </form>
            </Show>
            <Show when=move || excerpt.with(Option::is_some)>
                <p class="chat-excerpt hint" dir="auto">{excerpt}</p>
            </Show>
        </li>
    }
}
