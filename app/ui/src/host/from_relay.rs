//! The tab "Here": models that the relay serves, the embedded one first and chosen.

use leptos::prelude::*;

use super::{choice::Choice, verdict_view::VerdictView};
use crate::{
    relay::{self, Model, ModelState, Models, RelayError},
    state::store,
    text::{bytes, count, model_size, percent},
};

/// Between two questions while hashes are computed, milliseconds.
const EVERY: u32 = 2_000;

/// Models of the relay to choose from.
#[component]
pub fn FromRelay(choice: Choice) -> impl IntoView {
    let models = watch_models(choice);
    view! {
        {move || match models.get() {
            None => view! { <p class="hint">"Asking the relay for its models"</p> }.into_any(),
            Some(Err(error)) => view! { <p class="field-wrong">{error.to_string()}</p> }.into_any(),
            Some(Ok(list)) if list.is_empty() => view! {
                <p class="hint">
                    "The relay serves no models. Start it with “--models DIR”, or take a link or a file of this device."
                </p>
            }.into_any(),
            Some(Ok(list)) => {
                let cards = list.into_iter().map(|model| view! { <ModelCard model choice /> }).collect_view();
                view! { <div class="cards" role="radiogroup" aria-label="Model">{cards}</div> }.into_any()
            }
        }}
    }
}

type Answer = Option<Result<Vec<Model>, RelayError>>;

/// The list, asked for again as long as something in it is not ready.
fn watch_models(choice: Choice) -> RwSignal<Answer> {
    let models: RwSignal<Answer> = RwSignal::new(None);
    leptos::task::spawn_local(async move {
        while !models.is_disposed() {
            let answer = relay::models().await.map(in_order);
            let settled = answer.as_ref().is_ok_and(|list| list.iter().all(|model| !hashing(model)));
            if let Ok(list) = &answer {
                // The first one is chosen already: a newcomer's next press opens the room.
                let first = list.iter().find(|model| !matches!(model.state, ModelState::Broken { .. })).cloned();
                choice.model.try_update(|chosen| {
                    if chosen.is_none() {
                        *chosen = first;
                    }
                });
            }
            let news = models.try_with_untracked(|known| known.as_ref() != Some(&answer)).unwrap_or(false);
            if news {
                models.try_set(Some(answer));
            }
            if settled {
                break;
            }
            gloo_timers::future::TimeoutFuture::new(EVERY).await;
        }
    });
    models
}

/// The embedded one first, then by size.
fn in_order(list: Models) -> Vec<Model> {
    let mut models = list.models;
    models.sort_by(|left, right| {
        (!left.is_bundled(), left.bytes, &left.name).cmp(&(!right.is_bundled(), right.bytes, &right.name))
    });
    models
}

const fn hashing(model: &Model) -> bool {
    matches!(model.state, ModelState::Hashing { .. })
}

#[component]
fn ModelCard(model: Model, choice: Choice) -> impl IntoView {
    let store = store();
    let name = model.name.clone();
    let chosen =
        Memo::new(move |_| choice.model.with(|chosen| chosen.as_ref().is_some_and(|chosen| chosen.name == name)));
    let broken = matches!(model.state, ModelState::Broken { .. });
    let title = model.title.clone().filter(|title| !title.trim().is_empty()).unwrap_or_else(|| model.name.clone());
    let facts = facts(&model);
    let state = match &model.state {
        ModelState::Ready if model.is_bundled() => Some("Ready at once. Tiny: small talk only.".to_owned()),
        ModelState::Ready => None,
        ModelState::Hashing { done, total } => Some(format!("The relay checks the file: {}%", percent(*done, *total))),
        ModelState::Broken { message } => Some(message.clone()),
    };
    let choose = StoredValue::new(model.clone());
    let case = move || {
        let model = choose.get_value();
        choice.case(model.bytes, Some(&model), store.status.with(|status| status.device.bandwidth))
    };
    view! {
        <label class="card model-card" class:card-chosen=move || chosen.get() class:card-off=broken>
            <input
                type="radio"
                name="model"
                disabled=broken
                prop:checked=move || chosen.get()
                on:change=move |_| choice.model.set(Some(choose.get_value()))
            />
            <span class="card-words">
                <strong>{title}</strong>
                <span class="facts">{facts}</span>
                {state.map(|state| view! { <span class="hint">{state}</span> })}
                <Show when=move || chosen.get() && !broken>
                    <VerdictView case=Signal::derive(case) choice />
                </Show>
            </span>
        </label>
    }
}

/// "11.8 M parameters · 12.6 MB · Q8_0 · 512 tokens of context · Apache-2.0".
fn facts(model: &Model) -> String {
    let mut facts = vec![model_size(model.parameters, model.parameters), bytes(model.bytes)];
    facts.extend(model.quantization.clone());
    if let (Some(used), Some(experts)) = (model.experts_used, model.experts) {
        facts.push(format!("{used} of {experts} experts"));
    }
    facts.extend(model.context.map(|context| format!("{} tokens of context", count(u64::from(context)))));
    facts.push(model.licence.clone().unwrap_or_else(|| "licence not stated".into()));
    facts.join(" · ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn model(name: &str, bytes: u64) -> Model {
        let text = format!(
            r#"{{"name":"{name}","bytes":{bytes},"root":null,"files":[],"state":{{"phase":"ready"}},"architecture":"llama","quantization":"Q8_0",
            "blocks":4,"experts":null,"experts_used":null,"parameters":11800000,"context":512,"licence":null,
            "title":null}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_embedded_model_comes_first_then_the_smaller_ones() {
        let models = vec![model("big", 9), model("small", 3), model("potluck-tiny", 5)];
        let list = Models { group_bytes: 65_536, models };
        let names: Vec<_> = in_order(list).into_iter().map(|model| model.name).collect();
        assert_eq!(names, ["potluck-tiny", "small", "big"]);
    }

    #[test]
    fn facts_are_told_in_one_line() {
        let line = facts(&model("own", 12_600_000));
        assert_eq!(line, "11.8 M parameters · 12.6 MB · Q8_0 · 512 tokens of context · licence not stated");
    }
}
