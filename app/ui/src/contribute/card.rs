//! This device's own card at the table: lend, how much, how far, stop.

use leptos::prelude::*;
use potluck_panel::MemberState;

use super::phases::Phases;
use crate::{
    common::{Icon, LendSlider, Symbol},
    state::{Store, store},
    text::bytes,
};

/// What this device lends, and how that goes.
#[component]
pub fn ContributeCard() -> impl IntoView {
    let store = store();
    let lending = Memo::new(move |_| store.lends().is_some());
    view! {
        <section class="card own-card" aria-label="This device">
            <Show when=move || lending.get() fallback=|| view! { <Offer /> }>
                <Lending />
            </Show>
        </section>
    }
}

/// This device lends nothing yet.
#[component]
fn Offer() -> impl IntoView {
    let store = store();
    let webgpu = move || store.status.with(|status| status.device.trouble.is_none());
    view! {
        <div class="own-row">
            <p class="hint">
                {move || if webgpu() {
                    "This device only chats. Lend its GPU and the room gets room."
                } else {
                    "This device only chats: there is no WebGPU here."
                }}
            </p>
            <button
                type="button"
                class="button button-main"
                disabled=move || !webgpu()
                on:click=move |_| store.contribute(untrack(|| store.lend_by_default()))
            >
                <Icon symbol=Symbol::Plus />
                <span>"Contribute GPU"</span>
            </button>
        </div>
    }
}

#[component]
fn Lending() -> impl IntoView {
    let store = store();
    let loading = Memo::new(move |_| store.status.with(|status| status.loading.clone()));
    view! {
        <Show when=move || loading.with(Option::is_some)>
            {move || loading.get().map(|loading| view! { <Phases loading /> })}
        </Show>
        <p class="own-state">{move || own_sentence(store)}</p>
        <Adjust />
    }
}

/// One sentence on what this device does for the room.
fn own_sentence(store: Store) -> String {
    let lent = bytes(store.lends().unwrap_or(0));
    store.status.with(|status| {
        if status.plan.as_ref().is_some_and(|plan| plan.waiting.is_some()) {
            return format!("This device lends {lent}. The room waits for more.");
        }
        let own = status.peers.iter().find(|member| member.is_self);
        let why = own.and_then(|member| member.spare.clone());
        let standby = own.and_then(|member| member.standby.clone()).map(|whom| format!(" {whom}")).unwrap_or_default();
        match own.map(|member| (member.state, member.holds.join(", "))) {
            Some((MemberState::Ready, holds)) => {
                format!("This device lends {lent} and holds {holds}.{standby}")
            }
            Some((MemberState::Spare, _)) => {
                let why = why.unwrap_or_else(|| "The room does without this device now.".into());
                format!("A spare that lends {lent}.{standby} {why}")
            }
            Some((MemberState::Failed, _)) => "This device cannot take part now. Its notice says why.".into(),
            Some((MemberState::Loading, holds)) if !holds.is_empty() => format!("Getting {holds}."),
            _ => format!("This device lends {lent} and waits for its part."),
        }
    })
}

#[component]
fn Adjust() -> impl IntoView {
    let store = store();
    let value = RwSignal::new(untrack(|| store.lends()).unwrap_or_else(|| untrack(|| store.lend_by_default())));
    let changed = move || store.lends() != Some(value.get());
    view! {
        <details class="fold">
            <summary>"Change what this device lends"</summary>
            <LendSlider value label="Memory this device lends" />
            <p class="hint">{move || store.status.with(|status| room_for(status, value.get()))}</p>
            <label class="check">
                <input
                    type="checkbox"
                    role="switch"
                    class="switch"
                    prop:checked=move || store.settings.with(|settings| settings.awake)
                    on:change=move |event| store.set(|settings| settings.awake = event_target_checked(&event))
                />
                <span>"Keep this screen awake"</span>
            </label>
            <div class="row">
                <button
                    type="button"
                    class="button button-main"
                    disabled=move || !changed()
                    on:click=move |_| store.contribute(value.get_untracked())
                >
                    "Lend this much"
                </button>
                <button type="button" class="button" on:click=move |_| store.stop_contributing()>"Lend no more"</button>
            </div>
        </details>
    }
}

/// "Room for about 20 of 48 layers."
fn room_for(status: &potluck_panel::Status, lent: u64) -> String {
    let Some(model) = status.model.as_ref().filter(|model| model.blocks > 0 && model.bytes > 0) else {
        return "A page cannot read how much GPU memory there is: you know better.".into();
    };
    let block = (model.bytes / u64::from(model.blocks)).max(1);
    let layers = (lent / block).min(u64::from(model.blocks));
    format!("Room for about {layers} of the model's {} layers. You know better how much this device has.", model.blocks)
}
