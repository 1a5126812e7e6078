//! Tests the memory plan: budgets, limits, split tensors, and a lost device.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;

use potluck_engine::{EngineError, GpuOptions, Layout, LayoutError, Purpose, Settings, fixed_overhead};
use potluck_gguf::TensorType;
use potluck_model::{Architecture, FileRange, ModelSpec, TensorRole, TokenMixerSpec, UnitMap, UnitTensor};
use potluck_plan::{
    BlockIndex, Bytes, Input, KernelClass, KvCacheType, LmHeadTokens, Outcome, Then, Ticket, WeightUnit, Work,
};
use support::{Bench, Recipe, forward, gpu_as, gpu_with, logits, rows, top};

fn small() -> Settings {
    Settings { context: 64, prefill_tokens: 16, ..Settings::default() }
}

/// Prefills and decodes a few tokens.
fn answers(bench: &mut Bench) -> Vec<Vec<f32>> {
    [(0, 16, KernelClass::Prefill), (16, 20, KernelClass::Decode), (20, 21, KernelClass::Decode)]
        .map(|(from, to, class)| {
            let input = Input::Tokens((from..to).map(|i| i * 13 % 333).collect());
            bench.hidden(forward(rows(from..to), class, input, (0, 3), logits(LmHeadTokens::Last)))
        })
        .into()
}

#[test]
fn tensors_larger_than_a_binding_are_split_without_changing_a_bit() {
    use TensorType::{F16, Q4_0, Q6_K, Q8_0};
    for (architecture, kind) in [
        (Architecture::Qwen2, F16),
        (Architecture::Llama, Q8_0),
        (Architecture::Qwen3Moe, Q4_0),
        (Architecture::Qwen3Moe, Q6_K),
    ] {
        let recipe = Recipe { tied: kind == Q8_0, vocabulary: 1_050, ..Recipe::new(architecture, kind) };
        let model = recipe.build();
        let mut whole = Bench::new(&gpu_as(None), &model, &model.all_units(), small());
        let expected = answers(&mut whole);
        // As large as what a token batch needs besides, such as its biases.
        let limit = 132 << 10;
        let gpu = gpu_with(GpuOptions { binding_limit: Some(limit), ..GpuOptions::default() });
        let layout =
            Layout::plan(&model.spec, &model.units, &model.all_units(), &small(), &gpu.capabilities().limits).unwrap();
        let table = layout.buffers.iter().filter(|buffer| buffer.name.starts_with("embedding table")).count();
        assert!(table > 1, "{kind:?}: the table is not split");
        let mut split = Bench::new(&gpu, &model, &model.all_units(), small());
        assert_eq!(answers(&mut split), expected, "{architecture:?} {kind:?}");
    }
}

#[test]
fn a_share_that_does_not_fit_is_refused_with_the_shortfall() {
    let model = Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K).build();
    let gpu = gpu_as(None);
    let limits = &gpu.capabilities().limits;
    let plan = |settings: &Settings, held: &BTreeSet<WeightUnit>| {
        Layout::plan(&model.spec, &model.units, held, settings, limits)
    };
    let all = model.all_units();
    let layout = plan(&small(), &all).unwrap();
    let budget = Bytes(layout.total.0 - 1);
    let tight = Settings { budget, ..small() };
    assert_eq!(plan(&tight, &all).unwrap_err(), LayoutError::TooLarge { needed: layout.total, budget });
    let bench = Bench::empty(&gpu, &model.spec, &model.units, tight.clone());
    assert_eq!(
        bench.engine.reserve(&all).unwrap_err(),
        EngineError::Layout(LayoutError::TooLarge { needed: layout.total, budget })
    );
    // Without one expert it fits, and the total is the sum of its parts.
    let fewer = all.iter().copied().skip(1).collect();
    let smaller = plan(&tight, &fewer).unwrap();
    let parts: Bytes = [smaller.weights(), smaller.kv_cache(), smaller.overhead()].into_iter().sum();
    assert_eq!(parts, smaller.total);
    let weights: u64 = all.iter().map(|unit| model.unit_bytes(*unit)).sum();
    assert!(layout.weights().0 >= weights && layout.weights().0 < weights + weights / 20, "{}", layout.weights().0);
    assert!(fixed_overhead(&model.spec, &small()) >= layout.overhead());
    assert!(layout.bytes(Purpose::Scratch) > Bytes::ZERO);
}

