//! The tab "Link": the address of a GGUF file, typed, kept or from the catalogue.

use leptos::prelude::*;

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
        (!link.is_empty() && !is_gguf_address(link))
            .then_some("This does not look like a GGUF file. The address must begin with https:// and end in .gguf.")
    };
    view! {
        <label class="labelled">
            <span>"Address of a GGUF file"</span>
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
            "For a split model, give the address of the first part. Every device in the room must be able to reach it."
        </p>
        <OwnLinks choice />
        <WellKnown choice />
    }
}
