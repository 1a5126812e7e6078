//! The list of conversations: open, rename, delete.

use leptos::{ev, prelude::*};
use potluck_text::texts;

use crate::{
    browser,
    common::{Dialog, Icon, Symbol},
    state::{DialogKind, Heading, store},
};

/// The drawer that lists all conversations.
#[component]
pub fn ChatList() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Chats title=texts().conversations.title() drawer=true>
            <List />
        </Dialog>
    }
}

/// Conversations that are listed at first, and more at each press.
const STEP: usize = 100;

#[component]
fn List() -> impl IntoView {
    let store = store();
    let shown = RwSignal::new(STEP);
    let newest = move || store.chats.headings.with(|all| all.iter().take(shown.get()).cloned().collect::<Vec<_>>());
    let left = move || store.chats.headings.with(|all| all.len().saturating_sub(shown.get()));
    let fresh = move |_| {
        store.new_conversation();
        store.screen.dialog.set(None);
    };
    view! {
        <button type="button" class="button button-main" on:click=fresh>
            <Icon symbol=Symbol::Plus />
            <span>{texts().chat.untitled()}</span>
        </button>
        <Show
            when=move || store.chats.headings.with(|headings| !headings.is_empty())
            fallback=|| view! { <p class="hint">{texts().conversations.none()}</p> }
        >
            <ul class="chat-list">
                <For each=newest key=|heading| (heading.id.clone(), heading.title.clone()) let:heading>
                    <Row heading />
                </For>
            </ul>
            <Show when=move || { left() > 0 }>
                <button type="button" class="button" on:click=move |_| shown.update(|shown| *shown += STEP)>
                    {move || texts().conversations.show(left().min(STEP))}
                </button>
            </Show>
        </Show>
    }
}

#[component]
fn Row(heading: Heading) -> impl IntoView {
    let store = store();
    let id = StoredValue::new(heading.id);
    let title = StoredValue::new(heading.title);
    let renaming = RwSignal::new(false);
    let text = RwSignal::new(title.get_value());
    let open = Memo::new(move |_| store.chats.open.with(|open| id.with_value(|id| open.id == *id)));
    let choose = move |_| {
        id.with_value(|id| store.open_conversation(id));
        store.screen.dialog.set(None);
    };
    let rename = move |event: ev::SubmitEvent| {
        event.prevent_default();
        renaming.set(false);
        id.with_value(|id| store.rename_conversation(id, &text.get_untracked()));
    };
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
        </li>
    }
}
