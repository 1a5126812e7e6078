//! Prefill on this machine's adapter: `cargo bench -p potluck-engine --bench prefill`. The binary also runs standalone
//! on another machine.
//!
//! Uses models of published shapes in `Q4_K_M` with random weights (`--shape NAME[:BLOCKS]`, repeatable; by default the
//! anchors of BENCHMARKS.md), or a file (`--model FILE.gguf`). Prints TFLOP/s of every matrix of a block with every
//! tile, tokens per second of a 512-token prompt in chunks of several sizes, and where the time of the largest chunk
//! goes. `--tier software|full` selects the other kernels, `--prompt N` another prompt length,
//! `--arithmetic packed` quantizes the vectors, `--arithmetic matrix` takes the matrix units; `--tuned` measures tiles
//! first and prints which are used. `--products packed` (or `exact`) times every matrix of the shapes with every tile
//! instead, those of experts too: microseconds and Top/s (two operations a multiplication).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use futures::executor::block_on;
use potluck_engine::{Engine, Gpu, GpuOptions, ProductSize, Settings, Tier};
use potluck_gguf::synthetic::{Shape, Synthetic};
use potluck_gguf::{join, parse};
use potluck_model::{DenseSpec, FeedForwardSpec, ModelSpec};
use potluck_plan::{Arithmetic, Input, KernelClass, LmHeadTokens, Task, Then, WeightUnit};
use potluck_shaders::{Dots, Format, Kernel, Operand, PackedTile, Tile};
use support::{Bench, Model, forward, gpu_with, rows, top};

/// Each prompt is timed this many times; the best time counts.
const TRIES: usize = 5;

struct Options {
    shapes: Vec<Synthetic>,
    files: Vec<String>,
    tier: Option<Tier>,
    prompt: u32,
    arithmetic: Arithmetic,
    products: Option<Arithmetic>,
    tuned: bool,
}

fn options() -> Options {
    let mut options = Options {
        shapes: Vec::new(),
        files: Vec::new(),
        tier: None,
        prompt: 512,
        arithmetic: Arithmetic::Exact,
        products: None,
        tuned: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("an option needs a value");
        match argument.as_str() {
            "--shape" => options.shapes.push(shape(&value())),
            "--model" => options.files.push(value()),
            "--tier" => options.tier = Some(if value() == "software" { Tier::Software } else { Tier::Full }),
            "--arithmetic" => options.arithmetic = value().parse().unwrap(),
            "--products" => options.products = Some(value().parse().unwrap()),
            "--tuned" => options.tuned = true,
            "--prompt" => options.prompt = value().parse().unwrap(),
            // `cargo bench` adds this.
            "--bench" => {}
            other => panic!("there is no option {other}"),
        }
    }
    if options.shapes.is_empty() && options.files.is_empty() {
        options.shapes = ["llama-3.2-1b", "qwen3-30b-a3b:4"].map(shape).into();
    }
    options
}

/// Parses `NAME` or `NAME:BLOCKS`.
fn shape(text: &str) -> Synthetic {
    let (name, blocks) = text.split_once(':').map_or((text, None), |(name, blocks)| (name, Some(blocks)));
    let mut model = Shape::from_name(name).unwrap_or_else(|| panic!("there is no shape {name}")).synthetic();
    if let Some(blocks) = blocks {
        model.blocks = blocks.parse().unwrap();
    }
    model
}

fn main() {
    let options = options();
    let matrix_units = options.arithmetic == Arithmetic::Matrix;
    let gpu = gpu_with(GpuOptions { tier: options.tier, matrix_units, ..GpuOptions::default() });
    let made = options.shapes.iter().map(|shape| shape.to_bytes().unwrap());
    let read = options.files.iter().map(|path| std::fs::read(path).unwrap());
    for file in made.chain(read) {
        let (spec, units) = ModelSpec::from_gguf(&join([parse(&file).unwrap()]).unwrap()).unwrap();
        println!("\n{:?}, {} blocks, {} MB", spec.architecture, spec.blocks.len(), file.len() / 1_000_000);
        let model = Model { spec, units, file };
        match options.products {
            Some(arithmetic) => products(&gpu, &model, (options.prompt, arithmetic)),
            None => run(&gpu, &model, &options),
        }
    }
}

