//! The input field: Enter sends, Shift+Enter breaks the line, Escape stops.

use leptos::{ev, html, prelude::*};
use potluck_panel::ToNode;

use crate::{
    browser,
    common::{Icon, Symbol},
    state::{Turn, store},
    text::{count, percent},
};

/// Maximum height of the field in pixels; beyond that it scrolls.
const TALLEST: i32 = 200;
/// While the user types, tell the devices this often, in milliseconds, so that they get ready for the question.
const REPORT_EVERY: f64 = 1_000.0;

/// The composer.
#[component]
pub fn Composer() -> impl IntoView {
    let store = store();
    let field = NodeRef::<html::Textarea>::new();
    let running = Memo::new(move |_| store.answering().is_some());
    let ready = Memo::new(move |_| store.can_ask());
    let blank = Memo::new(move |_| store.chats.draft.with(|draft| draft.trim().is_empty()));
    let grow = move || {
        // The room may be gone by the time of the next frame.
        if let Some(field) = field.try_get_untracked().flatten() {
            let style = web_sys::HtmlElement::style(&field);
            // Ignore the error: an element's style accepts any length.
            let _auto = style.set_property("height", "auto");
            let _tall = style.set_property("height", &format!("{}px", field.scroll_height().min(TALLEST)));
        }
    };
    Effect::new(move |_| {
        store.chats.draft.track();
        request_animation_frame(grow);
    });
    let reported = StoredValue::new(f64::MIN);
    let say_writing = move || {
        let now = browser::now();
        if now - reported.get_value() >= REPORT_EVERY && untrack(|| store.can_ask()) {
            reported.set_value(now);
            store.send(ToNode::Writing);
        }
    };
    let send = move || {
        let draft = store.chats.draft.get_untracked();
        if store.ask(&draft) {
            store.set_draft(String::new());
            // "Stop" replaces "Send": keep the focus in the field.
            if let Some(field) = field.get_untracked() {
                let _focused = field.focus();
            }
        }
    };
    let keys = move |event: ev::KeyboardEvent| {
        if event.key() == "Enter" && !event.shift_key() && !event.is_composing() {
            event.prevent_default();
            send();
        }
    };
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        send();
    };
    view! {
        <form class="composer" on:submit=submit>
            <div class="composer-box">
                <textarea
                    node_ref=field
                    class="composer-field"
                    rows="1"
                    aria-label="Message"
                    placeholder="Write a message"
                    enterkeyhint="send"
                    prop:value=move || store.chats.draft.get()
                    on:input=move |event| {
                        store.set_draft(event_target_value(&event));
                        say_writing();
                    }
                    on:keydown=keys
                ></textarea>
                <Show
                    when=move || running.get()
                    fallback=move || view! {
                        <button
                            type="submit"
                            class="button button-main button-round"
                            aria-label="Send"
                            disabled=move || blank.get() || !ready.get()
                        >
                            <Icon symbol=Symbol::Send />
                        </button>
                    }
                >
                    <button
                        type="button"
                        class="button button-round button-stop"
                        aria-label="Stop"
                        on:click=move |_| store.stop()
                    >
                        <Icon symbol=Symbol::Stop />
                    </button>
                </Show>
            </div>
            <div class="composer-foot">
                <span class="hint" role="status">{move || why_not(store)}</span>
                <ContextMeter />
            </div>
        </form>
    }
}

fn why_not(store: crate::state::Store) -> Option<String> {
    let sentence = store.room.status.with(crate::table::why_not_yet);
    sentence.filter(|_| !store.can_ask() || store.answering().is_none())
}

/// How full the conversation's context is.
#[component]
fn ContextMeter() -> impl IntoView {
    let store = store();
    let used = Memo::new(move |_| {
        let room = store.room.context();
        let counted = |turn: &Turn| turn.answer.context(room);
        store.chats.open.with(|conversation| conversation.turns.iter().rev().find_map(counted))
    });
    let line = move || {
        used.get().map(|(used, all)| format!("Context {} of {}", count(u64::from(used)), count(u64::from(all))))
    };
    let nearly_full = move || used.get().is_some_and(|(used, all)| percent(u64::from(used), u64::from(all)) >= 85);
    view! { <span class="context-meter" class:context-full=nearly_full>{line}</span> }
}
