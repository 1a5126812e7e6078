//! Tests parts of staging buffers: who has one, when a buffer returns, and that filled in other threads they give the same bits.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures::executor::block_on;
use futures::future::join;
use potluck_engine::{Engine, EngineError, Piece, Settings, StagingPart};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{Input, KernelClass, LmHeadTokens, WeightUnit};
use support::{Bench, Model, Recipe, forward, gpu_as, logits, rows};

/// Bytes of the buffer: less than most tensors have.
const SIZE: u64 = 64 << 10;

fn one_buffer() -> Settings {
    Settings { context: 64, prefill_tokens: 16, staging_bytes: SIZE as u32, staging_count: 1, ..Settings::default() }
}

fn model() -> Model {
    Recipe::new(Architecture::Qwen3, TensorType::Q6_K).build()
}

fn fill(mut part: StagingPart, bytes: &[u8]) {
    let copy = |at: u64, to: &mut [u8]| {
        to.copy_from_slice(&bytes[at as usize..][..to.len()]);
        Ok::<_, ()>(())
    };
    part.fill(copy).unwrap();
}

#[test]
fn a_buffer_returns_when_it_and_all_parts_of_it_are_back() {
    let model = model();
    let bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, one_buffer());
    let free = || bench.engine.free_staging().unwrap();
    let staging = free().expect("nobody has it");
    let (first, second) = (staging.part(0, 20).unwrap(), staging.part(24, 100).unwrap());
    assert_eq!((first.len(), second.len()), (20, 100));
    for (offset, len) in [(0, 4), (16, 4), (120, 8), (130, 8), (SIZE, 8), (SIZE - 8, 9)] {
        assert!(staging.part(offset, len).is_none(), "{len} bytes at {offset}");
    }
    drop(second);
    assert!(staging.part(24, 8).is_some(), "a part that was dropped without being filled came back");
    drop(staging);
    assert!(free().is_none(), "a part of it is out");
    std::thread::spawn(move || fill(first, &[7; 20])).join().unwrap();
    assert!(free().is_some(), "the last part came back from its thread");
}

#[test]
fn a_failed_read_leaves_the_part_to_be_filled_again() {
    let model = model();
    let bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, one_buffer());
    let staging = bench.engine.free_staging().unwrap().unwrap();
    let mut part = staging.part(0, 64).unwrap();
    assert_eq!(part.fill(|_, _| Err("the disk is gone")), Err("the disk is gone"));
    drop(part);
    fill(staging.part(0, 64).unwrap(), &[1; 64]);
}

#[test]
fn a_file_in_memory_is_loaded_whole_or_not_at_all() {
    let model = model();
    let gpu = gpu_as(None);
    let task = || {
        let (input, then) = (Input::Tokens((1..6).collect()), logits(LmHeadTokens::Last));
        forward(rows(0..5), KernelClass::Decode, input, (0, model.spec.blocks.len() as u16), then)
    };
    let mut by_pieces = Bench::new(&gpu, &model, &model.all_units(), one_buffer());
    let mut at_once = Bench::empty(&gpu, &model.spec, &model.units, one_buffer());
    at_once.engine.reserve(&model.all_units()).unwrap();
    let end = model.file.len() - 1;
    let failed = block_on(at_once.engine.load_from(&model.file[..end])).unwrap_err();
    assert!(matches!(failed, EngineError::FileTooShort(unit) if at_once.engine.missing().contains(&unit)), "{failed}");
    block_on(at_once.engine.load_from(&model.file)).unwrap();
    assert_eq!(at_once.engine.missing(), []);
    assert_eq!(at_once.hidden(task()), by_pieces.hidden(task()), "other weights than by pieces");
}

#[test]
fn a_buffer_with_a_part_out_is_not_uploaded() {
    let model = model();
    let bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, one_buffer());
    let unit = WeightUnit::Embedding;
    bench.engine.reserve(&[unit].into()).unwrap();
    let piece = Piece { unit, tensor: 0, tensor_offset: 0, staging_offset: 0, len: 8 };
    let staging = bench.engine.free_staging().unwrap().unwrap();
    let part = staging.part(0, 8).unwrap();
    assert_eq!(bench.engine.upload(staging, &[piece]), Err(EngineError::PartsOut));
    assert!(bench.engine.free_staging().unwrap().is_none(), "the part is still out");
    drop(part);
    let staging = bench.engine.free_staging().unwrap().expect("it came back");
    bench.engine.upload(staging, &[piece]).unwrap();
    block_on(bench.engine.uploads_at_most(0)).unwrap();
    assert!(bench.engine.free_staging().unwrap().is_some(), "mapped again");
}

/// Loads everything through one buffer, whose parts are filled in threads. Nobody polls the engine.
fn load_in_threads(engine: &Engine, model: &Model) {
    for unit in engine.missing() {
        for tensor in 0..model.units.tensors(unit).len() {
            let bytes = model.bytes(unit, tensor);
            let mut done = 0;
            while done < bytes.len() {
                let staging = block_on(engine.staging()).unwrap();
                let mut pieces = Vec::new();
                std::thread::scope(|threads| {
                    let mut at = 0;
                    while done < bytes.len() && at < staging.len() {
                        let len = (bytes.len() - done).min(4000).min((staging.len() - at) as usize);
                        let (part, bytes) = (staging.part(at, len as u64).unwrap(), &bytes[done..done + len]);
                        threads.spawn(move || fill(part, bytes));
                        let (tensor_offset, len) = (done as u64, len as u64);
                        pieces.push(Piece { unit, tensor, tensor_offset, staging_offset: at, len });
                        done += len as usize;
                        at = (at + len).next_multiple_of(8);
                    }
                });
                engine.upload(staging, &pieces).unwrap();
            }
        }
        engine.finish(unit).unwrap();
    }
}

#[test]
fn weights_that_threads_put_into_parts_give_the_same_bits() {
    let model = model();
    let mut bench = Bench::new(&gpu_as(None), &model, &model.all_units(), one_buffer());
    let mut answer = || {
        let input = Input::Tokens((0..8).collect());
        bench.hidden(forward(rows(0..8), KernelClass::Prefill, input, (0, 3), logits(LmHeadTokens::Last)))
    };
    let expected = answer();
    let engine = bench.engine.clone();
    engine.invalidate_weights();
    load_in_threads(&engine, &model);
    let mut answer = || {
        let input = Input::Tokens((0..8).collect());
        bench.hidden(forward(rows(0..8), KernelClass::Prefill, input, (0, 3), logits(LmHeadTokens::Last)))
    };
    assert!(answer() == expected, "other bits");
}

#[test]
fn others_on_the_thread_go_on_while_one_waits_for_a_buffer() {
    let model = model();
    let bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, one_buffer());
    let held = bench.engine.free_staging().unwrap().unwrap();
    let waits = async { bench.engine.staging().await.map(|staging| staging.len()) };
    // If the first one blocked the thread, the second one would never give the buffer back.
    let (len, ()) = block_on(join(waits, async { drop(held) }));
    assert_eq!(len, Ok(SIZE));
}
