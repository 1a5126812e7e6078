//! System, light, dark.

use leptos::prelude::*;
use potluck_text::texts;

use crate::state::{Appearance, store};

/// Chooses between light, dark and the system's setting.
#[component]
pub fn AppearanceChoice() -> impl IntoView {
    let store = store();
    let option = move |appearance: Appearance, name: &'static str| {
        let chosen = move || store.settings.with(|settings| settings.appearance == appearance);
        view! {
            <label class="segment">
                <input
                    type="radio"
                    name="appearance"
                    prop:checked=chosen
                    on:change=move |_| store.set(|settings| settings.appearance = appearance)
                />
                <span>{name}</span>
            </label>
        }
    };
    view! {
        <fieldset class="group">
            <legend>{texts().settings.appearance()}</legend>
            <div class="segments">
                {option(Appearance::System, texts().settings.system())} {option(Appearance::Light, texts().settings.light())} {option(Appearance::Dark, texts().settings.dark())}
            </div>
        </fieldset>
    }
}
