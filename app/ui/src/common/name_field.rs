//! What others call this device.

use leptos::prelude::*;
use potluck_text::texts;

use crate::state::store;

/// A field for this device's name.
#[component]
pub fn NameField(
    /// Says what else is called so.
    #[prop(optional, into)]
    hint: Option<&'static str>,
) -> impl IntoView {
    let store = store();
    view! {
        <label class="labelled">
            <span>{texts().device.name()}{hint.map(|hint| view! { <small class="hint">{hint}</small> })}</span>
            <input
                class="field"
                type="text"
                maxlength="40"
                autocomplete="off"
                prop:value=move || store.own_name()
                on:change=move |event| store.rename(&event_target_value(&event))
            />
        </label>
    }
}
