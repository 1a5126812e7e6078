//! Perplexity of texts by the arithmetics `exact` and `packed`, as a prompt and as an answer:
//! `cargo run --release -p potluck-engine --example perplexity -- [--prompt | --decode] MODEL.gguf TEXT…`
//!
//! Every position is computed as a prompt and as a token of an answer; an option selects one of the two. A software adapter has
//! packed decode only if it is treated as a GPU: set `POTLUCK_TIER` to `full`.
//!
//! Documents are separated by lines of `---`; each has a context of its own, of at most 2,000 tokens. Every token after
//! a document's first counts. Prints the perplexity by arithmetic, how far it is from the exact one, and for how many tokens the best
//! guess is the same.

use std::error::Error;
use std::time::Instant;

use futures::executor::block_on;
use potluck_engine::{Gpu, GpuOptions, Tier};
use potluck_gguf::{join, parse};
use potluck_judge::{LOGITS_READ, Likelihood, Room, Setup, Split, likelihoods};
use potluck_model::{SpecialText, Tokenizer};
use potluck_plan::{Arithmetic, KernelClass};

/// Most tokens of a document.
const LONGEST: usize = 2000;

type Failure = Box<dyn Error>;

/// What the options ask for.
fn classes(flags: &[String]) -> Result<Vec<(&'static str, KernelClass)>, Failure> {
    let both = [("--prompt", KernelClass::Prefill), ("--decode", KernelClass::Decode)];
    if let Some(unknown) = flags.iter().find(|flag| both.iter().all(|(name, _)| flag != name)) {
        return Err(format!("there is no option {unknown}").into());
    }
    Ok(both.into_iter().filter(|(name, _)| flags.is_empty() || flags.iter().any(|flag| flag == name)).collect())
}

fn main() -> Result<(), Failure> {
    let (flags, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|text| text.starts_with("--"));
    let classes = classes(&flags)?;
    let [model, texts @ ..] = paths.as_slice() else { return Err("name a model and texts".into()) };
    let file = std::fs::read(model)?;
    let tokenizer = Tokenizer::from_metadata(&join([parse(&file)?])?.metadata)?;
    let mut documents = Vec::new();
    for path in texts {
        let text = std::fs::read_to_string(path)?;
        let some = text.split("\n---\n").map(str::trim).filter(|document| !document.is_empty());
        let tokens = |document| {
            let mut tokens = tokenizer.encode_prompt(document, SpecialText::Parse);
            tokens.truncate(LONGEST);
            tokens
        };
        documents.push(some.map(tokens).collect::<Vec<_>>());
    }
    let tier = std::env::var("POTLUCK_TIER").is_ok_and(|tier| tier == "full").then_some(Tier::Full);
    let gpu = block_on(Gpu::open(GpuOptions { tier, ..GpuOptions::default() }))?;
    println!("{model} on {}", gpu.capabilities().name);
    let mut all = Vec::new();
    for arithmetic in [Arithmetic::Exact, Arithmetic::Packed] {
        let setup = Setup { arithmetic, logits_read: LOGITS_READ as u32, ..Setup::exact(LONGEST as u32 + 48) };
        let room = block_on(Room::open_with(&gpu, &file, Split::One, &setup))?;
        for (_, class) in &classes {
            let started = Instant::now();
            let of = |tokens: &Vec<u32>| block_on(likelihoods(&room, tokens, *class));
            let read = documents.iter().map(|text| Ok(text.iter().map(of).collect::<Result<Vec<_>, _>>()?.concat()));
            let read: Vec<Vec<Likelihood>> = read.collect::<Result<_, Failure>>()?;
            all.push((arithmetic, read, started.elapsed().as_secs_f64()));
        }
    }
    println!("| text | computed as | tokens | exact | packed | difference | same best token |");
    println!("|---|---|---|---|---|---|---|");
    for (number, path) in texts.iter().enumerate() {
        for (at, (name, _)) in classes.iter().enumerate() {
            let (exact, packed) = (&all[at].1[number], &all[at + classes.len()].1[number]);
            let count = exact.len().max(1) as f64;
            let of = |all: &[Likelihood]| (all.iter().map(|one| one.surprise).sum::<f64>() / count).exp();
            let same = exact.iter().zip(packed).filter(|(a, b)| a.best == b.best).count();
            let (share, name) = (100.0 * same as f64 / count, name.trim_start_matches('-'));
            let (exact, packed) = (of(exact), of(packed));
            let difference = (packed / exact - 1.0) * 100.0;
            println!("| {path} | {name} | {count} | {exact:.4} | {packed:.4} | {difference:+.2}% | {share:.2}% |");
        }
    }
    for ((arithmetic, _, seconds), (name, _)) in all.iter().zip(classes.iter().cycle()) {
        println!("{arithmetic:?} {}: {seconds:.1} s", name.trim_start_matches('-'));
    }
    Ok(())
}
