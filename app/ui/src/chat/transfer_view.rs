//! Writes the open conversation into a file, and reads one from a file.

use leptos::{ev, prelude::*};
use potluck_text::texts;
use wasm_bindgen::JsCast;

use super::html_file;
use crate::{
    browser,
    state::{FileForm, ImportError, LARGEST_FILE, store},
};

/// Export and import, folded.
#[component]
pub fn Transfer() -> impl IntoView {
    let store = store();
    let empty = Memo::new(move |_| store.chats.open.with(|conversation| conversation.turns.is_empty()));
    let wrong = RwSignal::new(None::<ImportError>);
    let export = move |form: FileForm| {
        store.chats.open.with_untracked(|conversation| {
            browser::save_text(&form.file_name(conversation), form.media_type(), &form.write(conversation));
        });
    };
    let owner = StoredValue::new(Owner::current());
    let export_page = move |_| {
        store.chats.open.with_untracked(|conversation| {
            // What is drawn for the file goes with it.
            let owner = owner.with_value(|owner| owner.as_ref().map(Owner::child)).unwrap_or_default();
            let page = owner.with(|| html_file::write(conversation));
            browser::save_text(&format!("{}.html", conversation.file_stem()), "text/html", &page);
            owner.cleanup();
        });
    };
    let import = move |event: ev::Event| {
        let input = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
        let Some(input) = input else { return };
        let Some(file) = input.files().and_then(|files| files.get(0)) else { return };
        // The same file may be chosen again.
        input.set_value("");
        wrong.set(None);
        if file.size() > LARGEST_FILE as f64 {
            return wrong.set(Some(ImportError::TooLarge));
        }
        leptos::task::spawn_local(async move {
            let read = wasm_bindgen_futures::JsFuture::from(file.text()).await;
            let text = read.ok().and_then(|text| text.as_string()).unwrap_or_default();
            if let Err(error) = store.import_conversations(&text) {
                wrong.try_set(Some(error));
            }
        });
    };
    let press = move |form: FileForm, label: &'static str| {
        view! {
            <button type="button" class="button" disabled=move || empty.get() on:click=move |_| export(form)>{label}</button>
        }
    };
    let texts = &texts().transfer;
    view! {
        <details class="fold">
            <summary>{texts.title()}</summary>
            <div class="transfer">
                <p class="hint">{texts.export_hint()}</p>
                <div class="row">
                    {press(FileForm::Markdown, texts.markdown())}
                    <button type="button" class="button" disabled=move || empty.get() on:click=export_page>{texts.page()}</button>
                    {press(FileForm::Own, texts.own())}
                    {press(FileForm::Messages, texts.messages())}
                </div>
                <label class="labelled">
                    <span>{texts.import()}<small class="hint">{texts.import_hint()}</small></span>
                    <input class="field" type="file" accept=".json,application/json" on:change=import />
                </label>
                <p class="field-wrong" role="alert">{move || wrong.get().map(|error| error.to_string())}</p>
            </div>
        </details>
    }
}
