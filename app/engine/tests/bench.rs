//! The bench counts every token and reports the kernels a token really uses.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;

use futures::executor::block_on;
use potluck_engine::bench::{Answers, Bench, Workload};
use potluck_engine::{Engine, EngineError, Gpu, Settings};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use support::{Model, Recipe, gpu_as, load};

fn bench(gpu: &Gpu, model: &Model, settings: Settings) -> Bench {
    let answers = Answers::default();
    let engine = Engine::new(gpu, model.spec.clone(), model.units.clone(), settings, answers.receiver()).unwrap();
    engine.reserve(&model.all_units()).unwrap();
    load(&engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    block_on(engine.prepare()).unwrap();
    Bench::new(engine, answers)
}

#[test]
fn runs_after_one_context_are_alike_and_count_every_token() {
    let gpu = gpu_as(None);
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let bench = bench(&gpu, &model, Settings { context: 512, ..Settings::default() });
    let workload = Workload { depth: 200, prompt: 25, answer: 6 };
    block_on(bench.deepen(workload.depth)).unwrap();
    let first = block_on(bench.run(workload)).unwrap();
    assert_eq!(first.tokens.len(), 6);
    assert!(first.first_token > 0.0 && first.decode > 0.0);
    assert_eq!(
        bench.engine().kv_cache_len(potluck_plan::ConversationId(0)),
        200 + 25 + 5,
        "the last token is not read"
    );
    // A repeat overwrites what the previous run wrote.
    assert_eq!(block_on(bench.run(workload)).unwrap().tokens, first.tokens);
    // Without the context the answer differs.
    block_on(bench.deepen(0)).unwrap();
    assert_ne!(block_on(bench.run(Workload { depth: 0, ..workload })).unwrap().tokens, first.tokens);
    let too_long = block_on(bench.run(Workload { depth: 0, prompt: 600, answer: 1 }));
    assert!(matches!(too_long, Err(EngineError::Gpu(_) | EngineError::OutOfKvCache { .. })), "{too_long:?}");
}

#[test]
fn a_deep_context_is_there_at_once() {
    let gpu = gpu_as(None);
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let depth = 2 * Bench::READ;
    let bench = bench(&gpu, &model, Settings { context: depth + 64, ..Settings::default() });
    block_on(bench.deepen(depth)).unwrap();
    assert_eq!(bench.engine().dispatches(), 0, "nothing was computed");
    assert_eq!(block_on(bench.run(Workload { depth, prompt: 3, answer: 2 })).unwrap().tokens.len(), 2);
    let decode = block_on(bench.decode_kernels(depth)).unwrap();
    let read: u64 = decode.classes.iter().filter(|time| time.class == "attention").map(|time| time.bytes).sum();
    assert!(read >= bench.token_bytes(depth) - bench.token_bytes(0), "{read} bytes: all keys and values before it");
    assert!(matches!(block_on(bench.deepen(2 * depth)), Err(EngineError::OutOfKvCache { .. })));
}

#[test]
fn kernels_are_timed_by_class_with_the_bytes_they_read() {
    let gpu = gpu_as(None);
    let model = Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K).build();
    let bench = bench(&gpu, &model, Settings { context: 256, ..Settings::default() });
    block_on(bench.deepen(64)).unwrap();
    let (rows, prefill) = block_on(bench.prefill_kernels(64)).unwrap();
    let decode = block_on(bench.decode_kernels(64)).unwrap();
    assert_eq!(rows, 64, "a software adapter reads 64 rows of a prompt at a time");
    for (times, phase) in [(&decode, "decode"), (&prefill, "prefill")] {
        let classes: BTreeSet<&str> = times.classes.iter().map(|time| time.class.as_str()).collect();
        assert_eq!(classes.len(), times.classes.len(), "{phase}: no class twice");
        assert!(classes.iter().any(|class| class.starts_with("attention")), "{phase}: {classes:?}");
        assert!(classes.iter().any(|class| class.ends_with(" experts")), "{phase}: {classes:?}");
        for time in &times.classes {
            assert!(time.dispatches > 0 && !time.kernels.is_empty(), "{phase}: {time:?}");
            assert!(time.millis >= 0.0 && time.millis < 5_000.0, "{phase}: {time:?}");
        }
    }
    // Matrix bytes of one decoded token: what it must read, less norms and KV cache.
    let read: u64 = decode.classes.iter().filter(|time| time.class.starts_with("mat")).map(|time| time.bytes).sum();
    let needed = bench.token_bytes(0);
    assert!(read <= needed && read * 10 > needed * 9, "{read} bytes by the kernels, {needed} needed");
    let position = 3 * 2 * 2 * 32 * 4;
    assert_eq!(
        bench.token_bytes(64) - needed,
        64 * position,
        "keys and values of three blocks, two heads of 32, in f32"
    );
}
