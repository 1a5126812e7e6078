//! `cargo xtask simulate`: runs rooms on a virtual clock, with everything random drawn from a seed.
//!
//! A crate of its own, so that `cargo xtask run` does not wait until the simulator is compiled.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use potluck_sim::{Run, SCENARIOS, Scenario, scenario};

/// Seeds whose failures are printed in full.
const MAX_PRINTED: usize = 1000;

/// Runs rooms on a virtual clock.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask simulate")]
struct Options {
    /// The scenario to run; without one, they are listed
    scenario: Option<String>,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seeds to run, counting up from the first
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Where to write the last run's timeline: tokens per second with joins and leaves, as .svg or .json
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one scenario over its seeds, prints the results, and draws the last timeline.
fn run(options: &Options) -> Result<()> {
    let Some(scenario) = options.scenario.as_deref().and_then(scenario) else {
        return unknown(options.scenario.as_deref());
    };
    let begin = Instant::now();
    let (mut failed, mut recoveries, mut last) = (Vec::new(), 0, None);
    for seed in options.seed..options.seed.saturating_add(options.seeds) {
        let run = (scenario.run)(seed);
        recoveries += run.recoveries;
        if let Some(failure) = &run.failure {
            failed.push(seed);
            if failed.len() <= MAX_PRINTED {
                print_failure(scenario, &run, failure);
            }
        }
        last = Some(run);
    }
    let Some(last) = last else { bail!("--seeds must be at least 1") };
    if options.seeds == 1 {
        last.event_log.iter().for_each(|line| println!("{line}"));
    }
    println!(
        "{}: {} of {} seeds passed, {recoveries} recoveries, {:.1} s, fingerprint of the last {:016x}",
        scenario.name,
        options.seeds - failed.len() as u64,
        options.seeds,
        begin.elapsed().as_secs_f64(),
        last.fingerprint,
    );
    if let Some(path) = &options.out {
        write(path, scenario, &last)?;
    }
    if failed.is_empty() { Ok(()) } else { bail!("{} seeds failed, the first is {}", failed.len(), failed[0]) }
}

fn print_failure(scenario: &Scenario, run: &Run, failure: &str) {
    println!("seed {}: {failure}", run.seed);
    run.event_log.iter().for_each(|line| println!("    {line}"));
    println!("    replay: cargo xtask simulate {} --seed {}", scenario.name, run.seed);
}

fn unknown(name: Option<&str>) -> Result<()> {
    let list: Vec<String> = SCENARIOS.iter().map(|known| format!("  {:20} {}", known.name, known.about)).collect();
    let list = list.join("\n");
    match name {
        Some(name) => bail!("there is no scenario {name:?}; there are:\n{list}"),
        None => {
            println!("cargo xtask simulate SCENARIO\n{list}");
            Ok(())
        }
    }
}

/// Writes the timeline as a picture or as data, depending on the extension.
fn write(path: &Path, scenario: &Scenario, run: &Run) -> Result<()> {
    let title = format!("{}, seed {}: {}", scenario.name, run.seed, scenario.about);
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => run.timeline.to_svg(&title),
        Some("json") => serde_json::to_string_pretty(&serde_json::json!({
            "scenario": scenario.name,
            "seed": run.seed,
            "story": run.event_log,
            "failure": run.failure,
            "timeline": run.timeline,
        }))?,
        _ => bail!("--out takes a name that ends in .svg or .json"),
    };
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("The timeline is in {}.", path.display());
    Ok(())
}
