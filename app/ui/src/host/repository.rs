//! The files of a repository whose link is in the field: one of them is to be chosen.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use potluck_panel::{ListedFile, ModelLink, Repository};
use potluck_text::texts;

use super::{choice::Choice, link_request};
use crate::{
    state::{Store, store},
    text::bytes,
};

/// Milliseconds without a key after which a name is taken as whole: what is typed until then is not sent anywhere.
const PAUSE: u32 = 700;

/// What is known of a repository's files.
#[derive(Clone, Debug, PartialEq)]
enum Listed {
    /// The list is on its way.
    Asking,
    /// Its files, at least one.
    Files(Vec<ListedFile>),
    /// Why there are none: a sentence.
    Nothing(String),
}

/// The files of the repository in the field; nothing for other links.
#[component]
pub fn RepositoryFiles(choice: Choice) -> impl IntoView {
    let store = store();
    let shown = RwSignal::new(None::<(Repository, Listed)>);
    // The repository in the field; or, once one of its files was chosen, the repository that is shown.
    let wanted = Memo::new(move |_| match choice.link.get().parse::<ModelLink>() {
        Ok(ModelLink::Repository(repository)) => Some(repository),
        Ok(ModelLink::File(address)) => shown.with_untracked(|shown| match shown {
            Some((repository, Listed::Files(files))) => {
                files.iter().any(|file| file.address == address).then(|| repository.clone())
            }
            _ => None,
        }),
        Err(_) => None,
    });
    Effect::new(move |_| {
        let Some(repository) = wanted.get() else { return shown.set(None) };
        if shown.with_untracked(|shown| shown.as_ref().is_some_and(|(known, _)| *known == repository)) {
            return;
        }
        shown.set(None);
        leptos::task::spawn_local(async move {
            TimeoutFuture::new(PAUSE).await;
            // Whoever typed on means another one.
            let is_meant = wanted.try_get_untracked().flatten().as_ref() == Some(&repository);
            if !is_meant || shown.with_untracked(|shown| shown.as_ref().is_some_and(|(known, _)| *known == repository))
            {
                return;
            }
            shown.set(Some((repository.clone(), Listed::Asking)));
            let listed = list(store, &repository).await;
            let waits = |now: &Option<(Repository, Listed)>| now.as_ref().is_some_and(|(now, _)| *now == repository);
            // Whoever closed the dialog or typed on is no longer interested.
            if !shown.try_with_untracked(waits).unwrap_or(false) {
                return;
            }
            if let Listed::Files(files) = &listed
                && let [file] = files.as_slice()
                && repository.wanted.is_some()
                && repository.is_wanted(file)
            {
                choice.set_link(file.address.clone());
            }
            shown.set(Some((repository, listed)));
        });
    });
    let content = move || {
        shown.get().map(|(repository, listed)| match listed {
            Listed::Asking => view! { <p class="hint">{texts().host.listing(&repository.name)}</p> }.into_any(),
            Listed::Nothing(sentence) => view! { <p class="field-wrong">{sentence}</p> }.into_any(),
            Listed::Files(files) => view! { <Files repository files choice /> }.into_any(),
        })
    };
    view! { <div aria-live="polite">{content}</div> }
}

#[component]
fn Files(repository: Repository, files: Vec<ListedFile>, choice: Choice) -> impl IntoView {
    let missing = repository.wanted.as_ref().filter(|_| !files.iter().any(|file| repository.is_wanted(file)));
    let missing = missing.map(|wanted| {
        view! { <p class="field-wrong">{texts().host.not_in_list(&repository.name, wanted)}</p> }
    });
    let cards = files.into_iter().map(|file| view! { <FileCard file choice /> }).collect_view();
    view! {
        <section class="known" aria-labelledby="repository-files">
            <h3 id="repository-files">{texts().host.files_of(&repository.name)}</h3>
            {missing}
            <div class="cards" role="radiogroup" aria-labelledby="repository-files">{cards}</div>
        </section>
    }
}

#[component]
fn FileCard(file: ListedFile, choice: Choice) -> impl IntoView {
    let ListedFile { path, bytes: size, address } = file;
    let address = StoredValue::new(address);
    let chosen = Memo::new(move |_| choice.link.with(|link| address.with_value(|address| link == address)));
    view! {
        <div class="card" class:card-chosen=move || chosen.get()>
            <label class="model-card">
                <input
                    type="radio"
                    name="repository-file"
                    prop:checked=move || chosen.get()
                    on:change=move |_| choice.set_link(address.get_value())
                />
                <span class="card-words"><strong>{path}</strong><span class="facts">{bytes(size)}</span></span>
            </label>
        </div>
    }
}

async fn list(store: Store, repository: &Repository) -> Listed {
    let unknown = || Listed::Nothing(texts().host.no_list(&repository.name));
    let Ok(answer) = link_request::get(store, &repository.listing()).send().await else { return unknown() };
    if !answer.ok() {
        return unknown();
    }
    match answer.text().await.ok().and_then(|listing| repository.files(&listing)) {
        Some(files) if files.is_empty() => Listed::Nothing(texts().host.no_models(&repository.name)),
        Some(files) => Listed::Files(files),
        None => unknown(),
    }
}