/// The token mixers of Llama-3.2-1B: 16 blocks of 32 query heads over 8 key heads of 64 values. Has no weight bytes,
/// because only a plan is made.
fn llama_1b_mixers(head_dim: u32) -> (ModelSpec, UnitMap) {
    let model = Recipe { tied: true, ..Recipe::new(Architecture::Llama, TensorType::Q8_0) }.build();
    let mut block = model.spec.blocks[0].clone();
    let TokenMixerSpec::Attention(attention) = &mut block.token_mixer else { panic!("Llama attends") };
    (attention.heads, attention.kv_heads, attention.head_dim, attention.rope.dims) = (32, 8, head_dim, 64);
    let spec = ModelSpec { hidden: 2048, context: 131_072, blocks: vec![block; 16], ..model.spec };
    let mut units = UnitMap::default();
    for index in 0..16 {
        use TensorRole::{AttentionNorm, AttentionOutput, Key, Query, Value};
        let (q, kv) = (32 * head_dim, 8 * head_dim);
        let tensors = [
            (AttentionNorm, TensorType::F32, 1, 2048),
            (Query, TensorType::Q8_0, q, 2048),
            (Key, TensorType::Q8_0, kv, 2048),
            (Value, TensorType::Q8_0, kv, 2048),
            (AttentionOutput, TensorType::Q8_0, 2048, q),
        ];
        let tensor = |(role, kind, rows, cols): (TensorRole, TensorType, u32, u32)| {
            let len = u64::from(rows) * kind.row_bytes(u64::from(cols)).unwrap();
            UnitTensor { role, kind, cols, rows, range: FileRange { file: 0, offset: 0, len } }
        };
        units.insert(WeightUnit::TokenMixer(BlockIndex(index)), tensors.map(tensor).to_vec());
    }
    (spec, units)
}

#[test]
fn a_long_context_of_bytes_takes_a_quarter_of_one_of_floats() {
    let gpu = gpu_as(None);
    let (spec, units) = llama_1b_mixers(64);
    let held: BTreeSet<WeightUnit> = units.units().collect();
    let plan = |kv_type| {
        let settings = Settings { context: 32_768, kv_cache: kv_type, ..Settings::default() };
        Layout::plan(&spec, &units, &held, &settings, &gpu.capabilities().limits).unwrap()
    };
    let kv_type = |kind| plan(kind).kv_cache().0;
    // 16 blocks × 8 heads × 64 values × keys and values × 32,768 positions.
    assert_eq!(kv_type(KvCacheType::F32), 16 * 8 * 64 * 2 * 32_768 * 4);
    assert_eq!(kv_type(KvCacheType::F16) * 2, kv_type(KvCacheType::F32));
    assert_eq!(kv_type(KvCacheType::Q8_0), 16 * 8 * (64 + 4) * 2 * 32_768);
    assert_eq!(kv_type(KvCacheType::Q4_0), 16 * 8 * (32 + 4) * 2 * 32_768);
    // Nothing else depends on the KV cache type.
    let others = |kind| plan(kind).total.0 - kv_type(kind);
    assert_eq!(others(KvCacheType::Q8_0), others(KvCacheType::F32));
}

#[test]
fn heads_that_blocks_would_cut_are_refused_with_what_works() {
    let gpu = gpu_as(None);
    let (spec, units) = llama_1b_mixers(80);
    let held: BTreeSet<WeightUnit> = units.units().collect();
    let plan = |kv_type| {
        let settings = Settings { context: 64, kv_cache: kv_type, ..Settings::default() };
        Layout::plan(&spec, &units, &held, &settings, &gpu.capabilities().limits)
    };
    let error = plan(KvCacheType::Q8_0).unwrap_err();
    assert!(matches!(error, LayoutError::UnsupportedShape(_)), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains("80 values") && sentence.contains("q8_0") && sentence.contains("f16"), "{sentence}");
    assert!(plan(KvCacheType::F16).is_ok());
}

#[test]
fn damaged_descriptions_are_refused() {
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let gpu = gpu_as(None);
    let plan = |units| Layout::plan(&model.spec, &units, &model.all_units(), &small(), &gpu.capabilities().limits);
    let changed = |change: fn(&mut potluck_model::UnitTensor)| {
        let mut units = model.units.clone();
        let mut tensors = units.tensors(WeightUnit::LmHead).to_vec();
        change(&mut tensors[1]);
        units.insert(WeightUnit::LmHead, tensors);
        units
    };
    assert!(matches!(plan(changed(|tensor| tensor.range.len -= 2)), Err(LayoutError::BadTensor { .. })));
    assert!(matches!(plan(changed(|tensor| tensor.rows += 1)), Err(LayoutError::BadTensor { .. })));
    assert!(matches!(plan(changed(|tensor| tensor.kind = TensorType::Q8_K)), Err(LayoutError::UnsupportedType { .. })));
    let mut units = model.units.clone();
    units.insert(WeightUnit::LmHead, model.units.tensors(WeightUnit::LmHead)[..1].to_vec());
    assert!(matches!(plan(units), Err(LayoutError::MissingTensor { .. })));
}

