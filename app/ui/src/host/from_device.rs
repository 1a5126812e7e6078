//! The tab "This device": a file, selected or dropped.

use leptos::{ev, prelude::*};
use potluck_text::texts;
use wasm_bindgen::JsCast;

use super::{choice::Choice, verdict_view::VerdictView};
use crate::{
    common::{Icon, Symbol},
    state::store,
    text::bytes,
};

/// Accepts a GGUF file.
#[component]
pub fn FromDevice(choice: Choice) -> impl IntoView {
    let store = store();
    let over = RwSignal::new(false);
    let wrong = RwSignal::new(false);
    let take = move |files: Option<web_sys::FileList>| {
        if let Some(file) = files.and_then(|files| files.get(0)) {
            let gguf = file.name().to_ascii_lowercase().ends_with(".gguf");
            wrong.set(!gguf);
            choice.file.set(gguf.then_some(file));
        }
    };
    let opened = move |event: ev::Event| {
        let input = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
        take(input.and_then(|input| input.files()));
    };
    let dropped = move |event: ev::DragEvent| {
        event.prevent_default();
        over.set(false);
        take(event.data_transfer().and_then(|data| data.files()));
    };
    let dragged = move |event: ev::DragEvent| {
        event.prevent_default();
        over.set(true);
    };
    let size = move || choice.file.with(|file| file.as_ref().map(|file| file.size() as u64));
    let case = move || choice.case(size().unwrap_or(0), None, store.room.status.with(|status| status.device.bandwidth));
    view! {
        <label class="drop" class:drop-over=move || over.get() on:dragover=dragged on:dragleave=move |_| over.set(false) on:drop=dropped>
            <Icon symbol=Symbol::Plus />
            <strong>
                {move || choice.file.with(|file| file.as_ref().map_or_else(|| texts().host.open_file().into(), web_sys::File::name))}
            </strong>
            <span class="hint">
                {move || size().map_or_else(|| texts().host.file_stays().into(), bytes)}
            </span>
            <input type="file" accept=".gguf" class="visually-hidden" on:change=opened />
        </label>
        <p class="field-wrong" aria-live="polite">
            {move || wrong.get().then_some(texts().host.no_gguf_file())}
        </p>
        <Show when=move || size().is_some()>
            <div class="card"><VerdictView case=Signal::derive(case) choice /></div>
            <Protect choice />
        </Show>
    }
}

/// Keeps everything but experts here, and says what that is worth.
#[component]
fn Protect(choice: Choice) -> impl IntoView {
    view! {
        <label class="check">
            <input
                type="checkbox"
                prop:checked=move || choice.protect.get()
                on:change=move |event| choice.protect.set(event_target_checked(&event))
            />
            <span>{texts().own.protect()}</span>
        </label>
        <p class="hint">{texts().own.protect_hint()}</p>
    }
}
