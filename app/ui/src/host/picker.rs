//! The picker: three tabs, the verdict, one button.

use leptos::{ev, prelude::*};
use potluck_text::texts;
use wasm_bindgen::JsCast;

use super::{
    choice::{Choice, Tab},
    from_device::FromDevice,
    from_link::FromLink,
    from_relay::FromRelay,
    open::{Check, DoubtView, button_words, is_asking, open},
    options::Options,
};
use crate::{
    browser,
    common::Dialog,
    state::{DialogKind, store},
};

/// The dialog behind "Host a model".
#[component]
pub fn HostPicker() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Host title=texts().host.title() wide=true>
            <Picker />
        </Dialog>
    }
}

#[component]
fn Picker() -> impl IntoView {
    let store = store();
    let choice = Choice::new(store);
    let opening = move || store.room.opening.with(Option::is_some);
    let ready = move || choice.source().is_some() && !opening() && !is_asking(choice);
    view! {
        <Tabs choice />
        <div class="dialog-body" role="tabpanel" aria-labelledby=move || choice.tab.get().id()>
            {move || match choice.tab.get() {
                Tab::Here => view! { <FromRelay choice /> }.into_any(),
                Tab::Link => view! { <FromLink choice /> }.into_any(),
                Tab::Device => view! { <FromDevice choice /> }.into_any(),
            }}
            <Options choice />
        </div>
        <footer class="dialog-foot">
            <DoubtView choice />
            <label class="check">
                <input
                    type="checkbox"
                    prop:checked=move || choice.visible.get()
                    on:change=move |event| choice.visible.set(event_target_checked(&event))
                />
                <span>{texts().host.list_it()}</span>
            </label>
            <button
                type="button"
                class="button button-main button-large"
                disabled=move || !ready()
                on:click=move |_| open(store, choice)
            >
                {move || button_words(store, choice)}
            </button>
        </footer>
    }
}

/// The tabs; the arrow keys move between them.
#[component]
fn Tabs(choice: Choice) -> impl IntoView {
    let keys = move |event: ev::KeyboardEvent| {
        let step = match event.key().as_str() {
            "ArrowRight" => 1,
            "ArrowLeft" => Tab::ALL.len() - 1,
            _ => return,
        };
        let now = Tab::ALL.iter().position(|tab| *tab == choice.tab.get_untracked()).unwrap_or(0);
        let next = Tab::ALL[(now + step) % Tab::ALL.len()];
        choice.check.set(Check::None);
        choice.tab.set(next);
        let element = browser::window().document().and_then(|document| document.get_element_by_id(next.id()));
        if let Some(element) = element.and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
            // Ignore the error: an element that cannot take the focus leaves it where it is.
            let _focused = element.focus();
        }
    };
    let tab = move |tab: Tab| {
        let chosen = move || choice.tab.get() == tab;
        view! {
            <button
                type="button"
                role="tab"
                class="tab"
                id=tab.id()
                aria-selected=move || chosen().to_string()
                tabindex=move || if chosen() { "0" } else { "-1" }
                on:click=move |_| {
                    choice.check.set(Check::None);
                    choice.tab.set(tab);
                }
            >
                {tab.name()}
            </button>
        }
    };
    view! {
        <div class="tabs" role="tablist" aria-label=texts().host.origin() on:keydown=keys>
            {Tab::ALL.map(tab).collect_view()}
        </div>
    }
}