#[test]
fn pieces_outside_their_tensor_are_refused() {
    use potluck_engine::Piece;
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, small());
    let unit = WeightUnit::Embedding;
    let len = model.unit_bytes(unit);
    bench.engine.reserve(&[unit].into()).unwrap();
    let good = Piece { unit, tensor: 0, tensor_offset: 0, staging_offset: 0, len: 8 };
    let other = WeightUnit::LmHead;
    for (piece, expected) in [
        (Piece { tensor_offset: len - 4, ..good }, EngineError::BadPiece(unit)),
        (Piece { tensor_offset: u64::MAX - 3, ..good }, EngineError::BadPiece(unit)),
        (Piece { staging_offset: u64::MAX - 3, ..good }, EngineError::BadPiece(unit)),
        (Piece { staging_offset: 2, ..good }, EngineError::BadPiece(unit)),
        (Piece { len: 6, ..good }, EngineError::BadPiece(unit)),
        (Piece { tensor: 1, ..good }, EngineError::BadPiece(unit)),
        (Piece { unit: other, ..good }, EngineError::NotHeld(other)),
    ] {
        // More rejections than there are staging buffers: each buffer returns to the ring.
        let staging = futures::executor::block_on(bench.engine.staging()).unwrap();
        assert_eq!(bench.engine.upload(staging, &[piece]).unwrap_err(), expected);
    }
    assert_eq!(bench.engine.finish(other).unwrap_err(), EngineError::NotHeld(other));
}

#[test]
fn a_lost_device_answers_everything() {
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let gpu = gpu_as(None);
    let mut bench = Bench::new(&gpu, &model, &model.all_units(), Settings { in_flight: 1, ..small() });
    let task = |at: u32| {
        forward(rows(at..at + 1), KernelClass::Decode, Input::Tokens(vec![1]), (0, 3), top(LmHeadTokens::Last, 1))
    };
    let tickets: Vec<Ticket> = (0..3).map(|at| bench.start(task(at))).collect();
    gpu.destroy();
    let outcomes: Vec<Outcome> = tickets.into_iter().map(|ticket| bench.answer(ticket)).collect();
    assert_eq!(outcomes[1..], [Outcome::DeviceLost, Outcome::DeviceLost], "the first may still have arrived");
    assert!(bench.engine.lost());
    let refused = bench.engine.submit(Work { ticket: Ticket(99), task: task(0) });
    assert_eq!(refused, Err(EngineError::Lost));
    assert!(matches!(futures::executor::block_on(bench.engine.staging()), Err(EngineError::Lost)));
}

#[test]
fn results_longer_than_their_buffer_come_in_pieces_with_the_same_bits() {
    let model = Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0).build();
    let gpu = gpu_as(None);
    let settings = Settings { context: 512, prefill_tokens: 512, ..Settings::default() };
    let mut bench = Bench::new(&gpu, &model, &model.all_units(), settings.clone());
    let layout =
        Layout::plan(&model.spec, &model.units, &model.all_units(), &settings, &gpu.capabilities().limits).unwrap();
    let count = 400;
    let vectors = 4 * u64::from(model.spec.hidden) * count;
    let largest = layout.buffers.iter().filter(|buffer| buffer.purpose == Purpose::Readback).map(|b| b.bytes.0).max();
    assert!(largest.unwrap() < vectors, "the vectors of {count} rows fit one buffer: nothing is tested");

    let token = |at: u32| at * 13 % 333;
    let some = |from: u32, to: u32, then| {
        let input = Input::Tokens((from..to).map(token).collect());
        forward(rows(from..to), KernelClass::Prefill, input, (0, 3), then)
    };
    let whole = bench.hidden(some(0, count as u32, Then::Hidden));
    let parts: Vec<f32> = (0..8).flat_map(|i| bench.hidden(some(50 * i, 50 * i + 50, Then::Hidden))).collect();
    assert!(whole == parts, "vectors of {count} rows differ from those of 50 at a time");

    let decode = |from: u32, to: u32| {
        let input = Input::Tokens((from..to).map(token).collect());
        forward(rows(from..to), KernelClass::Decode, input, (0, 3), logits(LmHeadTokens::All))
    };
    let whole = bench.hidden(decode(400, 416));
    let parts: Vec<f32> = (400..416).flat_map(|at| bench.hidden(decode(at, at + 1))).collect();
    assert!(whole == parts, "logits of 16 rows differ from those of one at a time");
}

#[test]
fn staging_buffers_are_there_only_during_a_load() {
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let mut bench = Bench::new(&gpu_as(None), &model, &model.all_units(), small());
    let expected = answers(&mut bench);
    let engine = bench.engine.clone();
    let staging = || futures::executor::block_on(engine.staging()).unwrap();
    assert!(engine.staging_count() > 0, "the load of this test leaves them");
    let filled = staging();
    engine.close_staging();
    assert_eq!(engine.staging_count(), 1, "one is in use");
    drop(filled);
    bench.engine.poll();
    assert_eq!(engine.staging_count(), 0, "it goes when it comes back");
    // The next load creates new buffers, and one that was closed while in flight completes its copy.
    engine.invalidate_weights();
    support::load(&engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    engine.close_staging();
    futures::executor::block_on(engine.uploaded()).unwrap();
    assert_eq!(engine.staging_count(), 0);
    assert_eq!(answers(&mut bench), expected);
}
