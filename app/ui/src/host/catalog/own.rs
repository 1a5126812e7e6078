//! A person's own addresses, kept in this browser.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    common::{Icon, Symbol},
    host::choice::Choice,
    state::store,
};

/// The kept addresses, and a button that keeps the one in the field.
#[component]
pub fn OwnLinks(choice: Choice) -> impl IntoView {
    let store = store();
    let links = Memo::new(move |_| store.settings.with(|settings| settings.links.clone()));
    let new = Memo::new(move |_| {
        let link = choice.address()?;
        let is_new = choice.entry().is_none() && links.with(|links| !links.contains(&link));
        is_new.then_some(link)
    });
    let keep = move |_| {
        if let Some(link) = new.get_untracked() {
            store.set(|settings| settings.keep_link(&link));
        }
    };
    view! {
        <Show when=move || new.with(Option::is_some)>
            <button type="button" class="button button-quiet known-keep" on:click=keep>{texts().catalog.keep()}</button>
        </Show>
        <Show when=move || links.with(|links| !links.is_empty())>
            <section class="known" aria-labelledby="own-links">
                <h3 id="own-links">{texts().catalog.own()}</h3>
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
    let forget = texts().catalog.forget(&name, &host);
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

/// An address's file, and where it lies: server and folder, without a name and password.
fn parts(link: &str) -> (String, String) {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let (_, place) = path.split_once("://").unwrap_or(("", path));
    let (folder, name) = place.rsplit_once('/').unwrap_or((place, ""));
    let (server, rest) = folder.split_once('/').map_or((folder, ""), |(server, rest)| (server, rest));
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    (name.to_owned(), format!("{server}/{rest}").trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_file_and_server() {
        let shown = |file: &str, place: &str| (file.to_owned(), place.to_owned());
        let expected = shown("model.gguf", "example.org/a");
        assert_eq!(parts("https://example.org/a/model.gguf?download=true"), expected);
        assert_eq!(parts("https://me:secret@example.org/model.gguf"), shown("model.gguf", "example.org"));
    }
}
