//! The list of conversations: search, open, pin, rename, delete, export, import.

use std::collections::BTreeSet;

use leptos::{ev, prelude::*};
use potluck_text::texts;

use super::{chat_row::Row, transfer_view::Transfer};
use crate::{
    browser,
    common::{Dialog, Icon, Symbol},
    state::{DialogKind, Heading, Period, Search, Words, store},
    text::period_text,
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

/// What somebody looks for.
#[derive(Clone, PartialEq)]
struct Sought {
    words: Words,
    /// The conversations where it was found.
    found: BTreeSet<String>,
}

#[component]
fn List() -> impl IntoView {
    let store = store();
    let shown = RwSignal::new(STEP);
    let sought = RwSignal::new(None::<Sought>);
    let matching = Memo::new(move |_| {
        let is_found = |heading: &&Heading| {
            sought.with(|sought| sought.as_ref().is_none_or(|sought| sought.found.contains(&heading.id)))
        };
        store.chats.headings.with(|all| all.iter().filter(is_found).cloned().collect::<Vec<_>>())
    });
    let today = browser::local_day(browser::now());
    // None for those that are pinned.
    let period =
        move |heading: &Heading| (!heading.pinned).then(|| Period::of(browser::local_day(heading.changed), today));
    // The one that was just pinned, or is not any more: the focus follows it.
    let moved = RwSignal::new(None::<String>);
    // Those that are listed, by the part of the list where they are.
    let listed = Memo::new(move |_| {
        let with_period = |heading: &Heading| (period(heading), heading.clone());
        matching.with(|all| all.iter().take(shown.get()).map(with_period).collect::<Vec<_>>())
    });
    let periods = move || {
        let mut periods = listed.with(|listed| listed.iter().map(|(period, _)| *period).collect::<Vec<_>>());
        periods.dedup();
        periods
    };
    let left = move || matching.with(|all| all.len().saturating_sub(shown.get()));
    let fresh = move |_| {
        store.new_conversation();
        store.screen.dialog.set(None);
    };
    let part = move |period: Option<Period>| {
        let rows = move || {
            let is_here = |(of, _): &&(Option<Period>, Heading)| *of == period;
            let heading = |(_, heading): &(Option<Period>, Heading)| heading.clone();
            listed.with(|listed| listed.iter().filter(is_here).map(heading).collect::<Vec<_>>())
        };
        let words = Signal::derive(move || sought.with(|sought| sought.as_ref().map(|sought| sought.words.clone())));
        view! {
            <section class="chat-period">
                <h3>{period.map_or_else(|| texts().period.pinned().to_owned(), period_text)}</h3>
                <ul class="chat-list">
                    <For each=rows key=|heading| (heading.id.clone(), heading.title.clone(), heading.pinned) let:heading>
                        <Row heading words moved />
                    </For>
                </ul>
            </section>
        }
    };
    view! {
        <Show when=move || store.in_room()>
            <button type="button" class="button button-main" on:click=fresh>
                <Icon symbol=Symbol::Plus />
                <span>{texts().chat.untitled()}</span>
            </button>
        </Show>
        <Show
            when=move || store.chats.headings.with(|headings| !headings.is_empty())
            fallback=|| view! { <p class="hint">{texts().conversations.none()}</p> }
        >
            <SearchField sought shown count=Signal::derive(move || matching.with(Vec::len)) />
            <For each=periods key=|period| *period children=part />
            <Show when=move || { left() > 0 }>
                <button type="button" class="button" on:click=move |_| shown.update(|shown| *shown += STEP)>
                    {move || texts().conversations.show(left().min(STEP))}
                </button>
            </Show>
        </Show>
        <Transfer />
    }
}

/// Looks for words in all conversations, as they were when the first letter was typed.
#[component]
fn SearchField(
    /// What is looked for.
    sought: RwSignal<Option<Sought>>,
    /// How many are listed at most.
    shown: RwSignal<usize>,
    /// How many were found.
    count: Signal<usize>,
) -> impl IntoView {
    let store = store();
    let search = StoredValue::new(None::<Search>);
    let typed = move |event: ev::Event| {
        let words = Words::of(&event_target_value(&event));
        let look = |words: Words| {
            let find =
                |search: &mut Option<Search>| search.get_or_insert_with(|| store.chats.search()).find(words.clone());
            search.try_update_value(find).map(|found| Sought { words, found })
        };
        let now = words.and_then(look);
        if now.is_none() {
            // Whoever begins again searches what is there by then.
            search.set_value(None);
        }
        sought.set(now);
        shown.set(STEP);
    };
    // Escape clears the field first, and closes the drawer then.
    let keys = move |event: ev::KeyboardEvent| {
        if event.key() == "Escape" && sought.with_untracked(Option::is_some) {
            event.prevent_default();
            event_target::<web_sys::HtmlInputElement>(&event).set_value("");
            sought.set(None);
            search.set_value(None);
        }
    };
    let said = move || sought.with(Option::is_some).then(|| texts().conversations.found(count.get()));
    view! {
        <input
            class="field"
            type="search"
            dir="auto"
            aria-label=texts().conversations.search()
            placeholder=texts().conversations.search()
            on:input=typed
            on:keydown=keys
        />
        <p class="hint chat-found" role="status">{said}</p>
    }
}
