//! `cargo xtask simulate`: rooms on a virtual clock, drawn from seeds.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use potluck_swarm::sim::{Run, SCENARIOS, Scenario, scenario};

use crate::options::Simulate;

/// Seeds whose failures are told in full.
const TOLD: usize = 1000;

/// Runs one scenario over its seeds, tells what came of it, and draws the last timeline.
pub fn run(options: &Simulate) -> Result<()> {
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
            if failed.len() <= TOLD {
                tell_failure(scenario, &run, failure);
            }
        }
        last = Some(run);
    }
    let Some(last) = last else { bail!("--seeds must be at least 1") };
    if options.seeds == 1 {
        last.event_log.iter().for_each(|line| println!("{line}"));
    }
    println!(
        "{}: {} of {} seeds well, {recoveries} recoveries, {:.1} s, fingerprint of the last {:016x}",
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

fn tell_failure(scenario: &Scenario, run: &Run, failure: &str) {
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

/// The timeline as a picture or as data, whichever the name says.
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