fn run(gpu: &Gpu, model: &Model, options: &Options) {
    let &Options { prompt, arithmetic, .. } = options;
    let settings = Settings { arithmetic, context: prompt + 64, prefill_tokens: prompt, ..Settings::default() };
    let mut bench = Bench::new(gpu, model, &model.all_units(), settings);
    let begin = Instant::now();
    block_on(bench.engine.prepare()).unwrap();
    println!("pipelines in {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    if options.tuned {
        block_on(bench.engine.tune(60_000.0)).unwrap();
        for (shape, tuned) in bench.engine.tuned().unwrap() {
            println!("{shape}: {} ({:.2})", tuned.choice, tuned.gain);
        }
    }
    if gpu.capabilities().tier != Tier::Software && !options.tuned {
        let [fma, dots] = [false, true].map(|dots| block_on(bench.engine.peak_rate(dots)).unwrap() / 1e3);
        println!("this device computes at most {fma:.1} TFLOP/s by fma, {dots:.1} Top/s by dot4I8Packed");
        matrices(&bench.engine, &model.spec, prompt);
    }
    for chunk in [64, 128, 256, 512, 1024].into_iter().filter(|chunk| *chunk <= prompt) {
        let rate = (0..TRIES).map(|_| whole_prompt(&mut bench, model, prompt, chunk)).fold(0.0, f64::max);
        println!("{prompt} tokens in chunks of {chunk:4}: {rate:8.0} tokens/s");
    }
    breakdown(&bench.engine, &piece(model, 0..prompt, true));
}

/// Part of the prompt; the last part also runs the LM head on its last token.
fn piece(model: &Model, positions: std::ops::Range<u32>, last: bool) -> Task {
    let tokens = positions.clone().map(|p| p * 7919 % model.spec.vocabulary).collect();
    let then = if last { top(LmHeadTokens::Last, 1) } else { Then::Nothing };
    let blocks = (0, model.spec.blocks.len() as u16);
    forward(rows(positions), KernelClass::Prefill, Input::Tokens(tokens), blocks, then)
}

/// Tokens per second of a whole prompt, with all chunks submitted at once.
fn whole_prompt(bench: &mut Bench, model: &Model, prompt: u32, chunk: u32) -> f64 {
    let begin = Instant::now();
    let starts: Vec<u32> = (0..prompt).step_by(chunk as usize).collect();
    for at in starts {
        let end = (at + chunk).min(prompt);
        bench.start(piece(model, at..end, end == prompt));
    }
    bench.engine.wait();
    let spent = begin.elapsed().as_secs_f64();
    bench.results.borrow_mut().clear();
    f64::from(prompt) / spent
}

/// Times every matrix of a model's blocks with every tile of an arithmetic.
fn products(gpu: &Gpu, model: &Model, (n, arithmetic): (u32, Arithmetic)) {
    let mut sizes: Vec<(String, ProductSize)> = Vec::new();
    let is_read_once = |unit: &WeightUnit| matches!(unit, WeightUnit::Embedding | WeightUnit::LmHead);
    for unit in model.all_units().into_iter().filter(|unit| !is_read_once(unit)) {
        for tensor in model.units.tensors(unit).iter().filter(|tensor| tensor.rows > 1) {
            let Some(format) = Format::of(tensor.kind) else { continue };
            let experts = match (unit, &model.spec.blocks[0].feed_forward) {
                (WeightUnit::Expert(..), FeedForwardSpec::Experts(experts)) => experts.count,
                _ => 0,
            };
            let size = ProductSize { format, rows: tensor.rows, cols: tensor.cols, n, experts };
            if sizes.iter().all(|(_, other)| *other != size) {
                sizes.push((format!("{:?}", tensor.role), size));
            }
        }
    }
    let kernels = |size: &ProductSize| -> Vec<(Kernel, String)> {
        let (format, operand) = (size.format, if size.experts > 0 { Operand::Expert } else { Operand::Plain });
        if arithmetic == Arithmetic::Packed && format.packing().is_some() {
            let of = |tile| Kernel::Packed { format, operand, tile, dots: Dots::Packed };
            PackedTile::ALL.map(|tile| (of(tile), tile.to_string())).into()
        } else {
            let of = |tile| Kernel::MatMul { format, operand, tile };
            let name = |tile: Tile| format!("{}x{} exact", tile.vectors(), tile.rows());
            Tile::CANDIDATES.map(|tile| (of(tile), name(tile))).into()
        }
    };
    let all: Vec<(Kernel, ProductSize)> =
        sizes.iter().flat_map(|(_, size)| kernels(size).into_iter().map(|(kernel, _)| (kernel, *size))).collect();
    let bench = Bench::new(gpu, model, &BTreeSet::new(), Settings::default());
    let mut times = block_on(bench.engine.product_times(&all)).unwrap().into_iter();
    for (name, size) in &sizes {
        let ProductSize { format, rows, cols, experts, .. } = size;
        println!("{name} {} {rows} × {cols}, {experts} experts, {} vectors", format.name(), size.pairs());
        for (_, tile) in kernels(size) {
            let millis = times.next().unwrap();
            println!("  {tile:16} {:9.1} µs {:7.2} Top/s", millis * 1e3, size.operations() / millis / 1e9);
        }
    }
}

