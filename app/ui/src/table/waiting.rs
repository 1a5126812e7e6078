//! Shown instead of the table: connecting, waiting for the host, or closed.

use leptos::prelude::*;
use potluck_panel::Connection;
use potluck_relay_api::path;
use potluck_text::texts;

use crate::{
    browser,
    common::{Icon, Symbol},
    state::store,
};

/// How this tab came to the room: the host is not asked about the room's own link, and about an invite only if it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CameBy {
    Link,
    Invite,
    List,
}

impl CameBy {
    fn key(key: Option<&str>) -> Self {
        match key {
            None => Self::List,
            Some(key) if key.contains('.') => Self::Invite,
            Some(_) => Self::Link,
        }
    }
}

/// What keeps this device from the table; empty once it has a seat.
#[component]
pub fn Threshold() -> impl IntoView {
    let store = store();
    let connection = Memo::new(move |_| store.room.status.with(|status| status.connection.clone()));
    let name = move || store.own_name();
    let words = Memo::new(move |_| store.room.status.with(|status| status.host_words.clone()));
    let came_by = move || {
        store.session.with(|session| CameBy::key(session.place.as_ref().and_then(|place| place.key.as_deref())))
    };
    move || {
        match connection.get() {
        Connection::WaitingForHost => view! {
            <section class="card threshold" aria-live="polite">
                <Icon symbol=Symbol::Pot />
                <div>
                    <h2>{move || if came_by() == CameBy::List { texts().request.asking() } else { texts().request.waiting() }}</h2>
                    <p class="hint">
                        {move || match came_by() {
                            CameBy::Link => texts().request.by_link().into(),
                            CameBy::Invite => texts().request.by_invite().into(),
                            CameBy::List => texts().request.by_list(name()),
                        }}
                    </p>
                    {move || words.get().filter(|_| came_by() != CameBy::Link).map(|words| {
                        let [before, behind] = texts().request.own_words();
                        view! { <p class="hint">{before}<strong class="words">{words}</strong>{behind}</p> }
                    })}
                </div>
            </section>
        }
        .into_any(),
        Connection::Closed { reason } => view! {
            <section class="card threshold threshold-closed" role="alert">
                <Icon symbol=Symbol::Warning />
                <div>
                    <h2>{texts().connection.closed_heading()}</h2>
                    <p>{reason}</p>
                    <div class="row">
                        <button type="button" class="button button-main" on:click=move |_| store.resume()>{texts().connection.try_again()}</button>
                        <button type="button" class="button" on:click=move |_| store.go_to_front()>{texts().connection.go_to_front()}</button>
                    </div>
                </div>
            </section>
        }
        .into_any(),
        Connection::Reconnecting { attempt, .. } => view! {
            <section class="card threshold" aria-live="polite">
                <Icon symbol=Symbol::Again />
                <div>
                    <h2>{texts().connection.lost()}</h2>
                    <p class="hint">{texts().connection.trying(attempt)}</p>
                </div>
            </section>
        }
        .into_any(),
        Connection::SocketsRefused { .. } => view! {
            <section class="card threshold" role="alert">
                <Icon symbol=Symbol::Warning />
                <div>
                    <h2>{texts().connection.sockets_refused_heading()}</h2>
                    <p class="hint">{texts().connection.sockets_refused_why()}</p>
                    <div class="row">
                        <a class="button button-main" href=browser::at(path::CERTIFICATE) target="_blank">{texts().connection.install_certificate()}</a>
                    </div>
                </div>
            </section>
        }
        .into_any(),
        Connection::Idle | Connection::Connecting | Connection::Connected => ().into_any(),
    }
    }
}
