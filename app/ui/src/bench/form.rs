//! The form that chooses what to measure.

use leptos::{ev, prelude::*};
use potluck_panel::{Arithmetic, KvCacheType, ToNode};
use potluck_text::texts;
use wasm_bindgen::JsCast;

use super::settings::{BenchForm, DEPTHS, Origin, PRESETS};
use crate::{
    relay::{self, Model, ModelState},
    state::store,
    text::{bytes, count},
};

/// Polling interval while the relay checks files, milliseconds.
const EVERY: u32 = 1_000;

fn is_settled(model: &Model) -> bool {
    !matches!(model.state, ModelState::Hashing { .. })
}

/// The models that are ready: the embedded one first, then by size.
fn ready(mut models: Vec<Model>) -> Vec<Model> {
    models.retain(|model| model.state == ModelState::Ready);
    models.sort_by_key(|model| (!model.is_bundled(), model.bytes));
    models
}

/// The form with its start and stop buttons.
#[component]
pub fn Form(form: BenchForm) -> impl IntoView {
    let store = store();
    let busy = move || store.bench.progress.with(crate::state::BenchProgress::is_busy);
    let begin = move |event: ev::SubmitEvent| {
        event.prevent_default();
        if let Some((choice, file)) = untrack(|| form.choice()) {
            store.start_bench(choice, file);
        }
    };
    view! {
        <form class="card bench-form" on:submit=begin>
            <ModelField form />
            <Workloads form />
            <fieldset class="group">
                <legend>{texts().bench.context()}</legend>
                <div class="bench-checks">
                    {DEPTHS.iter().enumerate().map(|(index, depth)| {
                        let name = if *depth == 0 { texts().bench.no_context().to_owned() } else { texts().options.tokens(*depth) };
                        view! {
                            <Check
                                name
                                chosen=Signal::derive(move || form.depths.get()[index])
                                choose=Callback::new(move |chosen| form.depths.update(|depths| depths[index] = chosen))
                            />
                        }
                    }).collect_view()}
                </div>
            </fieldset>
            <Details form />
            <footer class="bench-buttons">
                <Show
                    when=busy
                    fallback=move || view! {
                        <button type="submit" class="button button-main button-large" disabled=move || form.choice().is_none()>
                            {texts().bench.measure()}
                        </button>
                    }
                >
                    <button
                        type="button"
                        class="button button-stop button-large"
                        on:click=move |_| store.send(ToNode::StopBench)
                    >
                        {texts().bench.stop()}
                    </button>
                </Show>
            </footer>
        </form>
    }
}

/// Runs, KV cache, kernels.
#[component]
fn Details(form: BenchForm) -> impl IntoView {
    let cache = move |event| {
        if let Ok(cache) = event_target_value(&event).parse() {
            form.cache.set(cache);
        }
    };
    let arithmetic = move |event| {
        if let Ok(arithmetic) = event_target_value(&event).parse() {
            form.arithmetic.set(arithmetic);
        }
    };
    view! {
        <div class="bench-details">
            <label class="labelled">
                <span>{texts().bench.runs()}</span>
                <input
                    class="field"
                    type="number"
                    min="1"
                    max="100"
                    prop:value=move || form.runs.get().to_string()
                    on:change=move |event| form.runs.set(number(&event, 100))
                />
            </label>
            <label class="labelled">
                <span>{texts().bench.cache()}</span>
                <select class="field" on:change=cache>
                    {KvCacheType::ALL.map(|cache| view! { <option value=cache.name()>{texts().kv_cache.of(cache)}</option> })}
                </select>
            </label>
            <label class="labelled">
                <span>{texts().options.arithmetic()}</span>
                <select class="field" on:change=arithmetic>
                    {Arithmetic::PORTABLE.map(|how| view! { <option value=how.name()>{texts().arithmetic.of(how)}</option> })}
                </select>
            </label>
            <Check
                name=texts().bench.kernels().to_owned()
                chosen=form.kernels.into()
                choose=Callback::new(move |chosen| form.kernels.set(chosen))
            />
        </div>
    }
}

#[component]
fn Check(name: String, chosen: Signal<bool>, choose: Callback<bool>) -> impl IntoView {
    view! {
        <label class="check">
            <input type="checkbox" prop:checked=chosen on:change=move |event| choose.run(event_target_checked(&event)) />
            <span>{name}</span>
        </label>
    }
}

