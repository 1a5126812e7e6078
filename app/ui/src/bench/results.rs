//! Results of a benchmark.

use leptos::prelude::*;
use potluck_panel::{BenchRates, BenchReport, BenchResult};
use potluck_text::texts;

use super::{chart::Chart, kernels::Kernels};
use crate::{
    common::CopyButton,
    text::{bytes, count, duration_ms},
};

/// Chart, table, kernels, device, method.
#[component]
pub fn Results(report: BenchReport) -> impl IntoView {
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    let kernels = report.kernels.iter().cloned().map(|kernels| view! { <Kernels kernels /> }).collect_view();
    let skipped = report.skipped.iter().map(|sentence| view! { <p class="hint">{sentence.clone()}</p> }).collect_view();
    let method = report.method.iter().map(|sentence| view! { <li>{sentence.clone()}</li> }).collect_view();
    view! {
        <section class="bench-results" aria-label=texts().bench.results()>
            <header class="bench-results-head">
                <div>
                    <h2>{model_words(&report)}</h2>
                    <p class="hint">{device_words(&report)}</p>
                </div>
                <CopyButton text=json label=texts().bench.copy() />
            </header>
            <Chart results=report.workloads.clone() />
            <Table results=report.workloads.clone() />
            {skipped}
            {kernels}
            <details class="fold">
                <summary>{texts().bench.device()}</summary>
                <dl class="numbers">
                    {facts(&report).into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view()}
                </dl>
            </details>
            <details class="fold">
                <summary>{texts().bench.method()}</summary>
                <ul class="plain hint">{method}</ul>
            </details>
        </section>
    }
}

fn model_words(report: &BenchReport) -> String {
    let model = &report.model;
    format!("{} {}, {}", model.name, model.quantization, bytes(model.bytes))
}

fn device_words(report: &BenchReport) -> String {
    let device = &report.device;
    let adapter = if device.adapter.is_empty() { texts().device.unnamed() } else { &device.adapter };
    let adapter = if device.software { texts().device.software(adapter) } else { adapter.to_owned() };
    texts().bench.streams(adapter, device.streaming)
}

/// "0.47", "17.3", "1,840": only significant digits.
pub fn tokens(per_second: f64) -> String {
    match per_second {
        slow if slow < 10.0 => format!("{slow:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        fast => count(fast.round() as u64),
    }
}

/// "25 / 128", "25 / 128 after 2,048".
pub fn name(result: &BenchResult) -> String {
    let words = format!("{} / {}", count(result.prompt.into()), count(result.answer.into()));
    if result.depth == 0 { words } else { format!("{words} after {}", count(result.depth.into())) }
}

#[component]
fn Table(results: Vec<BenchResult>) -> impl IntoView {
    let rows = results.into_iter().map(|result| {
        view! {
            <tr>
                <th scope="row">{name(&result)}</th>
                <td>{tokens(result.prefill)}</td>
                <td>{tokens(result.decode)}</td>
                <td>{duration_ms(result.first_token)}</td>
                <td>{bytes(result.token_bytes)}</td>
                <td>{format!("{:.0}%", 100.0 * result.streaming_share)}</td>
            </tr>
        }
    });
    view! {
        <div class="bench-scroll" tabindex="0" role="group" aria-label=texts().bench.results_table()>
            <table class="bench-table">
                <thead>
                    <tr>
                        <th scope="col">{texts().bench.workload()}</th>
                        <th scope="col">{texts().bench.prefill_pace()}</th>
                        <th scope="col">{texts().bench.decode_pace()}</th>
                        <th scope="col">{texts().bench.first_token()}</th>
                        <th scope="col">{texts().bench.read()}</th>
                        <th scope="col">{texts().bench.streaming()}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
    }
}

/// "480 MB/s, 82% of what the slower step reaches alone: reading the file 2.1 GB/s, copying to the GPU 585 MB/s."
fn load_text(rates: &BenchRates) -> String {
    texts().bench.load_rates(rates.load, 100.0 * rates.share, rates.read, rates.upload)
}

fn facts(report: &BenchReport) -> Vec<(String, String)> {
    let device = &report.device;
    let load = report.load;
    let mut facts = vec![
        (texts().bench.browser().to_owned(), device.browser.clone()),
        (texts().bench.driver().to_owned(), device.driver.clone()),
        (texts().bench.loading().to_owned(), duration_ms(load.millis)),
        (texts().bench.loading_again().to_owned(), load.rates.as_ref().map(load_text).unwrap_or_default()),
        (texts().bench.weights().to_owned(), bytes(load.weights)),
        (texts().bench.allocated().to_owned(), bytes(load.allocated)),
    ];
    facts.extend(device.tuned.iter().cloned());
    facts.extend(device.limits.iter().map(|(name, value)| (name.clone(), count(*value))));
    facts.push((texts().bench.features().to_owned(), device.features.join(", ")));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_the_digits_that_count() {
        assert_eq!([0.468, 17.34, 76.0, 1840.4].map(tokens), ["0.47", "17.3", "76.0", "1,840"]);
    }

    #[test]
    fn a_workload_is_named_by_its_tokens() {
        let result = BenchResult { prompt: 1024, answer: 128, ..BenchResult::default() };
        assert_eq!(name(&result), "1,024 / 128");
        assert_eq!(name(&BenchResult { depth: 2048, ..result }), "1,024 / 128 after 2,048");
    }
}
