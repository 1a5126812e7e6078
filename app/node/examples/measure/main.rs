//! Predicted and measured time per token over rooms of unequal devices, on this machine's GPUs.
//!
//! One program: a relay, peers on threads of their own, and between each peer and the relay a forwarder that delays every
//! byte. A slowed device repeats its real work on the GPU. The configurations are a list in this folder; `--list` prints it,
//! a run takes all of them, and rounds are interleaved.

mod configurations;
mod forwarder;
mod model;
mod report;
mod room;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::{Long, Short, ValueExt};

use configurations::{Case, Cut, Set};
use potluck_planner::measures::Measure;

const HELP: &str = "\
measure --model FILE.gguf [options]

  --set NAME       prediction (default): predicted against measured times; ablation: plans without one of the measures;
                   scaling: one to four devices; sizes: three devices, with several models
  --model FILE     again for each further model; all of them run everything
  --without NAME   all of it again, planned without compute, memory, latency, bandwidth or pauses; again for each further one
  --list           print what would be run and end
  --only TEXT      only configurations whose name contains this
  --part K/N       only every Nth run, from the Kth on
  --equal          as many blocks on each device, whatever it can do, besides the plans that are found
  --rounds N       go through all of them so often, one after the other (1)
  --tokens N       tokens of an answer in all; after 15 of them the others are foretold (80)
  --gpu NAME       part of the adapter's name; of several adapters with it each device gets another one
  --out FILE.json  where the results go, besides the table on standard output
  --cache FOLDER   where devices keep weights and measurements (a new temporary folder)";

/// What the devices remark, on standard error.
struct Remarks;

impl log::Log for Remarks {
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

struct Options {
    models: Vec<PathBuf>,
    set: Set,
    without: Vec<Measure>,
    list: bool,
    only: Option<String>,
    part: (usize, usize),
    equal: bool,
    rounds: u32,
    settings: room::Settings,
    out: Option<PathBuf>,
}

fn read() -> Result<Option<Options>, lexopt::Error> {
    let cache = std::env::temp_dir().join(format!("potluck-measure-{}", std::process::id()));
    let settings = room::Settings { tokens: 80, gpu: None, cache };
    let mut options = Options {
        models: Vec::new(),
        set: Set::Prediction,
        without: Vec::new(),
        list: false,
        only: None,
        part: (1, 1),
        equal: false,
        rounds: 1,
        settings,
        out: None,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("model") => options.models.push(parser.value()?.into()),
            Long("set") => options.set = set(&parser.value()?.string()?)?,
            Long("without") => options.without.push(parser.value()?.string()?.parse()?),
            Long("list") => options.list = true,
            Long("only") => options.only = Some(parser.value()?.string()?),
            Long("part") => options.part = part(&parser.value()?.string()?)?,
            Long("equal") => options.equal = true,
            Long("rounds") => options.rounds = parser.value()?.parse()?,
            Long("tokens") => options.settings.tokens = parser.value()?.parse()?,
            Long("gpu") => options.settings.gpu = Some(parser.value()?.string()?),
            Long("out") => options.out = Some(parser.value()?.into()),
            Long("cache") => options.settings.cache = parser.value()?.into(),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

fn set(name: &str) -> Result<Set, lexopt::Error> {
    let names = Set::NAMES.map(|(name, _)| name).join(", ");
    Set::named(name).ok_or_else(|| format!("\"{name}\" is no set; there are {names}.").into())
}

/// `2/3`: the second of three parts.
fn part(text: &str) -> Result<(usize, usize), lexopt::Error> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((k, n)) if 1 <= k && k <= n => Ok((k, n)),
        _ => Err(format!("\"{text}\" is no part; write 1/2 for the first half").into()),
    }
}

fn main() -> ExitCode {
    if log::set_logger(&Remarks).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    let options = match read() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

/// What is run in each round, for each model.
fn cases(options: &Options) -> Vec<Case> {
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

fn measure(options: &Options) -> Result<(), String> {
    let cases = cases(options);
    println!("{} runs a round:", cases.len());
    cases.iter().for_each(|case| println!("  {case}"));
    if options.list {
        return Ok(());
    }
    let open = |path: &PathBuf| model::Measured::open(path);
    let models = options.models.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    if models.is_empty() {
        return Err("Which model? --model FILE.gguf".to_owned());
    }
    let timing = options.set.timing();
    for model in &models {
        println!("{}: {} of weights and state, {} besides on each device", model.name, model.whole, model.overhead);
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
        std::fs::write(out, json).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    Ok(())
}
