//! The tab "Link": the address of a GGUF file, typed, kept or from the catalogue.

use leptos::prelude::*;
use potluck_text::texts;

use super::{
    catalog::{OwnLinks, WellKnown},
    choice::{Choice, is_gguf_address},
};

/// The field for the address, and the addresses to choose from.
#[component]
pub fn FromLink(choice: Choice) -> impl IntoView {
    let wrong = move || {
        let link = choice.link.get();
        let link = link.trim();
        (!link.is_empty() && !is_gguf_address(link)).then_some(texts().host.no_gguf_address())
    };
    view! {
        <label class="labelled">
            <span>{texts().host.address()}</span>
            <input
                class="field"
                type="url"
                autocomplete="off"
                placeholder="https://…/model.gguf"
                aria-describedby="gguf-wrong"
                prop:value=move || choice.link.get()
                on:input=move |event| choice.set_link(event_target_value(&event))
            />
        </label>
        <p class="field-wrong" id="gguf-wrong" aria-live="polite">{wrong}</p>
        <p class="hint">
            {texts().host.address_hint()}
        </p>
        <OwnLinks choice />
        <WellKnown choice />
    }
}
