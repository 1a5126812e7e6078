//! The parts of a report.

use potluck_engine::bench::{Bench, Clocked, KernelTimes};
use potluck_panel::{BenchKernel, BenchKernels, BenchModel, BenchRates};
use potluck_protocol::ModelCard;

use crate::loader::LoadRates;

/// The model of a report.
pub fn model(card: &ModelCard) -> BenchModel {
    BenchModel {
        name: card.name.clone(),
        architecture: card.architecture.clone(),
        quantization: card.quantization.clone(),
        bytes: card.bytes.0,
        parameters: card.parameters,
        active_parameters: card.active_parameters,
        blocks: card.blocks.into(),
        experts: card.experts.into(),
    }
}

/// The rates of a load.
pub fn rates(rates: &LoadRates) -> BenchRates {
    let LoadRates { bytes, load, read, upload } = *rates;
    BenchRates { bytes: bytes.0, load, read, upload, share: rates.share() }
}

/// The kernels of one piece of work, the longest class first; `streaming` in bytes a second.
pub fn kernels(phase: &str, depth: u32, tokens: u32, times: KernelTimes, streaming: f64) -> BenchKernels {
    let clock = match times.clocked {
        Clocked::Timestamps => "timestamps",
        Clocked::WallTime => "wall time",
    };
    let share = |bytes: u64, millis: f64| if millis > 0.0 { bytes as f64 * 1e3 / millis / streaming } else { 0.0 };
    let mut classes: Vec<BenchKernel> = times
        .classes
        .into_iter()
        .map(|time| BenchKernel {
            streaming_share: share(time.bytes, time.millis),
            class: time.class,
            variants: time.kernels,
            dispatches: time.dispatches,
            millis: time.millis,
            bytes: time.bytes,
        })
        .collect();
    classes.sort_by(|left, right| right.millis.total_cmp(&left.millis));
    let millis = classes.iter().map(|class| class.millis).sum();
    BenchKernels { phase: phase.to_owned(), depth, rows: tokens, clock: clock.to_owned(), millis, classes }
}

/// What a token takes beyond its kernels: submits, gaps between dispatches and the readback.
pub fn between(token: f64, kernels: f64) -> BenchKernel {
    BenchKernel { class: "between kernels".to_owned(), millis: (token - kernels).max(0.0), ..BenchKernel::default() }
}

/// The middle value; of an even number the mean of the two in the middle; 0 of none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// How workloads were measured, in sentences.
pub fn method(runs: u32) -> Vec<String> {
    vec![
        format!("Each workload ran {} times. The first run does not count; figures are medians of {runs}.", runs + 1),
        "Prefill: prompt tokens divided by the wall time from the first submission to the answer's first token."
            .to_owned(),
        "Decode: answer tokens without the first, divided by the wall time from the first token to the last. Greedy, multi-step."
            .to_owned(),
        "Sampled: the same with temperature 0.7, top-k 40 and top-p 0.95. The GPU samples ahead, and the processor samples each token again."
            .to_owned(),
        "The prompt consists of fixed token ids, without a tokenizer or a reused KV cache. An end-of-answer token does not end an answer."
            .to_owned(),
        format!(
            "A context of more than {} positions is not computed before it is read: its keys and values are whatever the memory held.",
            Bench::READ
        ),
        "Loading again: loads the weights from this device's storage once more, until the GPU has the last byte; also reads and uploads the same pieces separately."
            .to_owned(),
        "Memory speed used (streaming): the bytes a token must read (its weights and the KV cache before it), divided by what a plain read-only kernel reads in the same time."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median([].into_iter()), 0.0);
    }
}