/// Measures every matrix of a block with every tile.
fn matrices(engine: &Engine, spec: &ModelSpec, n: u32) {
    let a = spec.attention(0);
    let (query, kv_type) = (a.heads * a.head_dim, a.kv_heads * a.head_dim);
    let mut shapes = vec![
        ("query", query, spec.hidden),
        ("key, value", kv_type, spec.hidden),
        ("attention output", spec.hidden, query),
    ];
    if let FeedForwardSpec::Dense(DenseSpec { intermediate, .. }) = spec.blocks[0].feed_forward {
        shapes.extend([("gate, up", intermediate, spec.hidden), ("down", spec.hidden, intermediate)]);
    }
    let names = |kernels: &[Kernel]| {
        let tile = |kernel: &Kernel| format!("{:>9}×{:<4}", kernel.vectors(), kernel.matrix_rows());
        kernels.iter().map(tile).collect::<Vec<_>>().concat()
    };
    let exact = |format| Tile::CANDIDATES.map(|tile| Kernel::MatMul { format, operand: Operand::Plain, tile });
    let packed = |format| {
        let (operand, dots) = (Operand::Plain, Dots::Packed);
        PackedTile::ALL.map(|tile| Kernel::Packed { format, operand, tile, dots })
    };
    let kernels = |format| [&exact(format)[..], &packed(format)[..]].concat();
    println!("TFLOP/s for {n} vectors{:11}{}", "", names(&kernels(Format::Q4_K)));
    println!("{:35}{:14}{:56}packed", "", "exact", "");
    for format in [Format::Q4_K, Format::Q6_K] {
        for &(name, rows, cols) in &shapes {
            let rates = kernels(format).into_iter().map(|kernel| {
                let rate = block_on(engine.product_rate(kernel, format, rows, cols, n)).unwrap();
                format!("{:14.2}", rate / 1e3)
            });
            println!("{:5} {name:17} {rows:5} × {cols:5} {}", format.name(), rates.collect::<String>());
        }
    }
}

/// Prints where the time of a piece of work goes.
fn breakdown(engine: &Engine, task: &Task) {
    let times = engine.dispatch_times(task).unwrap();
    let mut by_kernel: BTreeMap<(Kernel, [u32; 3]), (u32, f64)> = BTreeMap::new();
    for time in &times {
        let sum = by_kernel.entry((time.kernel, time.groups)).or_default();
        *sum = (sum.0 + 1, sum.1 + time.millis);
    }
    let all: f64 = times.iter().map(|time| time.millis).sum();
    println!("{} dispatches, {all:.2} ms:", times.len());
    let mut sorted: Vec<_> = by_kernel.into_iter().collect();
    sorted.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for ((kernel, groups), (count, millis)) in sorted {
        println!("{millis:9.3} ms  {:4.1}%  {count:4} × {} {groups:?}", 100.0 * millis / all, kernel.name());
    }
}
