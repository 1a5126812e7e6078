//! Shows the verdict with its arithmetic.

use leptos::prelude::*;
use potluck_text::{sentences, texts};

use super::{
    choice::Choice,
    verdict::{Case, judge},
};

/// "Fits in the memory that you lend": weights, recurrent state, KV cache and working memory against the lent memory.
#[component]
pub fn VerdictView(
    /// What counts.
    #[prop(into)]
    case: Signal<Case>,
    /// The choice that the offered remedy changes.
    choice: Choice,
) -> impl IntoView {
    let verdict = Memo::new(move |_| judge(case.get()));
    let fits = move || verdict.with(super::verdict::Verdict::fits);
    let sum = move || {
        let case = case.get();
        verdict.with(|verdict| {
            let texts = texts();
            let state = (case.state > 0).then(|| texts.verdict.state(case.state));
            let cache = verdict.cache.map_or_else(
                || texts.verdict.unknown_cache(case.context),
                |cache| texts.verdict.cache(cache, verdict.cache_type.name()),
            );
            let parts: String = state.into_iter().chain([cache]).map(|part| format!(" + {part}")).collect();
            let sum = if verdict.cache.is_some() {
                texts.verdict.sum(case.weights, parts, verdict.scratch, verdict.needed)
            } else {
                texts.verdict.least_sum(case.weights, parts, verdict.scratch, verdict.needed)
            };
            let lent = if case.lent > 0 { texts.own.lends(case.lent) } else { String::new() };
            sentences(&[&sum, &lent])
        })
    };
    let sentence = move || {
        verdict.with(|verdict| {
            let alone = verdict.tokens_per_second;
            let speed = alone.map(|pace| texts().verdict.alone(pace)).unwrap_or_default();
            sentences(&[&verdict.sentence(), &speed])
        })
    };
    let smaller = move || verdict.with(|verdict| verdict.fits_with_cache);
    let help = move || verdict.with(|verdict| verdict.fits_with_context);
    view! {
        <span class="verdict" class:verdict-fits=fits>
            <span class="verdict-word">{sentence}</span>
            <span class="hint">{sum}</span>
            {move || (!fits()).then(|| view! {
                <span class="hint">
                    {texts().verdict.anyway()}
                </span>
            })}
            {move || smaller().map(|cache| view! {
                <button type="button" class="button" on:click=move |_| choice.cache.set(Some(cache))>
                    {texts().verdict.use_cache(cache.name())}
                </button>
            })}
            {move || help().map(|context| view! {
                <button type="button" class="button" on:click=move |_| choice.context.set(context)>
                    {texts().verdict.use_context(context)}
                </button>
            })}
        </span>
    }
}
