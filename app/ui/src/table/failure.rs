//! A room whose model could not be opened: what happened, and what to do next.

use leptos::prelude::*;
use potluck_panel::{PlanStatus, Status};
use potluck_text::texts;

use crate::{
    common::{Icon, Symbol},
    state::{DialogKind, store},
};

/// Why the room has no model and will have none; `None` if it has one or still opens one.
#[must_use]
pub fn failure(status: &Status) -> Option<&str> {
    status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Failed).map(|plan| plan.reason.as_str())
}

/// Takes the place of the conversation.
#[component]
pub fn Failure() -> impl IntoView {
    let store = store();
    let (texts, leave) = (&texts().failure, texts().leave.title());
    let why = move || store.room.status.with(|status| failure(status).map(str::to_owned));
    let hosts = move || store.room.status.with(|status| status.role.coordinator);
    view! {
        <div class="turns">
            <section class="turns-column failure" role="alert">
                <Icon symbol=Symbol::Warning />
                <h2>{texts.title()}</h2>
                <p>{why}</p>
                <Show when=hosts fallback=move || view! { <p class="hint">{texts.guest()}</p> }>
                    <p class="hint">{texts.host()}</p>
                </Show>
                <div class="row row-centre">
                    <Show when=hosts>
                        <button
                            type="button"
                            class="button button-main"
                            on:click=move |_| store.screen.dialog.set(Some(DialogKind::Host))
                        >
                            {texts.choose_another()}
                        </button>
                    </Show>
                    <button type="button" class="button" on:click=move |_| store.ask_to_leave()>{leave}</button>
                </div>
            </section>
        </div>
    }
}
