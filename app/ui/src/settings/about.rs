//! Version, licences, privacy.

use leptos::prelude::*;
use potluck_panel::BUILD;

use crate::common::Privacy;

/// The section about Potluck itself.
#[component]
pub fn About() -> impl IntoView {
    view! {
        <section class="settings-part" aria-label="About">
            <h3>"About"</h3>
            <p>"Potluck, build "<span class="mono">{BUILD}</span></p>
            <p class="hint">
                "Free software under the MIT licence or the Apache licence 2.0, at your option. Models have their own licences."
            </p>
            <Privacy />
        </section>
    }
}
