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
use potluck_model::{ChatTemplate, Message, ModelSpec, RenderOptions, Tokenizer};
use potluck_plan::{Input, KernelClass, KvCacheType, LmHeadTokens};
use support::{Bench, forward, gpu_as, load, logits, rows, top};

/// Builds a model from its description and reads it back with the file reader.
fn model(description: &serde_json::Value) -> support::Model {
    let synthetic: Synthetic = serde_json::from_value(description.clone()).unwrap();
    let file = synthetic.to_bytes().unwrap();
    let (spec, units) = ModelSpec::from_gguf(&join([parse(&file).unwrap()]).unwrap()).unwrap();
    support::Model { spec, units, file }
}

fn judge(path: &Path, tier: Tier) {
    let golden: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let model = model(&golden["model"]);
    let tolerance = golden["tolerance"].as_f64().unwrap();
    let gpu = gpu_as(Some(tier));
    let kv_type = golden["reference"]["cache"].as_str().unwrap().parse().unwrap();
    let settings = Settings { context: 128, kv_cache: kv_type, ..Settings::default() };
    let mut bench = Bench::empty(&gpu, &model.spec, &model.units, settings);
    bench.engine.reserve(&model.all_units()).unwrap();
    load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    let end = model.spec.blocks.len() as u16;
    let (mut checked, mut worst) = (0, 0.0f64);
    for prompt in golden["prompts"].as_array().unwrap() {
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
    assert!(checked > 100, "{path:?}: only {checked} positions count");
}

fn judge_all(folder: &str, min: usize) {
    let folder = format!("{}/../../e2e/golden/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= min, "the golden answers are missing");
    for path in &files {
        for tier in [Tier::Software, Tier::Full] {
            judge(path, tier);
        }
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../public/models");
    let file = std::fs::read(folder.join("potluck-small-Q4_K_M.gguf")).unwrap();
    let parsed = join([parse(&file).unwrap()]).unwrap();
    let (spec, units) = ModelSpec::from_gguf(&parsed).unwrap();
    let tokenizer = Tokenizer::from_metadata(&parsed.metadata).unwrap();
    let template = ChatTemplate::from_metadata(&parsed.metadata, &tokenizer).unwrap();
    // A conversation of the questions and answers that the model's README lists.
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let answers = readme.lines().skip_while(|line| *line != "| | prompt | answer |").skip(2).take(10);
    let cells = answers.map(|line| line.split(" | ").collect::<Vec<_>>());
    let messages: Vec<Message> = cells
        .flat_map(|cells| [Message::new("user", cells[1]), Message::new("assistant", cells[2].trim_end_matches(" |"))])
        .collect();
    let ids = template.encode(&tokenizer, &messages, &RenderOptions::default()).unwrap();
    assert!((300..1000).contains(&ids.len()), "{} tokens", ids.len());
    let model = support::Model { spec, units, file };
    let exact = perplexity(&model, &ids, KvCacheType::F32);
    assert!(exact < 20.0, "a perplexity of {exact:.3} is not that of the model's own answers");
    let change = perplexity(&model, &ids, KvCacheType::F16) / exact - 1.0;
    println!("{} tokens: {exact:.4}, with f16 {:+.4} %", ids.len(), 100.0 * change);
    assert!(change.abs() < 0.001, "the perplexity of {exact:.3} changes by {:+.3} %", 100.0 * change);
}
