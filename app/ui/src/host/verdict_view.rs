//! Shows the verdict with its arithmetic.

use leptos::prelude::*;

use super::{
    choice::Choice,
    verdict::{Case, judge},
};
use crate::text::{bytes, count, tokens_per_second};

/// "Fits what is lent": weights, recurrent state, KV cache and scratch against the lent memory.
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
            let cache = verdict.cache.map_or_else(
                || format!("cache for {} tokens", count(u64::from(case.context))),
                |cache| format!("cache {} ({})", bytes(cache), verdict.cache_type.name()),
            );
            let state = if case.state > 0 { format!(" + state {}", bytes(case.state)) } else { String::new() };
            let lent = if case.lent > 0 { format!(" This device lends {}.", bytes(case.lent)) } else { String::new() };
            let about = if verdict.cache.is_some() { "about" } else { "at least" };
            format!(
                "Weights {}{state} + {cache} + scratch {} = {about} {}.{lent}",
                bytes(case.weights),
                bytes(verdict.scratch),
                bytes(verdict.needed),
            )
        })
    };
    let sentence = move || {
        verdict.with(|verdict| {
            let alone = verdict.tokens_per_second;
            let speed = alone.map(|speed| format!(" At most about {} on this device alone.", tokens_per_second(speed)));
            format!("{}{}", verdict.sentence(), speed.unwrap_or_default())
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
                    "You can open the room anyway. It waits until enough devices have joined."
                </span>
            })}
            {move || smaller().map(|cache| view! {
                <button type="button" class="button" on:click=move |_| choice.cache.set(Some(cache))>
                    {format!("Use a {} KV cache", cache.name())}
                </button>
            })}
            {move || help().map(|context| view! {
                <button type="button" class="button" on:click=move |_| choice.context.set(context)>
                    {format!("Use {} tokens of context", count(u64::from(context)))}
                </button>
            })}
        </span>
    }
}
