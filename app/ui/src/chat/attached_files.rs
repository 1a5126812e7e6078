//! The text files of a question: those that will be sent, and those that were.

use leptos::{ev, prelude::*};
use potluck_text::texts;
use wasm_bindgen::JsCast;

use crate::{
    browser,
    common::{Icon, Symbol},
    state::{AttachedFile, estimated_tokens, store},
};

/// The files that were sent with a question; each can be opened.
#[component]
pub fn SentFiles(files: Memo<Vec<AttachedFile>>) -> impl IntoView {
    let file = |file: AttachedFile| {
        let is_open = RwSignal::new(false);
        let opened = move |event: ev::Event| {
            let details = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
            is_open.set(details.is_some_and(|details| details.has_attribute("open")));
        };
        let (name, tokens) = (file.name, estimated_tokens(&file.text));
        let text = StoredValue::new(file.text);
        view! {
            <details class="fold sent-file" on:toggle=opened>
                <summary><bdi>{name}</bdi> " " <span class="hint">{texts().attach.tokens(tokens)}</span></summary>
                // What nobody looks at is not laid out.
                <Show when=move || is_open.get()>
                    <pre class="as-written" dir="auto">{text.get_value()}</pre>
                </Show>
            </details>
        }
    };
    view! {
        <Show when=move || files.with(|files| !files.is_empty())>
            <div class="sent-files">{move || files.get().into_iter().map(file).collect_view()}</div>
        </Show>
    }
}

/// The files that go along with a question that is written.
#[component]
pub fn FileChips(
    /// The files.
    #[prop(into)]
    files: Signal<Vec<AttachedFile>>,
    /// Takes the file at this place out.
    #[prop(into)]
    remove: Callback<usize>,
) -> impl IntoView {
    let chip = move |(at, file): (usize, AttachedFile)| {
        let label = texts().attach.remove(&file.name);
        view! {
            <li class="file-chip">
                <bdi>{file.name}</bdi>
                <span class="hint">{texts().attach.tokens(estimated_tokens(&file.text))}</span>
                <button type="button" class="button button-icon button-small" aria-label=label on:click=move |_| remove.run(at)>
                    <Icon symbol=Symbol::Close />
                </button>
            </li>
        }
    };
    view! {
        <Show when=move || files.with(|files| !files.is_empty())>
            <ul class="file-chips" aria-label=texts().attach.files()>
                {move || files.get().into_iter().enumerate().map(chip).collect_view()}
            </ul>
        </Show>
    }
}

/// Chooses files for the question in the composer.
#[component]
pub fn AttachButton() -> impl IntoView {
    let store = store();
    let chosen = move |event: ev::Event| {
        let input = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
        let Some(input) = input else { return };
        store.attach(browser::files_of(input.files()));
        // The same file may be chosen again.
        input.set_value("");
    };
    view! {
        <label class="button button-icon attach" title=texts().attach.title()>
            <Icon symbol=Symbol::Clip />
            <input type="file" multiple class="visually-hidden" aria-label=texts().attach.title() on:change=chosen />
        </label>
    }
}
