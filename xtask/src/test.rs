//! `cargo xtask test`: every check that a change must pass, in steps that can be run alone.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::shell::{command, run as run_command};
use crate::tools::{cargo, ensure_component, ensure_target};
use crate::{build, dependencies, e2e, root, size, targets};

/// The last lines of a step's test runner, shown again at the very end.
pub type Closing = Vec<String>;

struct Step {
    name: &'static str,
    run: fn() -> (Closing, Result<()>),
}

/// Quick ones first, so that a mistake shows soon.
const STEPS: [Step; 10] = [
    Step { name: "fmt", run: || (Vec::new(), fmt()) },
    Step { name: "size", run: || (Vec::new(), size::check()) },
    Step { name: "dependencies", run: || (Vec::new(), dependencies::check()) },
    Step { name: "clippy", run: || (Vec::new(), clippy()) },
    Step { name: "clippy-wasm", run: || (Vec::new(), clippy_wasm()) },
    Step { name: "train", run: train },
    Step { name: "page", run: || (Vec::new(), build::page()) },
    Step { name: "test", run: targets::test },
    Step { name: "fuzz", run: || (Vec::new(), fuzz()) },
    Step { name: "e2e", run: e2e::tests },
];

struct Report {
    name: &'static str,
    took: Duration,
    closing: Closing,
    result: Result<()>,
}

/// The names of all steps, in order.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs the steps named in `only`, or all. A step runs even if an earlier one failed, except that the end-to-end tests need
/// a page.
pub fn run(only: &[String]) -> Result<()> {
    let wanted = STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name));
    let mut reports: Vec<Report> = Vec::new();
    for step in wanted {
        println!("\n== {} ==", step.name);
        let start = Instant::now();
        let without_page = step.name == "e2e" && reports.iter().any(|r| r.name == "page" && r.result.is_err());
        let (closing, result) =
            if without_page { (Vec::new(), Err(anyhow!("there is no page to test"))) } else { (step.run)() };
        if let Err(error) = &result {
            println!("{}: {error:#}", step.name);
        }
        reports.push(Report { name: step.name, took: start.elapsed(), closing, result });
    }
    println!("\n== summary ==");
    for report in &reports {
        let verdict = if report.result.is_ok() { "ok" } else { "FAILED" };
        println!("{:12} {verdict:7} {:7.1} s", report.name, report.took.as_secs_f64());
    }
    for report in reports.iter().filter(|report| !report.closing.is_empty()) {
        println!("\n{}:", report.name);
        report.closing.iter().for_each(|line| println!("{line}"));
    }
    let failed: Vec<&str> = reports.iter().filter(|report| report.result.is_err()).map(|report| report.name).collect();
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn fmt() -> Result<()> {
    ensure_component("fmt", "rustfmt")?;
    run_command(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    ensure_component("clippy", "clippy")?;
    run_command(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn clippy_wasm() -> Result<()> {
    ensure_component("clippy", "clippy")?;
    ensure_target()?;
    let mut clippy = cargo();
    clippy.args(["clippy", "--target", "wasm32-unknown-unknown"]);
    for name in in_the_tab()? {
        clippy.args(["--package", &name]);
    }
    run_command(clippy.args(["--", "-D", "warnings"]))
}

/// The crates that run in a tab: the shaders, and all under `app/`, which are named after their folders.
fn in_the_tab() -> Result<Vec<String>> {
    let mut names = vec!["potluck-shaders".to_owned()];
    for entry in fs::read_dir(root().join("app"))? {
        let path = entry?.path();
        if let Some(folder) = path.file_name().filter(|_| path.join("Cargo.toml").is_file()) {
            names.push(format!("potluck-{}", folder.to_string_lossy()));
        }
    }
    names.sort();
    Ok(names)
}

/// Seconds for each fuzz target. Mutations are blind and the seed is fixed, so most of what a change breaks shows in the first
/// seconds; targets of 20 s took five minutes of every run. Longer runs are a command of their own (`fuzz/README.md`).
const FUZZ_SECONDS: &str = "8";

/// Feeds mutated input to every fuzz target. The real fuzzer (`fuzz/`) needs nightly Rust; this runs with stable.
fn fuzz() -> Result<()> {
    run_command(cargo().args(["run", "--package", "potluck-fuzz-smoke", "--", FUZZ_SECONDS]))
}

/// The smoke test of the training scripts: a model of a few thousand weights, from corpus to GGUF.
fn train() -> (Closing, Result<()>) {
    let folder = root().join("train");
    let smoke = || {
        let made = command("bash").arg(folder.join("environment.sh")).output().context("cannot run bash")?;
        if !made.status.success() {
            bail!("no Python environment for train/: {}", String::from_utf8_lossy(&made.stderr));
        }
        let python = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        run_command(command("bash").arg(folder.join("smoke.sh")).arg(python))
    };
    (Vec::new(), smoke().context("the smoke test of train/"))
}
