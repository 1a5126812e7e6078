//! Access tokens for files that a server gives only to those it knows.

use leptos::{ev::SubmitEvent, prelude::*};
use potluck_panel::{AccessTokens, BadAccess, ToNode};
use potluck_text::texts;

use crate::{
    browser,
    common::{Icon, Symbol},
    state::{Store, store},
};

/// The servers with a token, and a form for one more.
#[component]
pub fn Access() -> impl IntoView {
    let store = store();
    let (server, token) = (RwSignal::new(AccessTokens::HUB.to_owned()), RwSignal::new(String::new()));
    let wrong = RwSignal::new(None::<BadAccess>);
    let servers =
        move || store.settings.with(|settings| settings.access_tokens.servers().map(str::to_owned).collect::<Vec<_>>());
    let keep = move |event: SubmitEvent| {
        event.prevent_default();
        let (server, value) = (server.get_untracked(), token.get_untracked());
        let mut with = store.settings.with_untracked(|settings| settings.access_tokens.clone());
        let kept = with.keep(&server, &value);
        wrong.set(kept.err());
        if kept.is_ok() {
            token.set(String::new());
            // Another tab may have stored more meanwhile.
            change(store, move |tokens| _ = tokens.keep(&server, &value));
        }
    };
    view! {
        <section class="settings-part" aria-label=texts().access.heading()>
            <h3>{texts().access.heading()}</h3>
            <p class="hint">{texts().access.hint()}</p>
            <ul class="stored">
                {move || servers().into_iter().map(|server| view! { <Row server /> }).collect_view()}
            </ul>
            <form class="access" on:submit=keep>
                <label class="labelled">
                    <span>{texts().access.server()}</span>
                    <input
                        class="field"
                        type="text"
                        inputmode="url"
                        autocomplete="off"
                        autocapitalize="off"
                        spellcheck="false"
                        prop:value=move || server.get()
                        on:input=move |event| server.set(event_target_value(&event))
                    />
                </label>
                <label class="labelled">
                    <span>{texts().access.token()}</span>
                    <input
                        class="field"
                        type="password"
                        autocomplete="off"
                        aria-describedby="access-wrong"
                        prop:value=move || token.get()
                        on:input=move |event| token.set(event_target_value(&event))
                    />
                </label>
                <p class="field-wrong" id="access-wrong" aria-live="polite">{move || wrong.get().map(sentence)}</p>
                <button type="submit" class="button">{texts().access.keep()}</button>
            </form>
        </section>
    }
}

#[component]
fn Row(server: String) -> impl IntoView {
    let store = store();
    let (label, question) = (texts().access.forget(&server), texts().access.confirm_forget(&server));
    let name = server.clone();
    let forget = move |_| {
        if browser::confirm(&question) {
            let server = server.clone();
            change(store, move |tokens| tokens.forget(&server));
        }
    };
    view! {
        <li class="stored-row">
            <span class="card-words"><strong>{name}</strong></span>
            <button type="button" class="button button-icon" aria-label=label on:click=forget>
                <Icon symbol=Symbol::Bin />
            </button>
        </li>
    }
}

/// Stores the tokens, and gives them to the node.
fn change(store: Store, change: impl Fn(&mut AccessTokens) + 'static) {
    leptos::task::spawn_local(async move {
        let stored = browser::change_access_tokens(&change).await;
        // They apply to this visit even if the browser stores nothing.
        store.settings.update(|settings| match stored {
            Ok(tokens) => settings.access_tokens = tokens,
            Err(_) => change(&mut settings.access_tokens),
        });
        store.send(ToNode::AccessTokens(store.settings.with_untracked(|settings| settings.access_tokens.clone())));
    });
}

fn sentence(wrong: BadAccess) -> &'static str {
    match wrong {
        BadAccess::Token => texts().access.bad_token(),
        BadAccess::Server => texts().access.bad_server(),
        BadAccess::TooMany => texts().access.too_many(),
    }
}
