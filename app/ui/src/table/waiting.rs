//! Shown instead of the table: connecting, waiting for the host, or closed.

use leptos::prelude::*;
use potluck_panel::Connection;

use crate::{
    common::{Icon, Symbol},
    state::store,
};

/// What keeps this device from the table; empty once it has a seat.
#[component]
pub fn Threshold() -> impl IntoView {
    let store = store();
    let connection = Memo::new(move |_| store.room.status.with(|status| status.connection.clone()));
    let name = move || store.own_name();
    let words = move || store.room.status.with(|status| status.words.clone());
    // A guest with the room's key is admitted without asking.
    let has_key = move || {
        let key = store.session.with(|session| session.place.as_ref().and_then(|place| place.key.clone()));
        // The host may want to be asked about an invite, which only the host can tell.
        key.is_some_and(|key| !key.contains('.'))
    };
    move || {
        match connection.get() {
        Connection::WaitingForHost => view! {
            <section class="card threshold" aria-live="polite">
                <Icon symbol=Symbol::Pot />
                <div>
                    <h2>{move || if has_key() { "Waiting for the host" } else { "Asking the host to let you in" }}</h2>
                    <p class="hint">
                        {move || if has_key() {
                            "You join as soon as the host is here. There is nothing for you to do.".into()
                        } else {
                            format!("They see “{} wants to join”. There is nothing for you to do.", name())
                        }}
                    </p>
                    <p class="hint">"Your three words: "<strong class="words">{words}</strong>". The host sees the same ones, so you can compare."</p>
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
                        <button type="button" class="button" on:click=move |_| store.leave()>"Go to the front door"</button>
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
