//! The chat: turns above, the composer below. Without a room, it is only read.

use leptos::{html, prelude::*};
use potluck_text::texts;

use super::{
    chats_page::{NoneChosen, ReadingFoot},
    composer::Composer,
    own_answers::{OwnAnswersButton, OwnAnswersMark},
    turn_view::TurnView,
};
use crate::{
    common::{Icon, Symbol},
    state::{DialogKind, store},
    table::{Failure, failure},
};

/// Within this distance from the end, in pixels, new text scrolls into view.
const NEAR: i32 = 120;

/// The chat of the room, or of none.
#[component]
pub fn ChatPanel() -> impl IntoView {
    let store = store();
    let title = Memo::new(move |_| {
        store.chats.open.with(|conversation| {
            if conversation.title.is_empty() { texts().chat.untitled().to_owned() } else { conversation.title.clone() }
        })
    });
    let failed = Memo::new(move |_| store.room.status.with(|status| failure(status).is_some()));
    let empty = Memo::new(move |_| store.chats.open.with(|conversation| conversation.turns.is_empty()));
    let reads = Memo::new(move |_| store.only_reads());
    view! {
        <header class="chat-top">
            <button type="button" class="button button-quiet" on:click=move |_| store.screen.dialog.set(Some(DialogKind::Chats))>
                <Icon symbol=Symbol::Chats />
                <span>{texts().chat.all()}</span>
            </button>
            <h2 class="chat-title" dir="auto">{title}</h2>
            <OwnAnswersButton />
            <Show when=move || !reads.get()>
                <button
                    type="button"
                    class="button button-quiet"
                    disabled=move || empty.get()
                    on:click=move |_| store.new_conversation()
                >
                    <Icon symbol=Symbol::Plus />
                    <span>{texts().chat.start()}</span>
                </button>
            </Show>
        </header>
        <OwnAnswersMark />
        {move || match (empty.get(), reads.get(), failed.get()) {
            (false, ..) => view! { <Turns /> }.into_any(),
            (true, true, _) => view! { <NoneChosen /> }.into_any(),
            (true, false, true) => view! { <Failure /> }.into_any(),
            (true, false, false) => view! { <Welcome /> }.into_any(),
        }}
        // Said, not seen: the answer on the screen grows by parts of words.
        <p class="visually-hidden" aria-live="polite">{move || store.screen.spoken.get()}</p>
        <Show when=move || !reads.get() fallback=|| view! { <ReadingFoot /> }>
            <Composer />
        </Show>
    }
}

/// The turns, oldest first. Keeps the end in view unless the user scrolled up; then a button leads there.
#[component]
fn Turns() -> impl IntoView {
    let store = store();
    let list = NodeRef::<html::Div>::new();
    let follow = StoredValue::new(true);
    let count = Memo::new(move |_| store.chats.open.with(|conversation| conversation.turns.len()));
    let open = Memo::new(move |_| store.chats.open.with(|conversation| conversation.id.clone()));
    let away = RwSignal::new(false);
    let is_near = |list: &web_sys::Element| list.scroll_height() - list.scroll_top() - list.client_height() < NEAR;
    let scrolled = move |_| {
        if let Some(list) = list.get_untracked() {
            let is_near = is_near(&list);
            follow.set_value(is_near);
            away.maybe_update(|away| std::mem::replace(away, !is_near) == is_near);
        }
    };
    let to_end = move |_| {
        if let Some(list) = list.get_untracked() {
            list.set_scroll_top(list.scroll_height());
            // The button goes away.
            let _refused = list.focus();
        }
    };
    // The end that is shown, and the request that writes there.
    let end = Memo::new(move |_| {
        store.chats.open.with(|conversation| (conversation.turns.last().map(|turn| turn.key), conversation.running()))
    });
    Effect::new(move |before: Option<(String, _)>| {
        let (open, (end, running)) = (open.get(), end.get());
        match before {
            Some((was_open, (was_end, _))) if was_open == open && was_end == end => {}
            // Another version is shown: whoever steps through them stays where they are.
            Some((was_open, _)) if was_open == open && running.is_none() => follow.set_value(false),
            _ => follow.set_value(true),
        }
        (open, (end, running))
    });
    Effect::new(move |_| {
        store.chats.open.track();
        request_animation_frame(move || {
            // The conversation may be gone by then.
            let Some(list) = list.try_get_untracked().flatten() else { return };
            if follow.try_get_value() == Some(true) {
                list.set_scroll_top(list.scroll_height());
            }
            away.maybe_update(|away| {
                let is_away = !is_near(&list);
                std::mem::replace(away, is_away) != is_away
            });
        });
    });
    let keys = move || {
        let open = open.get();
        (0..count.get()).map(move |at| (open.clone(), at)).collect::<Vec<_>>()
    };
    view! {
        <div class="turns" node_ref=list on:scroll=scrolled tabindex="0" role="log" aria-label=texts().chat.turns() aria-live="off">
            <div class="turns-column">
                <For each=keys key=Clone::clone children=move |(_, at)| view! { <TurnView at /> } />
            </div>
        </div>
        <Show when=move || away.get()>
            <div class="to-end">
                <button type="button" class="button button-round" aria-label=texts().chat.to_end() title=texts().chat.to_end() on:click=to_end>
                    <Icon symbol=Symbol::Down />
                </button>
            </div>
        </Show>
    }
}

/// Shown before the first question.
#[component]
fn Welcome() -> impl IntoView {
    let store = store();
    let try_it = [texts().chat.try_story(), texts().chat.try_joke(), texts().chat.try_potluck()];
    let ready = Memo::new(move |_| store.can_ask());
    let suggestion = move |text: &'static str| {
        view! {
            <button type="button" class="button suggestion" disabled=move || !ready.get() on:click=move |_| { store.ask(text); }>
                {text}
            </button>
        }
    };
    view! {
        <div class="turns welcome">
            <div class="turns-column">
                <h2>{texts().chat.welcome()}</h2>
                <p class="hint">
                    {texts().chat.welcome_hint()}
                </p>
                <div class="suggestions">{try_it.map(suggestion).collect_view()}</div>
            </div>
        </div>
    }
}
