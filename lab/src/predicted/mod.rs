//! `cargo lab predicted`: predicted and measured time per token over rooms of unequal devices, on this machine's GPUs.
//!
//! One program: a relay, peers on threads of their own, and between each peer and the relay a forwarder that delays every
//! byte. A slowed device repeats its real work on the GPU. The configurations are a list in this folder; `--list` prints it,
//! a run takes all of them, and rounds are interleaved.

mod configurations;
mod forwarder;
mod measure;
#[cfg(test)]
mod measure_tests;
mod model;
mod report;
mod room;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use configurations::{Case, Cut, Set};
use measure::Measure;

/// Prints the devices' log to standard error.
struct StderrLog;

impl log::Log for StderrLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("potluck")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}", record.args());
        }
    }

    fn flush(&self) {}
}

/// What runs, on which models.
#[derive(Clone, Debug, clap::Args)]
pub struct PredictedArguments {
    /// Model file; repeat it for further models: all of them run everything
    #[arg(long = "model", value_name = "FILE")]
    models: Vec<PathBuf>,
    /// prediction: predicted against measured times; ablation: plans without one of the measures;
    /// scaling: one to four devices; sizes: three devices, with several models
    #[arg(long, value_name = "NAME", default_value = "prediction", value_parser = set)]
    set: Set,
    /// Run everything again, planned without compute, memory, latency, bandwidth or pauses; repeat it for further ones
    #[arg(long, value_name = "NAME")]
    without: Vec<Measure>,
    /// Print what would run and end
    #[arg(long)]
    list: bool,
    /// Only configurations with this text in their name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only every Nth run, from the Kth on
    #[arg(long, value_name = "K/N", default_value = "1/1", value_parser = part)]
    part: (usize, usize),
    /// Besides the plans that are found, run the same number of blocks on each device
    #[arg(long)]
    equal: bool,
    /// How many times to run all of them, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    #[command(flatten)]
    settings: room::Settings,
    /// File for the results, besides the table on standard output
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
}

fn set(name: &str) -> Result<Set, String> {
    let names = Set::NAMES.map(|(name, _)| name).join(", ");
    Set::named(name).ok_or_else(|| format!("expected one of {names}"))
}

/// Parses `2/3`: the second of three parts.
fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((k, n)) if 1 <= k && k <= n => Ok((k, n)),
        _ => Err("expected a part, such as 1/2 for the first half".to_owned()),
    }
}

/// What runs in each round, for each model.
fn cases(options: &PredictedArguments) -> Vec<Case> {
    let wanted = |case: &Case| options.only.as_ref().is_none_or(|part| case.configuration.name.contains(part.as_str()));
    let further = |case: Case| {
        let equal = options.equal.then_some(Case { cut: Cut::Equal, ..case });
        let without = options.without.iter().map(move |measure| Case { hidden: Some(*measure), ..case });
        [case].into_iter().chain(equal).chain(without)
    };
    let (first, step) = options.part;
    let cases = options.set.cases().into_iter().filter(wanted).flat_map(further);
    cases.skip(first - 1).step_by(step).collect()
}

/// Runs the rooms and prints a table.
///
/// # Errors
/// A model cannot be read, or the results cannot be written.
pub fn run(options: &PredictedArguments) -> Result<()> {
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    let cases = cases(options);
    println!("{} runs a round:", cases.len());
    cases.iter().for_each(|case| println!("  {case}"));
    if options.list {
        return Ok(());
    }
    let open = |path: &PathBuf| model::Measured::open(path).map_err(anyhow::Error::msg);
    let models = options.models.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    if models.is_empty() {
        bail!("which model? --model FILE.gguf");
    }
    let timing = options.set.timing();
    for model in &models {
        println!("{}: {} of weights and KV cache, {} besides on each device", model.name, model.whole, model.overhead);
        if let Err(sentence) = room::time(&timing, model, &options.settings) {
            println!("{}: {sentence}", timing.configuration.name);
        }
    }
    let mut results = Vec::new();
    for round in 1..=options.rounds {
        for (model, case) in models.iter().flat_map(|model| cases.iter().map(move |case| (model, case))) {
            let started = std::time::Instant::now();
            let result = room::run(case, model, &options.settings);
            let result = report::Measurement::new(&model.name, case, round, result);
            println!("{result}  ({:.1} s)", started.elapsed().as_secs_f64());
            results.push(result);
        }
    }
    println!("{}", report::summary(&results));
    if matches!(options.set, Set::Ablation | Set::Scaling | Set::Sizes) || !options.without.is_empty() {
        println!("\n{}", report::table(&results));
    }
    if let Some(out) = &options.out {
        let json = report::json(&models, &options.settings.cache, &results);
        std::fs::write(out, json).with_context(|| format!("cannot write {}", out.display()))?;
    }
    Ok(())
}
