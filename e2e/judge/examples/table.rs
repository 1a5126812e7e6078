//! The tables of docs/lab/real-models.md:
//! `cargo run --release -p potluck-judge --example table -- [--windows N] [--prompts N] [--only WORD] [NAME…]`
//!
//! `cargo xtask models` fetches the models; those that were not fetched are skipped. First greedy answers, in every
//! way of computing them; then the perplexity of N windows of 2,000 tokens (0: of the first 512 tokens), beside what llama.cpp finds on the
//! weights in F32 and on the file as it is. `--only` takes the rows that contain a word. A software adapter has packed decode only
//! if it is treated as a GPU: set `POTLUCK_TIER` to `full`.

use std::time::Instant;

use anyhow::{Context, Result};
use futures::executor::block_on;
use potluck_engine::{Gpu, GpuOptions, Tier};
use potluck_judge::{ANSWER_CONTEXT, LOGITS_READ, Published, Room, Setup, Split, Way, surprise};
use potluck_plan::{Arithmetic, KernelClass, KvCacheType};

const MODELS: [&str; 4] = ["smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"];
const ARITHMETICS: [Arithmetic; 2] = [Arithmetic::Exact, Arithmetic::Packed];
const KV_TYPES: [KvCacheType; 4] = [KvCacheType::F32, KvCacheType::F16, KvCacheType::Q8_0, KvCacheType::Q4_0];

struct Options {
    windows: usize,
    prompts: usize,
    only: String,
    names: Vec<String>,
}

impl Options {
    fn read() -> Result<Self> {
        let mut options = Self { windows: 0, prompts: usize::MAX, only: String::new(), names: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--windows" => options.windows = value()?.parse()?,
                "--prompts" => options.prompts = value()?.parse()?,
                "--only" => options.only = value()?,
                _ => options.names.push(argument),
            }
        }
        if options.names.is_empty() {
            options.names = MODELS.map(str::to_owned).into();
        }
        Ok(options)
    }

    /// False if the row is not asked for.
    fn wants(&self, row: &str) -> bool {
        row.contains(&self.only)
    }
}

fn main() -> Result<()> {
    let options = Options::read()?;
    let tier = std::env::var("POTLUCK_TIER").is_ok_and(|tier| tier == "full").then_some(Tier::Full);
    let gpu = block_on(Gpu::open(GpuOptions { tier, ..GpuOptions::default() }))?;
    println!("{} as {:?}", gpu.capabilities().name, gpu.capabilities().tier);
    for name in &options.names {
        let mut published = Published::read(name)?;
        let Some(file) = published.bytes()? else { continue };
        published.prompts.truncate(options.prompts);
        greedy(&gpu, &published, &file, &options)?;
        perplexities(&gpu, &published, &file, &options)?;
    }
    Ok(())
}

/// Answers by every split, arithmetic and type of keys and values.
fn greedy(gpu: &Gpu, published: &Published, file: &[u8], options: &Options) -> Result<()> {
    println!("\n| greedy answers | counted | other than llama.cpp's | largest margin of those | seconds |");
    println!("|---|---|---|---|---|");
    for split in [Split::One, Split::ThreeStages] {
        for (arithmetic, kv_cache) in ARITHMETICS.iter().flat_map(|a| KV_TYPES.map(|kv| (*a, kv))) {
            let ways: &[Way] = if kv_cache == KvCacheType::F32 { &Way::ALL } else { &Way::ALL[..1] };
            let row = |way| format!("{} {split:?} {arithmetic:?} {kv_cache:?} {way:?}", published.name);
            let ways: Vec<Way> = ways.iter().copied().filter(|way| options.wants(&row(*way))).collect();
            if ways.is_empty() || split == Split::ThreeStages && kv_cache != KvCacheType::F32 {
                continue;
            }
            let setup = Setup { arithmetic, kv_cache, ..Setup::exact(ANSWER_CONTEXT) };
            let room = block_on(Room::open_with(gpu, file, split, &setup))?;
            for way in ways {
                let started = Instant::now();
                let verdict = block_on(published.judge(&room, way))?;
                let margin = |&(prompt, position, ..): &(usize, usize, u32, u32)| -> f32 {
                    published.prompts[prompt].margin[position]
                };
                let worst = verdict.wrong.iter().map(margin).fold(0.0, f32::max);
                let (others, seconds) = (verdict.wrong.len(), started.elapsed().as_secs_f64());
                println!("| {} | {} | {others} | {worst:.3} | {seconds:.1} |", row(way), verdict.counted);
            }
        }
    }
    Ok(())
}

/// The text's perplexity by both kinds of kernels, and with smaller keys and values.
fn perplexities(gpu: &Gpu, published: &Published, file: &[u8], options: &Options) -> Result<()> {
    let (texts, theirs, quantized): (Vec<Vec<u32>>, f64, f64) = match options.windows {
        0 => (vec![published.short(file)?], published.surprise.f32.short, published.surprise.quantized.short),
        some => {
            let texts: Vec<_> = published.windows(file)?.into_iter().take(some).collect();
            let sum = |sums: &[f64]| sums[..texts.len()].iter().sum();
            let both = (sum(&published.surprise.f32.windows), sum(&published.surprise.quantized.windows));
            (texts, both.0, both.1)
        }
    };
    let count: usize = texts.iter().map(|text| text.len() - 1).sum();
    let of = |sum: f64| (sum / count as f64).exp();
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0) as u32;
    println!("\n| perplexity of {count} tokens | ours | than llama.cpp on F32 | seconds |\n|---|---|---|---|");
    println!("| {} llama.cpp F32 | {:.4} | | |", published.name, of(theirs));
    println!("| {} llama.cpp, the file as it is | {:.4} | {:+.3}% | |", published.name, of(quantized), {
        (of(quantized) / of(theirs) - 1.0) * 100.0
    });
    for (arithmetic, kv_cache) in ARITHMETICS.iter().flat_map(|a| KV_TYPES.map(|kv| (*a, kv))) {
        let classes: &[_] = if kv_cache == KvCacheType::F32 {
            &[KernelClass::Prefill, KernelClass::Decode]
        } else {
            &[KernelClass::Prefill]
        };
        let row = |class| format!("{} {arithmetic:?} {kv_cache:?} {class:?}", published.name);
        let classes: Vec<_> = classes.iter().copied().filter(|class| options.wants(&row(*class))).collect();
        if classes.is_empty() {
            continue;
        }
        let setup = Setup { arithmetic, kv_cache, logits_read: LOGITS_READ as u32, context: longest + 16 };
        let room = block_on(Room::open_with(gpu, file, Split::One, &setup))?;
        for class in classes {
            let started = Instant::now();
            let mut sum = 0.0;
            for text in &texts {
                sum += block_on(surprise(&room, text, class))?;
            }
            let difference = (of(sum) / of(theirs) - 1.0) * 100.0;
            let seconds = started.elapsed().as_secs_f64();
            println!("| {} | {:.4} | {difference:+.3}% | {seconds:.1} |", row(class), of(sum));
        }
    }
    Ok(())
}
