//! A person's own addresses, kept in this browser.

use leptos::prelude::*;

use crate::{
    common::{Icon, Symbol},
    host::choice::{Choice, is_gguf_address},
    state::store,
};

/// The kept addresses, and a button that keeps the one in the field.
#[component]
pub fn OwnLinks(choice: Choice) -> impl IntoView {
    let store = store();
    let links = Memo::new(move |_| store.settings.with(|settings| settings.links.clone()));
    let new = Memo::new(move |_| {
        let link = choice.link.get().trim().to_owned();
        let is_new = is_gguf_address(&link) && choice.entry().is_none() && links.with(|links| !links.contains(&link));
        is_new.then_some(link)
    });
    let keep = move |_| {
        if let Some(link) = new.get_untracked() {
            store.set(|settings| settings.keep_link(&link));
        }
    };
    view! {
        <Show when=move || new.with(Option::is_some)>
            <button type="button" class="button button-quiet known-keep" on:click=keep>"Keep this address"</button>
        </Show>
        <Show when=move || links.with(|links| !links.is_empty())>
            <section class="known" aria-labelledby="own-links">
                <h3 id="own-links">"Your addresses"</h3>
                <ul class="cards">
                    {move || links.get().into_iter().map(|link| view! { <OwnLink link choice /> }).collect_view()}
                </ul>
            </section>
        </Show>
    }
}

#[component]
fn OwnLink(link: String, choice: Choice) -> impl IntoView {
    let store = store();
    let (name, host) = parts(&link);
    let forget = format!("Forget {name}");
    let link = StoredValue::new(link);
    let chosen = Memo::new(move |_| choice.link.with(|now| link.with_value(|link| now.trim() == link)));
    let remove = move |_| store.set(|settings| settings.links.retain(|kept| link.with_value(|link| kept != link)));
    view! {
        <li class="card own-link" class:card-chosen=move || chosen.get()>
            <label class="model-card">
                <input
                    type="radio"
                    name="known-model"
                    prop:checked=move || chosen.get()
                    on:change=move |_| choice.set_link(link.get_value())
                />
                <span class="card-words"><strong>{name}</strong><span class="facts">{host}</span></span>
            </label>
            <button type="button" class="button button-icon" aria-label=forget on:click=remove>
                <Icon symbol=Symbol::Bin />
            </button>
        </li>
    }
}

/// An address's file and its server.
fn parts(link: &str) -> (String, String) {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let server = path.split('/').nth(2).unwrap_or_default();
    (name.to_owned(), server.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_file_and_server() {
        let expected = ("model.gguf".to_owned(), "example.org".to_owned());
        assert_eq!(parts("https://example.org/a/model.gguf?download=true"), expected);
    }
}
