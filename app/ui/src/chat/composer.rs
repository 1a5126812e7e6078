//! The input field: Enter sends, or lets the message wait while an answer is written; Shift+Enter breaks the line, Escape stops.
//!
//! The field owns its text. The page writes into it only to give a draft back or to clear it, and reads it when typing pauses
//! or somebody sends, so that a long draft costs no more than in a bare field, and input methods are left alone.

use gloo_timers::callback::Timeout;
use leptos::{ev, html, prelude::*};
use potluck_panel::ToNode;
use potluck_text::texts;
use wasm_bindgen::JsCast;
use web_sys::HtmlTextAreaElement;

use super::{
    attached_files::{AttachButton, FileChips},
    context_meter::{ContextMeter, WaysOn, room_left},
    too_long::TooLong,
    waiting_list::WaitingList,
};
use crate::{
    browser,
    common::{Icon, Symbol},
    state::{QuestionParts, estimated_tokens, store},
};

/// Maximum height of the field in pixels; beyond that it scrolls.
const TALLEST: i32 = 200;
/// A longer text fills the field; it is not measured, which would lay it out once more. In the browser's units.
const SURELY_TALL: u32 = 4_000;
/// A longer text is not blank. In the browser's units.
const SURELY_SOMETHING: u32 = 400;
/// While the user types, tell the devices this often, in milliseconds, so that they get ready for the question.
const REPORT_EVERY: f64 = 1_000.0;
/// The draft is read and stored when nobody has typed for this long, in milliseconds.
const PAUSE: u32 = 400;

