//! The field in which a question is changed and asked again: Enter asks, Shift+Enter breaks the line, Escape leaves it.

use leptos::{ev, html, prelude::*};
use potluck_text::texts;

use super::attached_files::FileChips;
use crate::{
    browser,
    state::{QuestionParts, TurnId, store},
};

/// A question's text in a field of its own.
#[component]
pub fn QuestionEditor(
    /// Where the question is in the open conversation.
    at: usize,
    /// The question as it was asked.
    question: Memo<String>,
    /// The turn whose question is edited.
    editing: RwSignal<Option<TurnId>>,
    /// The editor is closed without a question.
    came_back: StoredValue<bool>,
) -> impl IntoView {
    let store = store();
    let field = NodeRef::<html::Textarea>::new();
    let QuestionParts { text, files } = question.with_untracked(|question| QuestionParts::of(question));
    let files = RwSignal::new(files);
    let no_text = RwSignal::new(text.trim().is_empty());
    let text = StoredValue::new(text);
    let blank = Memo::new(move |_| no_text.get() && files.with(Vec::is_empty));
    let may_ask = Memo::new(move |_| store.can_ask() && store.answering().is_none() && !blank.get());
    Effect::new(move |_| {
        let Some(field) = field.get() else { return };
        field.set_value(&text.get_value());
        let end = field.text_length();
        // Ignore the errors: a field of text has a selection, and whoever cannot focus it may click it.
        let _refused = (field.set_selection_range(end, end), field.focus());
    });
    let leave = move || {
        came_back.set_value(true);
        editing.set(None);
    };
    let ask = move || {
        let text = field.get_untracked().map(|field| field.value()).unwrap_or_default();
        if store.edit(at, &QuestionParts { text, files: files.get_untracked() }.whole()) {
            editing.set(None);
            // The field is gone, and the next message goes into this one.
            request_animation_frame(browser::focus_composer);
        }
    };
    let keys = move |event: ev::KeyboardEvent| match event.key().as_str() {
        _ if browser::is_composing(&event) => {}
        "Enter" if !event.shift_key() => {
            event.prevent_default();
            if !event.repeat() {
                ask();
            }
        }
        "Escape" => {
            // On the window it stops an answer.
            event.stop_propagation();
            leave();
        }
        _ => {}
    };
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        ask();
    };
    view! {
        <form class="question-editor" on:submit=submit>
            <textarea
                node_ref=field
                class="field"
                rows="3"
                dir="auto"
                aria-label=texts().turn.field()
                on:input=move |event| no_text.set(event_target_value(&event).trim().is_empty())
                on:keydown=keys
            ></textarea>
            <FileChips files remove=move |at: usize| files.update(|files| drop(files.remove(at))) />
            <div class="row question-editor-row">
                <span class="hint">{texts().turn.stays()}</span>
                <button type="button" class="button button-quiet" on:click=move |_| leave()>{texts().button.cancel()}</button>
                <button type="submit" class="button button-main" disabled=move || !may_ask.get()>{texts().turn.ask()}</button>
            </div>
        </form>
    }
}
