//! Results as a bar chart.

use leptos::prelude::*;
use potluck_panel::BenchResult;
use potluck_text::texts;

use super::results::{name, tokens};

/// Prefill and decode side by side, each on its own scale.
#[component]
pub fn Chart(results: Vec<BenchResult>) -> impl IntoView {
    let prefill = results.iter().map(|result| (name(result), result.prefill)).collect();
    let decode = results.iter().map(|result| (name(result), result.decode)).collect();
    view! {
        <div class="bench-charts">
            <Bars title=texts().bench.chart_prefill() rows=prefill kind="bench-bar-prefill" />
            <Bars title=texts().bench.chart_decode() rows=decode kind="bench-bar-decode" />
        </div>
    }
}

#[component]
fn Bars(title: &'static str, rows: Vec<(String, f64)>, kind: &'static str) -> impl IntoView {
    let most = rows.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let rows = rows.into_iter().map(|(name, value)| {
        let width = format!("{:.1}%", 100.0 * value / most);
        view! {
            <li class="bench-row">
                <span class="bench-row-name">{name}</span>
                <span class="bench-track" aria-hidden="true"><span class=kind style:width=width></span></span>
                <span class="bench-row-value">{tokens(value)}</span>
            </li>
        }
    });
    view! {
        <figure class="card bench-chart">
            <figcaption>{title}</figcaption>
            <ul>{rows.collect_view()}</ul>
        </figure>
    }
}
