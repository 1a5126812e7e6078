//! The page at `/bench`.

use leptos::{ev, prelude::*};
use potluck_panel::ToNode;
use potluck_text::texts;

use super::{form::Form, results::Results, settings::BenchForm};
use crate::{
    browser,
    common::{Bar, Icon, Symbol},
    route::Route,
    state::{BenchProgress, store},
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
                <a class="button button-quiet" href="./" on:click=home>
                    <Icon symbol=Symbol::Leave />
                    "Potluck"
                </a>
                <h1 tabindex="-1">{texts().bench.title()}</h1>
                <p class="hint">{texts().bench.about()}</p>
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
        BenchProgress::Idle => None,
        BenchProgress::Loading(loading) => Some((loading_line(&loading), loading.done.0, loading.total.0)),
        BenchProgress::Running { what, done, total } => {
            Some((format!("{what} ({} of {total})", done + 1), u64::from(done), u64::from(total)))
        }
        BenchProgress::Stopped | BenchProgress::Failed(_) => None,
    };
    let ended = move || match store.bench.progress.get() {
        BenchProgress::Stopped => Some(texts().bench.stopped().to_owned()),
        BenchProgress::Failed(sentence) => Some(sentence),
        _ => None,
    };
    let line = Memo::new(move |_| line());
    view! {
        <div class="bench-progress" aria-live="polite">
            <Show when=move || line.with(Option::is_some)>
                <p>{move || line.get().map(|(words, ..)| words)}</p>
                <Bar
                    label=texts().bench.measuring()
                    done=Signal::derive(move || line.get().map_or(0, |(_, done, _)| done))
                    total=Signal::derive(move || line.get().map_or(0, |(.., total)| total))
                />
            </Show>
            {move || ended().map(|sentence| view! { <p class="field-wrong" role="alert">{sentence}</p> })}
        </div>
    }
}
