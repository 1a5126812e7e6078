//! Decode with published models' shapes and random weights: `cargo bench -p potluck-engine --bench decode`.
//!
//! For each model: tokens per second one by one, with tokens submitted ahead, and in groups that share a readback;
//! dispatches and CPU microseconds per token; then GB/s per matrix shape. `POTLUCK_SHAPES` (comma-separated names;
//! `small` for one that a software adapter can handle), `POTLUCK_PROMPT`, `POTLUCK_TOKENS` and `POTLUCK_TIER`
//! (`software`, `full`) change what is measured.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use futures::executor::block_on;
use potluck_engine::{Engine, Settings, Tier};
use potluck_gguf::synthetic::{Shape, Synthetic};
use potluck_gguf::{join, parse};
use potluck_model::ModelSpec;
use potluck_plan::{FirstToken, Input, KernelClass, LmHeadTokens, Task};
use potluck_shaders::Format;
use support::{Bench, Model, forward, gpu_as, rows, top};

/// Reads a number from the environment.
fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn shapes() -> Vec<(String, Synthetic)> {
    let names = std::env::var("POTLUCK_SHAPES").unwrap_or_else(|_| "llama-3.2-1b,qwen3-30b-a3b".into());
    names
        .split(',')
        .map(|name| match Shape::from_name(name) {
            Some(Shape::Qwen3_30B_A3B) => {
                ("4 blocks of qwen3-30b-a3b".to_owned(), Synthetic { blocks: 4, ..Shape::Qwen3_30B_A3B.synthetic() })
            }
            Some(shape) => (name.to_owned(), shape.synthetic()),
            None => ("2 blocks of llama-160m".to_owned(), Synthetic { blocks: 2, ..Shape::Llama160M.synthetic() }),
        })
        .collect()
}

fn model(synthetic: &Synthetic) -> Model {
    let file = synthetic.to_bytes().unwrap();
    let (spec, units) = ModelSpec::from_gguf(&join([parse(&file).unwrap()]).unwrap()).unwrap();
    Model { spec, units, file }
}

/// Measurements of one way of decoding.
struct Taken {
    seconds: f64,
    encoding: f64,
    tokens: u32,
}

impl Taken {
    fn print(&self, name: &str, bytes: u64) {
        let rate = f64::from(self.tokens) / self.seconds;
        println!(
            "  {name:<28} {rate:>8.1} tok/s  {:>7.0} µs a token, {:>5.0} of them encoding, {:>6.0} GB/s of weights",
            1e6 / rate,
            self.encoding * 1e6 / f64::from(self.tokens),
            rate * bytes as f64 / 1e9
        );
    }
}

/// Decodes `tokens` tokens from position `from` on, with up to `depth` pieces of `steps` steps in flight.
fn ahead(bench: &mut Bench, from: u32, tokens: u32, depth: u32, steps: u16) -> Taken {
    let pieces = tokens / u32::from(steps);
    let (mut started, mut encoding) = (0, 0.0);
    let begin = Instant::now();
    loop {
        let done = bench.results.borrow().len() as u32;
        while started < pieces && started < done + depth {
            let row = rows(from + started * u32::from(steps)..from + started * u32::from(steps) + 1)[0];
            let token = if started == 0 { FirstToken::Given(1) } else { FirstToken::Sampled };
            let before = Instant::now();
            bench.start(Task::Continue { row, token, steps, sampling: None });
            encoding += before.elapsed().as_secs_f64();
            started += 1;
        }
        if done == pieces {
            break;
        }
        bench.engine.poll_for(Duration::from_millis(100));
    }
    let seconds = begin.elapsed().as_secs_f64();
    bench.results.borrow_mut().clear();
    Taken { seconds, encoding, tokens: pieces * u32::from(steps) }
}

/// The same, with each token read back before the next is requested.
fn one_by_one(bench: &mut Bench, from: u32, tokens: u32, end: u16) -> Taken {
    let mut token = 1;
    let mut encoding = 0.0;
    let begin = Instant::now();
    for at in from..from + tokens {
        let input = Input::Tokens(vec![token]);
        let task = forward(rows(at..at + 1), KernelClass::Decode, input, (0, end), top(LmHeadTokens::Last, 1));
        let before = Instant::now();
        let ticket = bench.start(task);
        encoding += before.elapsed().as_secs_f64();
        let potluck_plan::Outcome::Candidates(best) = bench.answer(ticket) else { panic!("no candidates") };
        token = best[0].ids[0];
    }
    Taken { seconds: begin.elapsed().as_secs_f64(), encoding, tokens }
}

