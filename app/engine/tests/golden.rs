//! Compares with llama.cpp's answers on the same weights (`e2e/golden`), on this machine's adapter.
//!
//! At every position either our best token equals the reference's and its logit is close, or the reference's own margin
//! is below the stated tolerance. This also holds for quantized keys and values. The models come from seeds and pass
//! through the product's file reader. `e2e/judge` covers splits over devices, and browsers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;

use potluck_engine::{Settings, Tier};
use potluck_gguf::synthetic::Synthetic;
use potluck_gguf::{join, parse};
use potluck_model::ModelSpec;
use potluck_plan::{Input, KernelClass, KvCacheType, LmHeadTokens};
use potluck_testkit::gunzip;
use support::built_in::built_in;
use support::{Bench, forward, gpu_as, load, logits, rows, top};

/// Builds a model from its description and reads it back with the file reader.
fn model(description: &serde_json::Value) -> support::Model {
    let synthetic: Synthetic = serde_json::from_value(description.clone()).unwrap();
    let file = synthetic.to_bytes().unwrap();
    let (spec, units) = ModelSpec::from_gguf(&join([parse(&file).unwrap()]).unwrap()).unwrap();
    support::Model { spec, units, file }
}

/// Judges all prompts with the full kernels, and the first one with those of software adapters.
fn judge(path: &Path) {
    let golden: serde_json::Value = serde_json::from_str(&gunzip(&std::fs::read(path).unwrap())).unwrap();
    let model = model(&golden["model"]);
    let prompts = golden["prompts"].as_array().unwrap();
    judge_prompts(path, &golden, &model, (Tier::Full, prompts));
    judge_prompts(path, &golden, &model, (Tier::Software, &prompts[..1]));
}

fn judge_prompts(
    path: &Path,
    golden: &serde_json::Value,
    model: &support::Model,
    (tier, prompts): (Tier, &[serde_json::Value]),
) {
    let tolerance = golden["tolerance"].as_f64().unwrap();
    let gpu = gpu_as(Some(tier));
    let kv_type = golden["reference"]["cache"].as_str().unwrap().parse().unwrap();
    let settings = Settings { context: 128, kv_cache: kv_type, ..Settings::default() };
    let mut bench = Bench::empty(&gpu, &model.spec, &model.units, settings);
    bench.engine.reserve(&model.all_units()).unwrap();
    load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    let end = model.spec.blocks.len() as u16;
    let (mut checked, mut worst) = (0, 0.0f64);
    for prompt in prompts {
        let numbers = |key: &str| prompt[key].as_array().unwrap().clone();
        let ids: Vec<u32> = numbers("ids").iter().map(|id| id.as_u64().unwrap() as u32).collect();
        let (argmax, margin, logits) = (numbers("argmax"), numbers("margin"), numbers("logits"));
        // A chunk of 37 tokens, then 16 at a time, then single tokens, so that every kind of kernel computes some
        // positions.
        let mut cuts = vec![(0, 37, KernelClass::Prefill), (37, 53, KernelClass::Decode)];
        cuts.extend((53..ids.len()).map(|at| (at, at + 1, KernelClass::Decode)));
        for (from, to, class) in cuts {
            let input = Input::Tokens(ids[from..to].to_vec());
            let task = forward(rows(from as u32..to as u32), class, input, (0, end), top(LmHeadTokens::All, 1));
            for (position, best) in (from..to).zip(bench.candidates(task)) {
                let same = u64::from(best.ids[0]) == argmax[position].as_u64().unwrap();
                let clear = margin[position].as_f64().unwrap() >= tolerance;
                assert!(
                    same || !clear,
                    "{path:?} {tier:?} position {position}: {best:?}, expected {}",
                    argmax[position]
                );
                let far = (f64::from(best.logits[0]) - logits[position][0].as_f64().unwrap()).abs();
                assert!(!same || far < tolerance, "{path:?} {tier:?} position {position}: off by {far}");
                worst = worst.max(if same { far } else { 0.0 });
                checked += usize::from(clear);
            }
        }
    }
    println!("{path:?} {tier:?}: {checked} positions, logits off by up to {worst:.2e}");
    assert!(checked > 33 * prompts.len(), "{path:?}: only {checked} positions count");
}

fn judge_all(folder: &str, min: usize) {
    let folder = format!("{}/../../e2e/golden/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= min, "the golden answers are missing");
    for path in &files {
        judge(path);
    }
}

#[test]
fn every_golden_answer_is_ours_too() {
    judge_all("data", 10);
}

#[test]
fn golden_answers_with_smaller_keys_and_values_are_ours_too() {
    judge_all("cache", 4);
}

/// Perplexity of a text, each token after all before it.
fn perplexity(model: &support::Model, ids: &[u32], kv_cache: KvCacheType) -> f64 {
    let settings = Settings { context: ids.len() as u32, kv_cache, ..Settings::default() };
    let mut bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, settings);
    bench.engine.reserve(&model.all_units()).unwrap();
    load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    let (end, vocabulary) = (model.spec.blocks.len() as u16, model.spec.vocabulary as usize);
    let mut surprise = 0.0;
    for from in (0..ids.len() - 1).step_by(16) {
        let to = (from + 16).min(ids.len() - 1);
        let input = Input::Tokens(ids[from..to].to_vec());
        let then = logits(LmHeadTokens::All);
        let all = bench.hidden(forward(rows(from as u32..to as u32), KernelClass::Prefill, input, (0, end), then));
        for (row, &next) in all.chunks(vocabulary).zip(&ids[from + 1..=to]) {
            let peak = row.iter().copied().fold(f32::MIN, f32::max);
            let total: f64 = row.iter().map(|v| f64::from(v - peak).exp()).sum();
            surprise += total.ln() - f64::from(row[next as usize] - peak);
        }
    }
    (surprise / (ids.len() - 1) as f64).exp()
}

#[test]
fn half_float_keys_and_values_change_no_perplexity_by_a_thousandth() {
    let (model, ids) = built_in(10);
    assert!((300..1000).contains(&ids.len()), "{} tokens", ids.len());
    let exact = perplexity(&model, &ids, KvCacheType::F32);
    assert!(exact < 20.0, "a perplexity of {exact:.3} is not that of the model's own answers");
    let change = perplexity(&model, &ids, KvCacheType::F16) / exact - 1.0;
    println!("{} tokens: {exact:.4}, with f16 {:+.4} %", ids.len(), 100.0 * change);
    assert!(change.abs() < 0.001, "the perplexity of {exact:.3} changes by {:+.3} %", 100.0 * change);
}
