//! How the work is shared: the host's switches, and what spreading the experts costs.

use leptos::prelude::*;
use potluck_panel::{Sharing, ToNode};

use crate::state::store;

/// The host can change how the work is shared at any time.
#[component]
pub fn ShareSwitches() -> impl IntoView {
    let store = store();
    let share = Memo::new(move |_| {
        store.room.status.with(|status| {
            let host = status.role.coordinator;
            status.plan.as_ref().filter(|_| host).map(|plan| plan.sharing)
        })
    });
    let has_experts = Memo::new(move |_| {
        store.room.status.with(|status| status.model.as_ref().is_some_and(|model| model.experts > 0))
    });
    let switch = move |sharing: Sharing, name: &'static str, hint: &'static str| {
        let change = move |event| {
            let on = event_target_checked(&event);
            store.send(ToNode::SetSharing(if on { sharing } else { Sharing::Fastest }));
        };
        view! {
            <label class="check share-switch">
                <input
                    type="checkbox"
                    role="switch"
                    class="switch"
                    prop:checked=move || share.get() == Some(sharing)
                    on:change=change
                />
                <span>{name}<small class="hint">{hint}</small></span>
            </label>
        }
    };
    view! {
        <Show when=move || share.get().is_some()>
            {switch(
                Sharing::Everyone,
                "Everyone takes part",
                "Every device gets work. Each one adds a network hop.",
            )}
            <Show when=move || has_experts.get()>
                {switch(
                    Sharing::Experts,
                    "Spread the experts",
                    "Most are on two devices, so answers go on when one leaves. Up to one round trip per block and token.",
                )}
            </Show>
        </Show>
    }
}

/// "Experts are not spread: 48 round trips a token would take 96 ms more."
#[component]
pub fn Spreading() -> impl IntoView {
    let store = store();
    let sentence = move || store.room.status.with(|status| status.plan.as_ref()?.spreading.clone());
    view! { <p class="plan-line spreading hint">{sentence}</p> }
}