/// The composer.
#[component]
pub fn Composer() -> impl IntoView {
    let store = store();
    let field = NodeRef::<html::Textarea>::new();
    let running = Memo::new(move |_| store.answering().is_some());
    let ready = Memo::new(move |_| store.can_ask());
    let files = store.chats.files;
    let no_text = RwSignal::new(true);
    let blank = Memo::new(move |_| no_text.get() && files.with(Vec::is_empty));
    let too_long = RwSignal::new(None::<TooLong>);
    let pause = StoredValue::new_local(None::<Timeout>);
    let reported = StoredValue::new(f64::MIN);
    let tokens = RwSignal::new(0_usize);
    let weigh = move |text: &str| {
        tokens.try_set(estimated_tokens(text.trim()));
        too_long.try_set(TooLong::check(text, untrack(|| room_left(store))));
    };
    let is_long = StoredValue::new(false);
    let measure = move |field: &HtmlTextAreaElement| {
        let length = field.text_length();
        is_long.set_value(length > SURELY_TALL);
        no_text.set(length < SURELY_SOMETHING && field.value().trim().is_empty());
        fit_height(field, length);
    };
    // A draft that the page gives.
    Effect::new(move |_| {
        let (Some(field), draft) = (field.get(), store.chats.draft.get()) else { return };
        let QuestionParts { text, files: drafted } = QuestionParts::of(&draft);
        if field.value() != text {
            field.set_value(&text);
        }
        weigh(&draft);
        files.maybe_update(|files| {
            let is_new = *files != drafted;
            *files = drafted;
            is_new
        });
        measure(&field);
    });
    // A second button beside the field makes it narrower.
    let has_two_buttons = Memo::new(move |_| running.get() && !blank.get());
    Effect::new(move |_| {
        has_two_buttons.track();
        request_animation_frame(move || {
            if let Some(field) = field.try_get_untracked().flatten() {
                fit_height(&field, field.text_length());
            }
        });
    });
    // Another conversation, or room, has another context, and files take of it.
    let left = Memo::new(move |_| room_left(store));
    Effect::new(move |_| {
        left.track();
        files.track();
        if let Some(field) = field.get() {
            weigh(&store.chats.with_files(field.value()));
        }
    });
    let read = move |field: &HtmlTextAreaElement| {
        let text = store.chats.with_files(field.value());
        weigh(&text);
        measure(field);
        store.keep_draft(text);
    };
    let typed = move |event: ev::Event| {
        let field: HtmlTextAreaElement = event_target(&event);
        // Even the length of a long text takes time. One that grows stays long.
        if !(is_long.get_value() && inserts(&event)) {
            measure(&field);
        }
        store.chats.refused.set(None);
        let now = browser::now();
        if now - reported.get_value() >= REPORT_EVERY && untrack(|| store.can_ask()) {
            reported.set_value(now);
            store.send(ToNode::Writing);
        }
        store.chats.typing.set_value(Some(field.clone()));
        // A new timeout takes the place of the old one, which is cancelled.
        pause.set_value(Some(Timeout::new(PAUSE, move || read(&field))));
    };
    on_cleanup(move || {
        if let Some(text) = store.chats.draft_to_keep() {
            store.keep_draft(text);
        }
    });
    let send = move || {
        let Some(field) = field.get_untracked() else { return };
        let text = store.chats.with_files(field.value());
        weigh(&text);
        let is_too_long = too_long.with_untracked(|long| long.as_ref().is_some_and(|long| long.is_certain));
        if is_too_long || !(store.ask(&text) || store.wait(&text)) {
            let is_full = store.session.with_untracked(|session| session.waiting.is_full());
            if is_full && untrack(|| store.answering()).is_some() && !text.trim().is_empty() {
                store.chats.refused.set(Some(texts().composer.too_many_wait().to_owned()));
            }
            return;
        }
        pause.set_value(None);
        store.give_draft(String::new());
        // "Stop" replaces "Send": keep the focus in the field.
        let _focused = field.focus();
    };
    let keys = move |event: ev::KeyboardEvent| {
        if event.key() == "Enter" && !event.shift_key() && !browser::is_composing(&event) {
            event.prevent_default();
            if !event.repeat() {
                send();
            }
        }
    };
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        send();
    };
    let pasted = move |event: ev::ClipboardEvent| {
        let files = browser::files_of(event.clipboard_data().and_then(|data| data.files()));
        if !files.is_empty() {
            event.prevent_default();
            store.attach(files);
        }
    };
    let wrong =
        move || store.chats.refused.get().or_else(|| too_long.with(|long| long.as_ref().map(TooLong::sentence)));
    let may_send =
        move || !blank.get() && ready.get() && !too_long.with(|long| long.as_ref().is_some_and(|long| long.is_certain));
    view! {
        <form class="composer" on:submit=submit>
            <WaitingList />
            <WaysOn draft=tokens />
            <FileChips files remove=move |at| store.detach(at) />
            <div class="composer-box">
                <AttachButton />
                <textarea
                    node_ref=field
                    class="composer-field"
                    rows="1"
                    aria-label=texts().composer.label()
                    placeholder=texts().composer.placeholder()
                    enterkeyhint="send"
                    on:input=typed
                    on:keydown=keys
                    on:paste=pasted
                ></textarea>
                <Show
                    when=move || running.get()
                    fallback=move || view! {
                        <button
                            type="submit"
                            class="button button-main button-round"
                            aria-label=texts().composer.send()
                            disabled=move || !may_send()
                        >
                            <Icon symbol=Symbol::Send />
                        </button>
                    }
                >
                    <Show when=move || has_two_buttons.get()>
                        <button type="submit" class="button button-main button-round" aria-label=texts().composer.ask_next() title=texts().composer.ask_next()>
                            <Icon symbol=Symbol::Send />
                        </button>
                    </Show>
                    <button
                        type="button"
                        class="button button-round button-stop"
                        aria-label=texts().composer.stop()
                        on:click=move |_| store.stop()
                    >
                        <Icon symbol=Symbol::Stop />
                    </button>
                </Show>
            </div>
            <div class="composer-foot">
                <span class="hint" class:hint-warning=move || wrong().is_some() role="status">
                    {move || wrong().or_else(|| why_not(store))}
                </span>
                <ContextMeter draft=tokens />
            </div>
        </form>
    }
}

/// Somebody typed a letter or a line break.
fn inserts(event: &ev::Event) -> bool {
    let kind = event.dyn_ref::<web_sys::InputEvent>().map(web_sys::InputEvent::input_type);
    kind.is_some_and(|kind| matches!(kind.as_str(), "insertText" | "insertLineBreak" | "insertCompositionText"))
}

/// Makes the field as tall as its text, within limits.
fn fit_height(field: &HtmlTextAreaElement, length: u32) {
    let style = web_sys::HtmlElement::style(field);
    // Ignore the errors: an element's style accepts any length.
    let set = |height: &str| drop(style.set_property("height", height));
    if length > SURELY_TALL {
        let tallest = format!("{TALLEST}px");
        if style.get_property_value("height").is_ok_and(|height| height != tallest) {
            set(&tallest);
        }
        return;
    }
    set("auto");
    set(&format!("{}px", field.scroll_height().min(TALLEST)));
}

fn why_not(store: crate::state::Store) -> Option<String> {
    let sentence = store.room.status.with(crate::table::why_not_yet);
    sentence.filter(|_| !store.can_ask() || store.answering().is_none())
}