fn main() {
    let gpu = gpu_as(match std::env::var("POTLUCK_TIER").as_deref() {
        Ok("software") => Some(Tier::Software),
        Ok("full") => Some(Tier::Full),
        _ => None,
    });
    let (prompt, tokens) = (number("POTLUCK_PROMPT", 512), number("POTLUCK_TOKENS", 128));
    for (name, synthetic) in shapes() {
        let model = model(&synthetic);
        let settings = Settings { context: prompt + tokens + 64, ..Settings::default() };
        let mut bench = Bench::empty(&gpu, &model.spec, &model.units, settings);
        bench.engine.reserve(&model.all_units()).unwrap();
        block_on(bench.engine.load_from(&model.file)).unwrap();
        block_on(bench.engine.prepare()).unwrap();
        let verdict = block_on(bench.engine.self_test()).unwrap();
        let wrong: Vec<&str> = verdict.kernels.iter().filter(|k| !k.ok).map(|k| k.name.as_str()).collect();
        println!(
            "{name}: {:.0} MB, {} kernels, wrong: {wrong:?}",
            model.file.len() as f64 / 1e6,
            verdict.kernels.len()
        );
        let end = model.spec.blocks.len() as u16;
        let started = Instant::now();
        for first in (0..prompt).step_by(128) {
            let chunk = first..(first + 128).min(prompt);
            let input = Input::Tokens(vec![3; chunk.len()]);
            bench.candidates(forward(rows(chunk), KernelClass::Prefill, input, (0, end), top(LmHeadTokens::Last, 1)));
        }
        println!("  prefill {:.0} tok/s", f64::from(prompt) / started.elapsed().as_secs_f64());
        // Bytes a token reads: everything but the embedding rows it does not look up and the experts it does not use.
        let all: u64 = model.units.units().map(|unit| model.unit_bytes(unit)).sum();
        let table = model.unit_bytes(potluck_plan::WeightUnit::Embedding);
        let experts: u64 = model
            .units
            .units()
            .filter(|unit| matches!(unit, potluck_plan::WeightUnit::Expert(..)))
            .map(|unit| model.unit_bytes(unit))
            .sum();
        let share = if synthetic.experts > 0 { f64::from(synthetic.used) / f64::from(synthetic.experts) } else { 1.0 };
        let bytes = all - table - experts + (experts as f64 * share) as u64;
        one_by_one(&mut bench, prompt, tokens.min(8), end);
        one_by_one(&mut bench, prompt, tokens, end).print("one by one", bytes);
        println!("  {} dispatches a token", bench.engine.dispatches());
        for depth in [1, 2, 4] {
            ahead(&mut bench, prompt, tokens, depth, 1).print(&format!("{depth} under way"), bytes);
        }
        for steps in [4, 8] {
            ahead(&mut bench, prompt, tokens, 2, steps).print(&format!("2 groups of {steps} under way"), bytes);
        }
        rates(&bench.engine);
        bench.engine.destroy();
    }
}

/// Prints GB/s of the decode kernel for the matrix shapes of both models.
fn rates(engine: &Engine) {
    println!("  streams {:.0} GB/s", block_on(engine.streaming_rate()).unwrap());
    for (format, rows, cols) in [
        (Format::Q4_K, 3072, 2048),
        (Format::Q4_K, 2048, 2048),
        (Format::Q4_K, 8192, 2048),
        (Format::Q4_K, 2048, 8192),
        (Format::Q6_K, 2048, 8192),
        (Format::Q4_K, 4096, 2048),
        (Format::Q4_K, 2048, 4096),
        (Format::Q6_K, 128_256, 2048),
    ] {
        let rate = block_on(engine.decode_rate(format, rows, cols)).unwrap();
        println!("  {:5} {rows:>6} × {cols:<5} {rate:>6.0} GB/s", format.name());
    }
}