#[component]
fn Workloads(form: BenchForm) -> impl IntoView {
    let tokens = |prompt: u32, answer: u32| format!("{} / {}", count(prompt.into()), count(answer.into()));
    view! {
        <fieldset class="group">
            <legend>{texts().bench.workloads()}</legend>
            <div class="bench-checks">
                {PRESETS.iter().enumerate().map(|(index, preset)| {
                    let name = format!("{} {}", preset.name, tokens(preset.workload.prompt, preset.workload.answer));
                    view! {
                        <Check
                            name
                            chosen=Signal::derive(move || form.presets.get()[index])
                            choose=Callback::new(move |chosen| form.presets.update(|presets| presets[index] = chosen))
                        />
                    }
                }).collect_view()}
                <div class="bench-own">
                    <Check
                        name=texts().bench.own().to_owned()
                        chosen=form.own.into()
                        choose=Callback::new(move |chosen| form.own.set(chosen))
                    />
                    <Tokens value=form.own_prompt label=texts().bench.own_prompt() chosen=form.own />
                    <span aria-hidden="true">"/"</span>
                    <Tokens value=form.own_answer label=texts().bench.own_answer() chosen=form.own />
                </div>
            </div>
        </fieldset>
    }
}

#[component]
fn Tokens(value: RwSignal<u32>, label: &'static str, chosen: RwSignal<bool>) -> impl IntoView {
    view! {
        <input
            class="field field-tokens"
            type="number"
            min="1"
            max="1000000"
            aria-label=label
            prop:value=move || value.get().to_string()
            on:input=move |event| {
                value.set(number(&event, 1_000_000));
                chosen.set(true);
            }
        />
    }
}

/// An integer from 1 to `most`.
fn number(event: &ev::Event, most: u32) -> u32 {
    event_target_value(event).parse::<u32>().unwrap_or(1).clamp(1, most)
}

/// The relay's models, a link or a file.
#[component]
fn ModelField(form: BenchForm) -> impl IntoView {
    let models: RwSignal<Vec<Model>> = RwSignal::new(Vec::new());
    let trouble = RwSignal::new(None);
    leptos::task::spawn_local(async move {
        // Poll while the relay still checks a file; the page may be gone by then.
        while !models.is_disposed() {
            let answer = relay::models().await;
            let settled = answer.as_ref().is_ok_and(|list| list.models.iter().all(is_settled));
            match answer {
                Ok(list) => {
                    let ready = ready(list.models);
                    let first = ready.first().map(|model| Origin::Relay(model.name.clone()));
                    let first = first.or(settled.then_some(Origin::Link));
                    let _gone = form.from.try_update(|from| *from = from.take().or(first));
                    trouble.try_set(None);
                    if models.try_with_untracked(|known| *known != ready).unwrap_or(false) {
                        models.try_set(ready);
                    }
                }
                Err(error) => {
                    trouble.try_set(Some(error.to_string()));
                    let _gone = form.from.try_update(|from| *from = from.take().or(Some(Origin::Link)));
                }
            }
            if settled {
                break;
            }
            gloo_timers::future::TimeoutFuture::new(EVERY).await;
        }
    });
    let choose = move |event: ev::Event| {
        let value = event_target_value(&event);
        form.from.set(Some(match value.as_str() {
            "link:" => Origin::Link,
            "file:" => Origin::File,
            name => Origin::Relay(name.trim_start_matches("relay:").to_owned()),
        }));
    };
    let opened = move |event: ev::Event| {
        let input = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
        form.file.set(input.and_then(|input| input.files()).and_then(|files| files.get(0)));
    };
    let is = move |wanted: Origin| form.from.with(|from| from.as_ref() == Some(&wanted));
    view! {
        <div class="bench-model">
            <label class="labelled">
                <span>{texts().bench.model()}</span>
                <select class="field" on:change=choose>
                    {move || models.get().into_iter().map(|model| {
                        let chosen = form.from.with_untracked(|from| *from == Some(Origin::Relay(model.name.clone())));
                        let words = format!("{}, {}", model.title.unwrap_or_else(|| model.name.clone()), bytes(model.bytes));
                        view! { <option value=format!("relay:{}", model.name) selected=chosen>{words}</option> }
                    }).collect_view()}
                    <option value="link:" prop:selected=move || is(Origin::Link)>{texts().bench.link()}</option>
                    <option value="file:" prop:selected=move || is(Origin::File)>{texts().bench.file()}</option>
                </select>
            </label>
            <Show when=move || is(Origin::Link)>
                <label class="labelled">
                    <span>{texts().host.address()}</span>
                    <input
                        class="field"
                        type="text"
                        placeholder="https://…/model.gguf"
                        prop:value=move || form.link.get()
                        on:input=move |event| form.link.set(event_target_value(&event))
                    />
                </label>
            </Show>
            <Show when=move || is(Origin::File)>
                <label class="labelled">
                    <span>{texts().bench.gguf()}</span>
                    <input class="field bench-file" type="file" accept=".gguf" on:change=opened />
                </label>
            </Show>
            {move || trouble.get().map(|sentence| view! { <p class="field-wrong">{sentence}</p> })}
        </div>
    }
}
