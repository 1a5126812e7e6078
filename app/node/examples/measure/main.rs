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

use configurations::{CONFIGURATIONS, Configuration, Cut, SPEEDS};

const HELP: &str = "\
measure --model FILE.gguf [options]

  --list           print the configurations and end
  --only TEXT      only configurations whose name contains this
  --part K/N       only every Nth configuration, from the Kth on
  --equal          as many blocks on each device, whatever it can do, besides the plans that are found
  --rounds N       go through all of them so often, one after the other (1)
  --tokens N       tokens of an answer in all; the first 15 are measured to predict the others (80)
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
    model: Option<PathBuf>,
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
    let mut options =
        Options { model: None, list: false, only: None, part: (1, 1), equal: false, rounds: 1, settings, out: None };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("model") => options.model = Some(parser.value()?.into()),
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

fn measure(options: &Options) -> Result<(), String> {
    let wanted = |known: &&Configuration| options.only.as_ref().is_none_or(|part| known.name.contains(part.as_str()));
    let (first, step) = options.part;
    let chosen: Vec<&Configuration> = CONFIGURATIONS.iter().filter(wanted).skip(first - 1).step_by(step).collect();
    let cuts: &[Cut] = if options.equal { &[Cut::Found, Cut::Equal] } else { &[Cut::Found] };
    println!("{} configurations:", chosen.len());
    chosen.iter().for_each(|configuration| println!("  {configuration}"));
    if options.list {
        return Ok(());
    }
    let path = options.model.as_ref().ok_or("Which model? --model FILE.gguf")?;
    let model = model::Measured::open(path)?;
    println!("{}: {} of weights and state, {} besides on each device", model.name, model.whole, model.overhead);
    if let Err(sentence) = room::time(&SPEEDS, &model, &options.settings) {
        println!("{}: {sentence}", SPEEDS.name);
    }
    let mut results = Vec::new();
    for round in 1..=options.rounds {
        for (configuration, cut) in chosen.iter().flat_map(|chosen| cuts.iter().map(move |cut| (chosen, *cut))) {
            let started = std::time::Instant::now();
            let result = room::run(configuration, cut, &model, &options.settings);
            let result = report::Measurement::new(configuration, cut, round, result);
            println!("{result}  ({:.1} s)", started.elapsed().as_secs_f64());
            results.push(result);
        }
    }
    println!("{}", report::summary(&results));
    if let Some(out) = &options.out {
        let json = report::json(&model, &results);
        std::fs::write(out, json).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    Ok(())
}
