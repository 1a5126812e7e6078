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
    let plan = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Waiting && plan.waiting.is_none())?;
    (status.model.is_none() && !plan.reason.is_empty()).then_some(plan.reason.as_str())
}

/// Takes the place of the conversation.
#[component]
pub fn Failure() -> impl IntoView {
    let store = store();
    let texts = &texts().failure;
    let why = move || store.room.status.with(|status| failure(status).map(str::to_owned));
    let hosts = move || store.room.status.with(|status| status.role.coordinator);
    view! {
        <div class="turns">
            <section class="turns-column failure" role="alert">
                <Icon symbol=Symbol::Warning />
                <h2>{texts.title}</h2>
                <p>{why}</p>
                <Show when=hosts fallback=move || view! { <p class="hint">{texts.guest}</p> }>
                    <p class="hint">{texts.host}</p>
                </Show>
                <div class="row row-centre">
                    <Show when=hosts>
                        <button
                            type="button"
                            class="button button-main"
                            on:click=move |_| store.screen.dialog.set(Some(DialogKind::Host))
                        >
                            "Choose another model"
                        </button>
                    </Show>
                    <button type="button" class="button" on:click=move |_| store.leave()>"Leave the table"</button>
                </div>
            </section>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{PlanReport, Waiting};

    use super::*;
    use crate::table::fixtures::plan_of;

    #[test]
    fn only_a_room_without_a_model_has_failed() {
        let waiting = |reason: &str| PlanReport { state: PlanStatus::Waiting, reason: reason.into(), ..plan_of(&[]) };
        let with = |plan| Status { plan: Some(plan), ..Status::default() };
        assert_eq!(failure(&Status::default()), None, "it still opens");
        assert_eq!(failure(&with(waiting(""))), None);
        assert_eq!(failure(&with(waiting("The file is truncated."))), Some("The file is truncated."));
        let missing = Some(Waiting { sentence: "2 MB more.".into(), needed: 2, lent: 0 });
        assert_eq!(failure(&with(PlanReport { waiting: missing, ..waiting("") })), None, "it waits for devices");
    }
}
