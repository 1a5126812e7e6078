//! Runs the self-test and the bandwidth measurement on this machine's adapter.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures::executor::block_on;
use potluck_engine::{Settings, Tier};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::KvCacheType;
use support::{Bench, Recipe, gpu_as};

#[test]
fn every_kernel_in_use_passes_its_self_test() {
    use TensorType::*;
    for tier in [Tier::Software, Tier::Full] {
        let gpu = gpu_as(Some(tier));
        for (architecture, kind, kv_type) in [
            (Architecture::Qwen2, Q6_K, KvCacheType::F32),
            (Architecture::Llama, F32, KvCacheType::F32),
            (Architecture::Qwen2, F16, KvCacheType::F16),
            (Architecture::Qwen3, Q8_0, KvCacheType::F32),
            (Architecture::Qwen3Moe, Q4_0, KvCacheType::F16),
            (Architecture::Qwen3Moe, Q4_K, KvCacheType::F32),
            (Architecture::Llama, Q8_0, KvCacheType::Q8_0),
            (Architecture::Qwen3, Q8_0, KvCacheType::Q8_0),
            (Architecture::Qwen2, Q8_0, KvCacheType::Q4_0),
        ] {
            let recipe = Recipe { factors: architecture == Architecture::Llama, ..Recipe::new(architecture, kind) };
            let model = recipe.build();
            let settings = Settings { context: 128, kv_cache: kv_type, ..Settings::default() };
            let bench = Bench::new(&gpu, &model, &model.all_units(), settings);
            let started = std::time::Instant::now();
            block_on(bench.engine.prepare()).unwrap();
            let prepared = started.elapsed();
            let verdict = block_on(bench.engine.self_test()).unwrap();
            println!("{tier:?} {kind:?}: pipelines {prepared:.1?}, all {:.1?}", started.elapsed());
            for kernel in &verdict.kernels {
                assert!(kernel.ok, "{tier:?} {kernel:?}");
            }
            assert!(verdict.usable && !verdict.fallback && verdict.rows_agree, "{tier:?} {kind:?}");
            assert!(verdict.kernels.len() >= 9, "{:?}", verdict.kernels);
        }
    }
}

#[test]
fn the_device_has_a_measurable_rate() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_K).build();
    let bench = Bench::new(&gpu_as(None), &model, &model.all_units(), Settings::default());
    let rate = block_on(bench.engine.bandwidth()).unwrap();
    let stream = block_on(bench.engine.streaming_rate()).unwrap();
    println!("{rate:.2} GB/s of weights, {stream:.2} GB/s of memory");
    assert!(rate.is_finite() && rate > 0.0, "{rate}");
    assert!(stream.is_finite() && stream > 0.0, "{stream}");
}
