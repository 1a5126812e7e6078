//! This device's card at the table: lend, amount, progress, stop.

use leptos::prelude::*;
use potluck_panel::{LoadPhase, MemberStatus, PlanStatus, Status};
use potluck_text::{sentences, texts};

use super::phases::Phases;
use crate::{
    common::{Icon, LendSlider, Symbol},
    state::{Store, store},
    text::{held_by, loading_line},
};

/// What this device lends, and the progress.
#[component]
pub fn ContributeCard() -> impl IntoView {
    let store = store();
    let lending = Memo::new(move |_| store.lends().is_some());
    let chat_only =
        Memo::new(move |_| store.room.status.with(|status| status.room.as_ref().is_some_and(|room| room.chat_only)));
    view! {
        <Show when=move || !chat_only.get() fallback=|| view! { <p class="hint">{texts().own.invited_to_chat()}</p> }>
        <section class="card own-card" aria-label=texts().own.heading()>
            <Show when=move || lending.get() fallback=|| view! { <Offer /> }>
                <Lending />
            </Show>
        </section>
        </Show>
    }
}

/// This device lends nothing yet.
#[component]
fn Offer() -> impl IntoView {
    let store = store();
    let webgpu = move || store.room.status.with(|status| status.device.trouble.is_none());
    view! {
        <div class="own-row">
            <p class="hint">
                {move || if webgpu() {
                    texts().own.only_chats()
                } else {
                    texts().own.no_webgpu()
                }}
            </p>
            <button
                type="button"
                class="button button-main"
                disabled=move || !webgpu()
                on:click=move |_| store.contribute(untrack(|| store.lend_by_default()))
            >
                <Icon symbol=Symbol::Plus />
                <span>{texts().own.contribute()}</span>
            </button>
        </div>
    }
}

#[component]
fn Lending() -> impl IntoView {
    let store = store();
    let loading = Memo::new(move |_| store.room.status.with(|status| status.loading.filter(|_| !works(status))));
    view! {
        <Show when=move || loading.with(Option::is_some)>
            {move || loading.get().map(|loading| view! { <Phases loading /> })}
        </Show>
        <p class="own-state">{move || own_sentence(store)}</p>
        <Adjust />
    }
}

/// This device computes a part of the active plan.
fn works(status: &Status) -> bool {
    let up = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Up);
    up.is_some_and(|plan| plan.stages.iter().any(|stage| Some(stage.peer) == status.peer))
}

/// What a working device loads in addition, as a sentence; `None` if nothing.
fn beside_work(status: &Status) -> Option<String> {
    let loading = status.loading.as_ref().filter(|_| works(status))?;
    // The first phase ends quickly and means nothing to users.
    let line = match loading.phase {
        LoadPhase::Find => String::new(),
        _ => format!("{}.", loading_line(loading)),
    };
    Some(sentences(&[texts().own.prepares(), &line]))
}

/// Describes in one sentence what this device does for the room.
fn own_sentence(store: Store) -> String {
    let texts = &texts().own;
    let lent = store.lends().unwrap_or(0);
    store.room.status.with(|status| {
        if status.device.trouble.is_some() {
            return texts.gpu_lost().into();
        }
        let own = status.peers.iter().find(|member| status.is_self(member));
        let holds = own.zip(status.plan.as_ref()).map(|(own, plan)| held_by(own.peer, plan, status.model.as_ref()));
        let holds = holds.unwrap_or_default().join(", ");
        let standby = own.and_then(|member| member.standby.clone()).unwrap_or_default();
        if status.plan.as_ref().is_some_and(|plan| plan.waiting.is_some()) {
            return sentences(&[&texts.lends(lent), &standby, texts.room_short()]);
        }
        let why = own.and_then(|member| member.spare.clone());
        match own.map(|member| member.status) {
            Some(MemberStatus::Ready | MemberStatus::Loading) if works(status) => {
                let beside = beside_work(status).unwrap_or_default();
                sentences(&[&texts.works(lent, &holds), &standby, &beside])
            }
            Some(MemberStatus::Ready) => sentences(&[&texts.works(lent, &holds), &standby]),
            Some(MemberStatus::Spare) => {
                let why = why.unwrap_or_else(|| texts.not_needed().into());
                sentences(&[&texts.spare(lent), &standby, &why])
            }
            Some(MemberStatus::Failed) => texts.failed().into(),
            Some(MemberStatus::Loading) if !holds.is_empty() => texts.loading(&holds),
            _ => texts.waiting(lent),
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
            <summary>{texts().own.change()}</summary>
            <LendSlider value label=texts().own.memory() />
            <p class="hint">{move || store.room.status.with(|status| room_for(status, value.get()))}</p>
            <label class="check">
                <input
                    type="checkbox"
                    role="switch"
                    class="switch"
                    prop:checked=move || store.settings.with(|settings| settings.awake)
                    on:change=move |event| store.set(|settings| settings.awake = event_target_checked(&event))
                />
                <span>{texts().own.awake()}</span>
            </label>
            <div class="row">
                <button
                    type="button"
                    class="button button-main"
                    disabled=move || !changed()
                    on:click=move |_| store.contribute(value.get_untracked())
                >
                    {texts().own.lend()}
                </button>
                <button type="button" class="button" on:click=move |_| store.stop_contributing()>{texts().own.withdraw()}</button>
            </div>
        </details>
    }
}

/// "Room for about 20 of the model's 48 blocks (layers)."
fn room_for(status: &Status, lent: u64) -> String {
    let Some(model) = status.model.as_ref().filter(|model| model.blocks > 0 && model.bytes.0 > 0) else {
        return texts().own.choose_memory().into();
    };
    let block = (model.bytes.0 / u64::from(model.blocks)).max(1);
    let layers = (lent / block).min(u64::from(model.blocks));
    texts().own.layers(layers, model.blocks)
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, LoadReport};

    use super::*;
    use crate::table::fixtures::{of_tab, plan_of};

    #[test]
    fn a_device_that_works_is_not_shown_as_one_that_begins() {
        let loading = |phase| Some(LoadReport { done: Bytes(4), total: Bytes(8), ..LoadReport::begin(phase) });
        let mut status = Status { loading: loading(LoadPhase::Find), ..of_tab("a") };
        assert_eq!(beside_work(&status), None, "it has no part yet");
        status.plan = Some(plan_of(&["a", "b"]));
        let working = "It keeps working while it prepares for a new plan.";
        assert_eq!(beside_work(&status).as_deref(), Some(working));
        status.loading = loading(LoadPhase::Upload);
        let expected = format!("{working} Moving to the GPU: 4 bytes of 8 bytes.");
        assert_eq!(beside_work(&status), Some(expected));
        status.plan = Some(plan_of(&["b"]));
        assert_eq!(beside_work(&status), None, "the others work");
    }
}
