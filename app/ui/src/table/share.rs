//! How the work is shared: the host's choice, and what spreading the experts costs.

use leptos::prelude::*;
use potluck_panel::Sharing;
use potluck_text::texts;

use crate::state::store;

/// The host can change how the work is shared at any time. Experts are offered for models that have some.
#[component]
pub fn ShareChoice() -> impl IntoView {
    let store = store();
    let share = Memo::new(move |_| {
        store.room.status.with(|status| {
            let host = status.role.coordinator;
            status.plan.as_ref().filter(|_| host).map(|plan| plan.sharing)
        })
    });
    // Experts a block, and blocks.
    let sizes = Memo::new(move |_| {
        store
            .room
            .status
            .with(|status| status.model.as_ref().map(|model| (u32::from(model.experts), u32::from(model.blocks))))
    });
    let option = move |sharing: Sharing| {
        let hint = move || {
            let (experts, blocks) = sizes.get().unzip();
            texts().sharing.hint(sharing, experts, blocks)
        };
        view! {
            <label class="check share-option">
                <input
                    type="radio"
                    name="room-share"
                    prop:checked=move || share.get() == Some(sharing)
                    on:change=move |_| store.set_sharing(sharing)
                />
                <span>{texts().sharing.of(sharing)}<small class="hint">{hint}</small></span>
            </label>
        }
    };
    let has_experts = move || sizes.get().is_some_and(|(experts, _)| experts > 0);
    view! {
        <Show when=move || share.get().is_some()>
            <fieldset class="group">
                <legend>{texts().options.share()}</legend>
                {[Sharing::Fastest, Sharing::Everyone].map(option)}
                <Show when=move || has_experts() || share.get() == Some(Sharing::Experts)>
                    {option(Sharing::Experts)}
                </Show>
            </fieldset>
        </Show>
    }
}

/// "Experts are not spread: with 48 round trips, a token would take 96 ms more."
#[component]
pub fn Spreading() -> impl IntoView {
    let store = store();
    let sentence = move || store.room.status.with(|status| status.plan.as_ref()?.spreading.clone());
    view! { <p class="plan-line spreading hint">{sentence}</p> }
}
