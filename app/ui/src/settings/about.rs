//! Version, release hash, licences, privacy.

use leptos::prelude::*;
use potluck_panel::BUILD;
use potluck_text::texts;

use super::diagnostics::Diagnostics;
use crate::{browser, common::Privacy, relay};

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
            <Release />
            <Privacy />
            <Diagnostics />
        </section>
    }
}

/// The hash of the page's release, as this relay says it, and what it proves.
#[component]
fn Release() -> impl IntoView {
    let hash = RwSignal::new(None);
    leptos::task::spawn_local(async move {
        let found = relay::release_hash().await;
        // The drawer may be closed by now.
        hash.try_set(Some(found));
    });
    let settings = &texts().settings;
    move || match hash.get() {
        None => ().into_any(),
        Some(Err(_)) => view! { <p class="hint">{settings.release_unknown()}</p> }.into_any(),
        Some(Ok(None)) => view! { <p class="hint">{settings.no_release()}</p> }.into_any(),
        Some(Ok(Some(hash))) => {
            let [before, after] = settings.release();
            let hint = settings.release_hint(browser::home());
            view! {
                <p>{before}<span class="mono">{hash}</span>{after}</p>
                <p class="hint">{hint}</p>
            }
            .into_any()
        }
    }
}
