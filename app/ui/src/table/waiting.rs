//! Shown instead of the table: connecting, waiting for the host, or closed.

use leptos::prelude::*;
use potluck_panel::Connection;

use crate::{
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
    let words = move || store.room.status.with(|status| status.words.clone());
    let came_by = move || {
        store.session.with(|session| CameBy::key(session.place.as_ref().and_then(|place| place.key.as_deref())))
    };
    move || {
        match connection.get() {
        Connection::WaitingForHost => view! {
            <section class="card threshold" aria-live="polite">
                <Icon symbol=Symbol::Pot />
                <div>
                    <h2>{move || if came_by() == CameBy::List { "Asking the host to let you in" } else { "Waiting for the host" }}</h2>
                    <p class="hint">
                        {move || match came_by() {
                            CameBy::Link => "You join as soon as the host is here. There is nothing for you to do.".into(),
                            CameBy::Invite => "You join as soon as the host is here and has let you in. There is nothing for you to do.".into(),
                            CameBy::List => format!("They see “{} wants to join”. There is nothing for you to do.", name()),
                        }}
                    </p>
                    <Show when=move || came_by() != CameBy::Link>
                        <p class="hint">"Your three words: "<strong class="words">{words}</strong>". The host sees the same ones, so you can compare."</p>
                    </Show>
                </div>
            </section>
        }
        .into_any(),
        Connection::Closed { reason } => view! {
            <section class="card threshold threshold-closed" role="alert">
                <Icon symbol=Symbol::Warning />
                <div>
                    <h2>"This table is closed to you now"</h2>
                    <p>{reason}</p>
                    <div class="row">
                        <button type="button" class="button button-main" on:click=move |_| store.resume()>"Try again"</button>
                        <button type="button" class="button" on:click=move |_| store.go_to_front()>"Go to the front door"</button>
                    </div>
                </div>
            </section>
        }
        .into_any(),
        Connection::Reconnecting { attempt } => view! {
            <section class="card threshold" aria-live="polite">
                <Icon symbol=Symbol::Again />
                <div>
                    <h2>"The connection to the relay is lost"</h2>
                    <p class="hint">{format!("Trying again, attempt {attempt}. The answer continues once the connection is back.")}</p>
                </div>
            </section>
        }
        .into_any(),
        Connection::Idle | Connection::Connecting | Connection::Connected => ().into_any(),
    }
    }
}
