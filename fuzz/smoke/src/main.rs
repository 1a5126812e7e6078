//! Runs the fuzz targets on stable Rust: `potluck-fuzz-smoke SECONDS [TARGET…]`, one on each core, every target for that long, or
//! until it has had `--executions N` inputs. Fails on a panic and names the input that led to it. A run with the same seed repeats.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use potluck_fuzz_smoke::{TARGETS, Target, mutate};
use potluck_testkit::Random;

/// Executions between two looks at the clock.
const BATCH: u64 = 64;

/// Feeds mutations of small valid inputs to the fuzz targets.
#[derive(Parser)]
struct Options {
    /// Seconds for each target
    seconds: f64,
    /// Targets, all of them if none is named
    targets: Vec<String>,
    /// Go on to the next target after this many inputs
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    executions: u64,
    /// What the mutations follow from; processes with different seeds share the work on a target
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let names = &options.targets;
    if let Some(unknown) = names.iter().find(|name| TARGETS.iter().all(|target| target.name != **name)) {
        bail!("there is no target {unknown}; there are {}", TARGETS.map(|target| target.name).join(", "));
    }
    let wanted = TARGETS.iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target.name));
    let waiting = Mutex::new(wanted);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    // A target has one thread, and every core a target.
    let work = || {
        while let Some(target) = next() {
            let started = Instant::now();
            let executions = run(target, &options)?;
            println!("{:<16} {executions:>10} executions in {:.1} s", target.name, started.elapsed().as_secs_f64());
        }
        anyhow::Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })
}

/// Seeds first, then mutations of them until the time is up or there were enough. How many inputs were run.
fn run(target: &Target, options: &Options) -> Result<u64> {
    let duration = Duration::try_from_secs_f64(options.seconds)?;
    let seeds = (target.seeds)()?;
    ensure!(!seeds.is_empty(), "{} has no seeds", target.name);
    let started = Instant::now();
    let mut random = Random::new(options.seed);
    let mut executions = 0;
    for seed in &seeds {
        execute(target, seed)?;
        executions += 1;
    }
    while started.elapsed() < duration && executions < options.executions {
        for _ in 0..BATCH {
            let seed = &seeds[random.below(seeds.len())];
            let other = &seeds[random.below(seeds.len())];
            execute(target, &mutate(seed, other, &mut random))?;
        }
        executions += BATCH;
    }
    Ok(executions)
}

fn execute(target: &Target, input: &[u8]) -> Result<()> {
    // A target keeps nothing from one input to the next.
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok() {
        return Ok(());
    }
    let folder = PathBuf::from("fuzz/artifacts").join(target.name);
    let path = folder.join("smoke");
    std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input)).context("cannot keep the input")?;
    bail!("{} panicked; the input is in {}", target.name, path.display())
}
