//! The tab "Link": a model's link as people have it, typed, kept or from the catalogue.

use leptos::prelude::*;
use potluck_panel::ModelLink;
use potluck_text::texts;

use super::{
    catalog::{OwnLinks, WellKnown},
    choice::Choice,
    repository::RepositoryFiles,
};

/// The field for the link, the files of a repository, and the addresses to choose from.
#[component]
pub fn FromLink(choice: Choice) -> impl IntoView {
    let wrong = move || {
        let link = choice.link.get();
        let is_wrong = !link.trim().is_empty() && link.parse::<ModelLink>().is_err();
        is_wrong.then_some(texts().host.no_gguf_address())
    };
    view! {
        <label class="labelled">
            <span>{texts().host.address()}</span>
            <input
                class="field"
                type="text"
                inputmode="url"
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
                placeholder="https://…/model.gguf"
                aria-describedby="gguf-wrong"
                prop:value=move || choice.link.get()
                on:input=move |event| choice.set_link(event_target_value(&event))
            />
        </label>
        <p class="field-wrong" id="gguf-wrong" aria-live="polite">{wrong}</p>
        <RepositoryFiles choice />
        <p class="hint">
            {texts().host.address_hint()}
        </p>
        <OwnLinks choice />
        <WellKnown choice />
    }
}
