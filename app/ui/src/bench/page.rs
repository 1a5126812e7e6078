//! The page at `/bench`.

use leptos::{ev, prelude::*};
use potluck_panel::ToNode;

use super::{form::Form, results::Results, settings::BenchForm};
use crate::{
    browser,
    common::{Bar, Icon, Symbol},
    route::Route,
    state::{Benching, store},
    text::loading_line,
};

/// Choose, measure, view the results.
#[component]
pub fn BenchPage() -> impl IntoView {
    let store = store();
    let form = BenchForm::new();
    let home = move |event: ev::MouseEvent| {
        event.prevent_default();
        store.send(ToNode::StopBench);
        browser::go("/");
        store.screen.route.set(Route::Door);
    };
    view! {
        <main class="bench">
            <header class="bench-head">
                <a class="button button-quiet" href="/" on:click=home>
                    <Icon symbol=Symbol::Leave />
                    "Potluck"
                </a>
                <h1 tabindex="-1">"Bench"</h1>
                <p class="hint">"How fast this device reads and writes with a model, measured on this device alone."</p>
            </header>
            <Form form />
            <Progress />
            {move || store.bench.report.get().map(|report| view! { <Results report /> })}
        </main>
    }
}

/// The progress, or the reason for the end.
#[component]
fn Progress() -> impl IntoView {
    let store = store();
    let line = move || match store.bench.progress.get() {
        Benching::Idle => None,
        Benching::Loading(loading) => Some((loading_line(&loading), loading.done.0, loading.total.0)),
        Benching::Running { what, done, total } => {
            Some((format!("{what} ({} of {total})", done + 1), u64::from(done), u64::from(total)))
        }
        Benching::Stopped | Benching::Failed(_) => None,
    };
    let ended = move || match store.bench.progress.get() {
        Benching::Stopped => Some("Stopped before anything was fully measured.".to_owned()),
        Benching::Failed(sentence) => Some(sentence),
        _ => None,
    };
    let line = Memo::new(move |_| line());
    view! {
        <div class="bench-progress" aria-live="polite">
            <Show when=move || line.with(Option::is_some)>
                <p>{move || line.get().map(|(words, ..)| words)}</p>
                <Bar
                    label="Measuring"
                    done=Signal::derive(move || line.get().map_or(0, |(_, done, _)| done))
                    total=Signal::derive(move || line.get().map_or(0, |(.., total)| total))
                />
            </Show>
            {move || ended().map(|sentence| view! { <p class="field-wrong" role="alert">{sentence}</p> })}
        </div>
    }
}
