//! Version, licences, privacy.

use leptos::prelude::*;
use potluck_panel::BUILD;
use potluck_text::texts;

use crate::common::Privacy;

/// The section about Potluck itself.
#[component]
pub fn About() -> impl IntoView {
    let [build, _] = texts().settings.build();
    view! {
        <section class="settings-part" aria-label=texts().settings.about()>
            <h3>{texts().settings.about()}</h3>
            <p>{build}<span class="mono">{BUILD}</span></p>
            <p class="hint">
                {texts().settings.licence()}
            </p>
            <Privacy />
        </section>
    }
}
