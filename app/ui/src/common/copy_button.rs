//! A copy button.

use leptos::prelude::*;
use potluck_panel::NoticeLevel;
use potluck_text::texts;

use super::{Icon, Symbol};
use crate::{browser, state::store};

/// How long "Copied" stays visible, milliseconds.
const SHOWN: u32 = 1_800;

/// Copies text and confirms it.
#[component]
pub fn CopyButton(
    /// The text to copy.
    #[prop(into)]
    text: Signal<String>,
    /// The button's label.
    #[prop(optional, into)]
    label: Option<&'static str>,
    /// The label is for screen readers; the icon is seen.
    #[prop(optional)]
    icon_only: bool,
    /// The button's CSS class.
    #[prop(optional)]
    class: Option<&'static str>,
) -> impl IntoView {
    let store = store();
    let label = label.unwrap_or(texts().button.copy());
    let copied = RwSignal::new(false);
    let copy = move |_| {
        let text = text.get_untracked();
        leptos::task::spawn_local(async move {
            if browser::copy_text(&text).await {
                copied.try_set(true);
                gloo_timers::future::TimeoutFuture::new(SHOWN).await;
                copied.try_set(false);
            } else {
                store.tell(NoticeLevel::Warning, texts().notice.cannot_copy(), text);
            }
        });
    };
    let said = move || if copied.get() { texts().button.copied() } else { label };
    view! {
        <button
            type="button"
            class=class.unwrap_or("button button-quiet")
            aria-label=move || icon_only.then(said)
            on:click=copy
        >
            <Icon symbol=Signal::derive(move || if copied.get() { Symbol::Check } else { Symbol::Copy }) />
            {(!icon_only).then(|| view! { <span>{said}</span> })}
        </button>
    }
}
