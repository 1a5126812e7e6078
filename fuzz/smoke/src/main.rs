//! Runs the fuzz targets on stable Rust: `potluck-fuzz-smoke SECONDS [TARGET…]`, every target for that long. Fails on a
//! panic and names the input that led to it. The seed is fixed, so a run repeats.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use potluck_fuzz_smoke::{TARGETS, Target, mutate};
use potluck_testkit::Random;

/// Executions between two looks at the clock.
const BATCH: usize = 64;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().context("usage: potluck-fuzz-smoke SECONDS [TARGET…]")?.parse()?;
    let duration = Duration::try_from_secs_f64(seconds)?;
    let names: Vec<String> = arguments.collect();
    if let Some(unknown) = names.iter().find(|name| TARGETS.iter().all(|target| target.name != **name)) {
        bail!("there is no target {unknown}; there are {}", TARGETS.map(|target| target.name).join(", "));
    }
    for target in TARGETS.iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target.name)) {
        let executions = run(target, duration)?;
        println!("{:<16} {executions:>10} executions in {seconds} s", target.name);
    }
    Ok(())
}

/// Seeds first, then mutations of them until the time is up. How many inputs were run.
fn run(target: &Target, duration: Duration) -> Result<usize> {
    let seeds = (target.seeds)()?;
    ensure!(!seeds.is_empty(), "{} has no seeds", target.name);
    let started = Instant::now();
    let mut random = Random::new(1);
    let mut executions = 0;
    for seed in &seeds {
        execute(target, seed)?;
        executions += 1;
    }
    while started.elapsed() < duration {
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
