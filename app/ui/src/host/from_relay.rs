//! The tab "This relay": the relay's models, with the embedded one first and preselected.

use leptos::prelude::*;
use potluck_model::title as model_title;
use potluck_text::texts;

use super::{choice::Choice, verdict_view::VerdictView};
use crate::{
    relay::{self, Model, ModelState, Models, RelayError},
    state::store,
    text::{bytes, model_size, percent},
};

/// Polling interval while the relay computes hashes, milliseconds.
const EVERY: u32 = 2_000;

/// The list of the relay's models.
#[component]
pub fn FromRelay(choice: Choice) -> impl IntoView {
    let models = watch_models(choice);
    view! {
        {move || match models.get() {
            None => view! { <p class="hint">{texts().host.asking_relay()}</p> }.into_any(),
            Some(Err(error)) => view! { <p class="field-wrong">{error.to_string()}</p> }.into_any(),
            Some(Ok(list)) if list.is_empty() => view! {
                <p class="hint">
                    {texts().host.relay_has_none()}
                </p>
            }.into_any(),
            Some(Ok(list)) => {
                let titles = titles(&list);
                let card = |(model, title)| view! { <ModelCard model title choice /> };
                let cards = list.into_iter().zip(titles).map(card).collect_view();
                view! { <div class="cards" role="radiogroup" aria-label=texts().host.models()>{cards}</div> }.into_any()
            }
        }}
    }
}

type Answer = Option<Result<Vec<Model>, RelayError>>;

/// The list, polled until every model in it is ready.
fn watch_models(choice: Choice) -> RwSignal<Answer> {
    let models: RwSignal<Answer> = RwSignal::new(None);
    leptos::task::spawn_local(async move {
        while !models.is_disposed() {
            let answer = relay::models().await.map(in_order);
            let settled = answer.as_ref().is_ok_and(|list| list.iter().all(|model| !hashing(model)));
            if let Ok(list) = &answer {
                // Preselect the first model, so that a new user's next click opens the room.
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

/// The embedded model first, then by size.
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
fn ModelCard(model: Model, title: String, choice: Choice) -> impl IntoView {
    let store = store();
    let name = model.name.clone();
    let chosen =
        Memo::new(move |_| choice.model.with(|chosen| chosen.as_ref().is_some_and(|chosen| chosen.name == name)));
    let broken = matches!(model.state, ModelState::Broken { .. });
    let facts = facts(&model);
    let state = match &model.state {
        ModelState::Ready if model.is_bundled() => Some(texts().host.bundled().to_owned()),
        ModelState::Ready => None,
        ModelState::Hashing { done, total } => Some(texts().host.hashing(percent(*done, *total))),
        ModelState::Broken { message } => Some(message.clone()),
    };
    let choose = StoredValue::new(model.clone());
    let case = move || {
        let model = choose.get_value();
        choice.case(model.bytes, Some(&model), store.room.status.with(|status| status.device.bandwidth))
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

/// A title for each model, in order. File names distinguish models with equal titles.
fn titles(models: &[Model]) -> Vec<String> {
    let own: Vec<String> = models.iter().map(|model| model_title(model.title.as_deref(), &model.name)).collect();
    let shared = |wanted: &str| own.iter().filter(|title| title.eq_ignore_ascii_case(wanted)).count() > 1;
    let named = own
        .iter()
        .zip(models)
        .map(|(title, model)| if shared(title) { format!("{title} ({})", model.name) } else { title.clone() });
    named.collect()
}

/// "11.8 M parameters · 12.6 MB · Q8_0 · 512 tokens of context · Apache-2.0".
fn facts(model: &Model) -> String {
    let mut facts = vec![model_size(model.parameters, model.parameters), bytes(model.bytes)];
    facts.extend(model.quantization.clone());
    if let (Some(used), Some(experts)) = (model.experts_used, model.experts) {
        facts.push(texts().host.experts(used, experts));
    }
    facts.extend(model.context.map(|context| texts().host.context(context)));
    facts.push(model.licence.clone().unwrap_or_else(|| texts().host.no_licence().into()));
    facts.join(" · ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
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
    fn models_that_share_a_title_show_their_file_names() {
        let titled = |name: &str, title: Option<&str>| Model { title: title.map(Into::into), ..model(name, 1) };
        let list = [
            titled("smollm2-Q4_K_M.gguf", Some("SmolLM2")),
            titled("SmolLM2-Q8_0.gguf", Some("smollm2 ")),
            titled("qwen3.gguf", Some("Qwen3")),
            titled("bare-F16.gguf", Some(" ")),
        ];
        let expected = ["SmolLM2 (smollm2-Q4_K_M.gguf)", "smollm2 (SmolLM2-Q8_0.gguf)", "Qwen3", "bare"];
        assert_eq!(titles(&list), expected);
    }

    #[test]
    fn facts_make_one_line() {
        let line = facts(&model("own", 12_600_000));
        assert_eq!(line, "11.8 M parameters · 12.6 MB · Q8_0 · 512 tokens of context · no licence stated");
    }
}
