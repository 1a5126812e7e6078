//! Whole tokens on this machine's adapter: `cargo bench -p potluck-engine --bench decode`.
//!
//! A random model of a small model's shape; per token: time, and the part of it that the processor spends encoding.
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use potluck_engine::Settings;
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{HeadRows, Input, KernelClass};
use support::{Bench, Recipe, forward, gpu_as, rows, top};

fn main() {
    let gpu = gpu_as(match std::env::var("POTLUCK_TIER").as_deref() {
        Ok("software") => Some(potluck_engine::Tier::Software),
        Ok("full") => Some(potluck_engine::Tier::Full),
        _ => None,
    });
    for (name, recipe) in [
        ("dense 8 × 512, Q8_0", dense(TensorType::Q8_0)),
        ("dense 8 × 512, Q4_K", dense(TensorType::Q4_K)),
        (
            "experts 8 × 512, Q4_K",
            Recipe { architecture: Architecture::Qwen3Moe, experts: true, ..dense(TensorType::Q4_K) },
        ),
    ] {
        let model = recipe.build();
        let mut bench = Bench::new(&gpu, &model, &model.all_units(), Settings::default());
        futures::executor::block_on(bench.engine.prepare()).unwrap();
        let end = model.spec.blocks.len() as u16;
        let last = top(HeadRows::Last, 1);
        let prompt = || forward(rows(0..128), KernelClass::Prefill, Input::Tokens(vec![3; 128]), (0, end), last);
        bench.candidates(prompt());
        let started = Instant::now();
        bench.candidates(prompt());
        let prefill = 128.0 / started.elapsed().as_secs_f64();
        let token = |at: u32| forward(rows(at..at + 1), KernelClass::Decode, Input::Tokens(vec![3]), (0, end), last);
        (128..132).for_each(|at| {
            bench.candidates(token(at));
        });
        let mut encoding = 0.0;
        let started = Instant::now();
        let count = 32;
        for at in 132..132 + count {
            let begin = Instant::now();
            let ticket = bench.start(token(at));
            encoding += begin.elapsed().as_secs_f64();
            bench.answer(ticket);
        }
        let each = started.elapsed().as_secs_f64() * 1e3 / f64::from(count);
        println!(
            "{name}: {:.1} MB, prefill {prefill:.0} tokens/s, decode {each:.2} ms a token, encoding {:.2} ms",
            model.file.len() as f64 / 1e6,
            encoding * 1e3 / f64::from(count)
        );
    }
}

fn dense(kind: TensorType) -> Recipe {
    Recipe {
        hidden: 512,
        intermediate: 1536,
        vocabulary: 8192,
        blocks: 8,
        tied: true,
        ..Recipe::new(Architecture::Qwen3, kind)
    }
}
