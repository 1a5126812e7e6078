//! Opens the room; a listed file is examined first.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use potluck_text::texts;
use wasm_bindgen::JsCast;

use super::{
    catalog::{Doubt, FILTER, examine},
    choice::{Choice, Tab},
};
use crate::{browser, state::Store, state::store};

/// A server that does not answer for this long is taken for unreachable, milliseconds.
const PATIENCE: u32 = 20_000;

/// What is known of the listed file that the room shall open with.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Check {
    /// Nothing was asked, or all is well.
    #[default]
    None,
    /// The server was asked for the file at this address.
    Asking(String),
    /// It should not be loaded without a second look.
    Doubtful(Doubt),
}

/// Opens the room, unless the chosen file is a listed one that differs from its entry.
pub fn open(store: Store, choice: Choice) {
    let Some(entry) = untrack(|| choice.entry()) else { return start(store, choice) };
    let asking = Check::Asking(entry.address.clone());
    choice.check.set(asking.clone());
    // Whoever closed the dialog or chose otherwise is no longer interested.
    let waits = move |asking: &Check| choice.check.try_with_untracked(|now| now == asking).unwrap_or(false);
    let late = asking.clone();
    leptos::task::spawn_local(async move {
        TimeoutFuture::new(PATIENCE).await;
        if waits(&late) {
            choice.check.set(Check::Doubtful(Doubt::Unreachable));
        }
    });
    leptos::task::spawn_local(async move {
        let result = examine(store, &entry).await;
        if !waits(&asking) {
            return;
        }
        match result {
            Ok(()) => {
                choice.check.set(Check::None);
                start(store, choice);
            }
            Err(doubt) => choice.check.set(Check::Doubtful(doubt)),
        }
    });
}

fn start(store: Store, choice: Choice) {
    let Some(host) = untrack(|| choice.finish()) else { return };
    let file = choice.file.get_untracked().filter(|_| choice.tab.get_untracked() == Tab::Device);
    if choice.can_lend.get_untracked() {
        store.set(|settings| settings.lend = Some(host.budget));
    }
    store.host(host, file);
}

/// Says how a listed file differs, and what can be done.
#[component]
pub fn DoubtView(choice: Choice) -> impl IntoView {
    let store = store();
    let doubt = move || match choice.check.get() {
        Check::Doubtful(doubt) => Some(doubt),
        Check::None | Check::Asking(_) => None,
    };
    let another = move |_| {
        choice.set_link(String::new());
        let filter = browser::window().document().and_then(|document| document.get_element_by_id(FILTER));
        if let Some(filter) = filter.and_then(|filter| filter.dyn_into::<web_sys::HtmlElement>().ok()) {
            // Ignore the error: an element that cannot take the focus leaves it where it is.
            let _focused = filter.focus();
        }
    };
    let anyway = move |_| {
        choice.check.set(Check::None);
        start(store, choice);
    };
    view! {
        <div class="doubt" role="alert">
            {move || doubt().map(|doubt| view! {
                <p>{doubt.sentence()}</p>
                <div class="row">
                    <button type="button" class="button" on:click=another>{texts().host.choose_another()}</button>
                    {doubt.can_load().then(|| view! {
                        <button type="button" class="button" on:click=anyway>{texts().host.load_anyway()}</button>
                    })}
                </div>
            })}
        </div>
    }
}

/// The words on the button that opens the room.
pub fn button_words(store: Store, choice: Choice) -> &'static str {
    if store.room.opening.with(Option::is_some) {
        texts().host.opening()
    } else if is_asking(choice) {
        texts().catalog.checking()
    } else {
        texts().host.open()
    }
}

/// True while the server of a listed file is asked.
pub fn is_asking(choice: Choice) -> bool {
    choice.check.with(|check| matches!(check, Check::Asking(_)))
}
