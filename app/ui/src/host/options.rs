//! How much to lend and under which name; folded, what few people change.

use leptos::prelude::*;
use potluck_panel::{Arithmetic, Ends, KvCacheType, Sharing};

use potluck_text::texts;

use super::{
    choice::{Choice, Tab},
    guesser::GuesserChoice,
    pooling::{PoolingChoice, has_unusual_pooling},
};
use crate::{
    common::{LendSlider, NameField},
    relay::Model,
    state::store,
};

const CONTEXTS: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 131_072];

/// The options below the model.
#[component]
pub fn Options(choice: Choice) -> impl IntoView {
    let is_open = untrack(|| choice.ends.get() == Ends::OnHost) || has_unusual_pooling(store(), choice);
    view! {
        <Show when=move || choice.can_lend.get() fallback=|| view! { <p class="hint hint-warning">{texts().own.hosts_without_gpu()}</p> }>
            <LendSlider value=choice.lend label=texts().own.memory() />
            <p class="hint">{texts().own.choose_memory()}</p>
        </Show>
        <NameField hint=texts().options.name_hint() />
        <details class="fold more-options" open=is_open>
            <summary>{texts().options.more()}</summary>
            <div class="dialog-body">
                <ShareChoice choice />
                <PoolingChoice choice />
                <EndsChoice choice />
                <ContextChoice choice />
                <CacheChoice choice />
                <ArithmeticChoice choice />
                <GuesserChoice choice />
            </div>
        </details>
    }
}

#[component]
fn ShareChoice(choice: Choice) -> impl IntoView {
    let option = move |share: Sharing| {
        let chosen = move || choice.shared() == share;
        let hint = move || {
            let here = choice.tab.get() == Tab::Here;
            choice.model.with(|model| hint(share, model.as_ref().filter(|_| here)))
        };
        view! {
            <label class="card option-card" class:card-chosen=chosen>
                <input
                    type="radio"
                    name="share"
                    prop:checked=chosen
                    // Not on change: clicking the default choice counts as well, and then stays chosen when the default
                    // changes.
                    on:click=move |_| choice.share.set(Some(share))
                />
                <span class="card-words">
                    <strong>{texts().sharing.of(share)}</strong>
                    <span class="hint">{hint}</span>
                </span>
            </label>
        }
    };
    view! {
        <fieldset class="group">
            <legend>{texts().options.share()}</legend>
            <div class="option-cards">{[Sharing::Fastest, Sharing::Everyone, Sharing::Experts].map(option)}</div>
        </fieldset>
    }
}

/// Keeps both ends of the model on this device, and says what others get then and what it costs.
#[component]
fn EndsChoice(choice: Choice) -> impl IntoView {
    let store = store();
    let change = move |event| {
        choice.set_ends(store, if event_target_checked(&event) { Ends::OnHost } else { Ends::Anywhere });
    };
    view! {
        <label class="check">
            <input type="checkbox" prop:checked=move || choice.ends.get() == Ends::OnHost on:change=change />
            <span>{texts().own.keep_words()}</span>
        </label>
        <p class="hint">{texts().own.keep_words_hint()}</p>
    }
}

/// What a choice means for the chosen model. The relay names no experts of a model without any.
fn hint(share: Sharing, model: Option<&Model>) -> String {
    let experts = model.map(|model| model.experts.unwrap_or(0));
    texts().sharing.hint(share, experts, model.and_then(|model| model.blocks))
}

/// The type of the KV cache: memory against precision.
#[component]
fn CacheChoice(choice: Choice) -> impl IntoView {
    let change = move |event| choice.cache.set(event_target_value(&event).parse().ok());
    let option = move |cache: KvCacheType| {
        view! {
            <option value=cache.name() prop:selected=move || choice.cache.get() == Some(cache)>{texts().kv_cache.of(cache)}</option>
        }
    };
    view! {
        <label class="labelled labelled-row">
            <span>{texts().options.cache()}</span>
            <select class="field" on:change=change>
                <option value="" prop:selected=move || choice.cache.get().is_none()>{texts().options.cache_usual()}</option>
                {KvCacheType::ALL.map(option)}
            </select>
        </label>
    }
}

/// How products are computed: time against precision.
#[component]
fn ArithmeticChoice(choice: Choice) -> impl IntoView {
    let change = move |event| choice.arithmetic.set(event_target_value(&event).parse().ok());
    let option = move |how: Arithmetic| {
        view! {
            <option value=how.name() prop:selected=move || choice.arithmetic.get() == Some(how)>{texts().arithmetic.of(how)}</option>
        }
    };
    view! {
        <label class="labelled labelled-row">
            <span>{texts().options.arithmetic()}</span>
            <select class="field" on:change=change>
                <option value="" prop:selected=move || choice.arithmetic.get().is_none()>{texts().options.arithmetic_usual()}</option>
                {Arithmetic::PORTABLE.map(option)}
            </select>
        </label>
    }
}

#[component]
fn ContextChoice(choice: Choice) -> impl IntoView {
    let change = move |event| {
        if let Ok(context) = event_target_value(&event).parse() {
            choice.context.set(context);
        }
    };
    // The room's context need not be a step, for example if the model has less than any: offer it as well.
    let steps = move || {
        let now = choice.context();
        let mut steps: Vec<u32> = CONTEXTS.to_vec();
        if !steps.contains(&now) {
            steps.push(now);
            steps.sort_unstable();
        }
        steps
            .into_iter()
            .map(|step| {
                view! {
                    <option value=step.to_string() prop:selected=step == now>{texts().options.tokens(step)}</option>
                }
            })
            .collect_view()
    };
    view! {
        <label class="labelled labelled-row">
            <span>{texts().options.context()}<small class="hint">{texts().options.context_hint()}</small></span>
            <select class="field" on:change=change>{steps}</select>
        </label>
    }
}
