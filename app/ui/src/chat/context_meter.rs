//! How full the conversation's context is, with the message that is written, and the ways on when it is full.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    state::{ContextUse, Store, store},
    text::percent,
};

/// Positions that an answer needs at least.
const ANSWER: u32 = 16;

fn context_use(store: Store) -> Option<ContextUse> {
    store.chats.open.with(|open| open.context_use(store.room.context()))
}

/// Positions of context that the conversation has left; `None` in no room.
pub fn room_left(store: Store) -> Option<u32> {
    if store.room.context() == 0 {
        return None;
    }
    context_use(store).map(|context| context.all.saturating_sub(context.used))
}

/// How full the conversation's context is.
#[component]
pub fn ContextMeter(
    /// About how many tokens the message has that is written.
    draft: RwSignal<usize>,
) -> impl IntoView {
    let store = store();
    let context = Memo::new(move |_| context_use(store).filter(|context| context.used > 0 || draft.get() > 0));
    let line = move || {
        let texts = &texts().composer;
        context.get().map(|ContextUse { used, all, is_counted }| match (draft.get(), is_counted) {
            (0, true) => texts.context(used, all),
            (0, false) => texts.context_estimated(used, all),
            (message, _) if used == 0 => texts.context_estimated(message, all),
            (message, _) => texts.context_with(used, message, all),
        })
    };
    let nearly_full = move || {
        let taken = |context: ContextUse| percent(u64::from(context.used) + draft.get() as u64, u64::from(context.all));
        context.get().is_some_and(|context| taken(context) >= 85)
    };
    view! { <span class="context-meter" class:context-full=nearly_full>{line}</span> }
}

/// The ways on, where the conversation has no room for the message and an answer.
#[component]
pub fn WaysOn(
    /// About how many tokens the message has that is written.
    draft: RwSignal<usize>,
) -> impl IntoView {
    let store = store();
    let is_full = Memo::new(move |_| {
        let has_turns = store.chats.open.with(|open| !open.turns.is_empty());
        let message = u32::try_from(draft.get()).unwrap_or(u32::MAX);
        let is_full = |context: ContextUse| {
            let taken = context.used.saturating_add(message);
            // Where the host refuses, an estimate of half as many is wrong.
            let is_refused = store.chats.refused.with(Option::is_some) && taken >= context.all / 2;
            is_refused || taken.saturating_add(ANSWER) > context.all
        };
        let in_room = store.room.context() > 0;
        has_turns && in_room && store.answering().is_none() && context_use(store).is_some_and(is_full)
    });
    let next = Memo::new(move |_| {
        let context = store.room.context();
        store.chats.open.with(|open| open.next_left_out(context))
    });
    let anew = move |_| store.go_on_anew();
    let leave_out = move |_| {
        if let Some(next) = next.get_untracked() {
            store.send_from(next);
        }
    };
    view! {
        <Show when=move || is_full.get()>
            <div class="ways-on" role="group" aria-label=texts().composer.full()>
                <p class="hint">{texts().composer.full()}</p>
                <button type="button" class="button button-small" on:click=anew>
                    {move || if draft.get() > 0 { texts().composer.anew_with_message() } else { texts().composer.anew_with_last() }}
                </button>
                <Show when=move || next.get().is_some()>
                    <button type="button" class="button button-small" on:click=leave_out>{texts().composer.leave_out()}</button>
                </Show>
            </div>
        </Show>
    }
}
