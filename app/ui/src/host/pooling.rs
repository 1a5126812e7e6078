//! How the experts of a model are spread over devices.

use leptos::prelude::*;
use potluck_panel::{Hedging, Pooling, WireType};
use potluck_text::texts;

use super::choice::Choice;
use crate::state::{Store, store};

/// Numbers of holders that are offered.
const HOLDERS: [u8; 4] = [1, 2, 3, 4];
/// Hedgings that are offered.
const HEDGINGS: [Hedging; 3] = [Hedging::Off, Hedging::Adaptive, Hedging::Copies(2)];

/// What is offered, and what is chosen even if it is not offered: the command line has more.
fn with_chosen<T: PartialEq + Copy>(offered: &[T], chosen: T) -> Vec<T> {
    let further = (!offered.contains(&chosen)).then_some(chosen);
    offered.iter().copied().chain(further).collect()
}

/// Something was chosen before, or cannot be used any more.
pub fn has_unusual_pooling(store: Store, choice: Choice) -> bool {
    untrack(|| {
        choice.pooling.get() != Pooling::default() || store.settings.with(|settings| settings.bad_pooling.is_some())
    })
}

/// Folded, unless something was chosen before; not where it is known that the model has no experts.
#[component]
pub fn PoolingChoice(choice: Choice) -> impl IntoView {
    let store = store();
    let is_shown = Memo::new(move |_| choice.may_have_experts());
    let bad = move || store.settings.with(|settings| settings.bad_pooling).map(|error| texts().pooling.replaced(error));
    let is_open = has_unusual_pooling(store, choice);
    view! {
        <Show when=move || is_shown.get()>
            <details class="fold" open=is_open>
                <summary>{texts().pooling.title()}</summary>
                {move || bad().map(|sentence| view! { <p class="hint hint-warning" role="status">{sentence}</p> })}
                <WireChoice choice />
                <CopiesChoice choice />
                <HedgingChoice choice />
            </details>
        </Show>
    }
}

#[component]
fn WireChoice(choice: Choice) -> impl IntoView {
    let store = store();
    let chosen = move || choice.pooling.get().wire;
    let change = move |event| {
        if let Ok(wire) = event_target_value(&event).parse() {
            choice.set_pooling(store, Pooling { wire, ..choice.pooling.get_untracked() });
        }
    };
    let option = move |wire: WireType| {
        view! { <option value=wire.name() prop:selected=move || chosen() == wire>{texts().pooling.wire_name(wire)}</option> }
    };
    view! {
        <label class="labelled labelled-row">
            <span>{texts().pooling.wire()}</span>
            <select class="field" on:change=change>{WireType::ALL.map(option)}</select>
        </label>
        <p class="hint">{move || texts().pooling.wire_hint(chosen())}</p>
    }
}

#[component]
fn CopiesChoice(choice: Choice) -> impl IntoView {
    let store = store();
    let chosen = move || choice.pooling.get().replicas;
    let change = move |event| {
        if let Ok(replicas) = event_target_value(&event).parse() {
            choice.set_pooling(store, Pooling { replicas, ..choice.pooling.get_untracked() });
        }
    };
    let option = move |replicas: u8| {
        view! {
            <option value=replicas.to_string() prop:selected=move || chosen() == replicas>{texts().pooling.devices(replicas)}</option>
        }
    };
    let offered = with_chosen(&HOLDERS, untrack(chosen));
    view! {
        <label class="labelled labelled-row">
            <span>{texts().pooling.copies()}</span>
            <select class="field" on:change=change>{offered.into_iter().map(option).collect_view()}</select>
        </label>
        <p class="hint">{move || texts().pooling.copies_hint(chosen())}</p>
    }
}

#[component]
fn HedgingChoice(choice: Choice) -> impl IntoView {
    let store = store();
    let chosen = move || choice.pooling.get().hedging;
    let change = move |event| {
        if let Ok(hedging) = event_target_value(&event).parse() {
            choice.set_pooling(store, Pooling { hedging, ..choice.pooling.get_untracked() });
        }
    };
    let option = move |hedging: Hedging| {
        view! {
            <option value=hedging.to_string() prop:selected=move || chosen() == hedging>
                {texts().pooling.hedging_name(hedging)}
            </option>
        }
    };
    let offered = with_chosen(&HEDGINGS, untrack(chosen));
    view! {
        <label class="labelled labelled-row">
            <span>{texts().pooling.asked()}</span>
            <select class="field" on:change=change>{offered.into_iter().map(option).collect_view()}</select>
        </label>
        <p class="hint">{move || texts().pooling.hedging_hint(chosen())}</p>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_always_among_what_is_shown() {
        assert_eq!(with_chosen(&HOLDERS, 2), HOLDERS);
        assert_eq!(with_chosen(&HOLDERS, 7), [1, 2, 3, 4, 7]);
        assert_eq!(with_chosen(&HEDGINGS, Hedging::Copies(3)).last(), Some(&Hedging::Copies(3)));
    }
}
