//! `cargo xtask test`: every check that a change must pass, in steps that can be run alone.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::shell::{command, output_of, run as run_command};
use crate::tools::{cargo, ensure_component, ensure_target};
use crate::{build, dependencies, e2e, models, reference, root, size, targets, text, trunk};

/// The last lines of a step's test runner, shown again at the very end.
pub type Closing = Vec<String>;

struct Step {
    name: &'static str,
    run: fn() -> (Closing, Result<()>),
}

/// Waits for downloads and then keeps one core busy: runs beside the others.
const BESIDE: Step = Step { name: "train", run: train };

/// One after the other; quick ones first, so that a mistake shows soon.
const STEPS: [Step; 14] = [
    Step { name: "fmt", run: || (Vec::new(), fmt()) },
    Step { name: "size", run: || (Vec::new(), size::check()) },
    Step { name: "text", run: text::check },
    Step { name: "dependencies", run: || (Vec::new(), dependencies::check()) },
    Step { name: "clippy", run: || (Vec::new(), clippy()) },
    Step { name: "clippy-wasm", run: || (Vec::new(), clippy_wasm()) },
    Step { name: "doc", run: || (Vec::new(), doc()) },
    Step { name: "page", run: || (Vec::new(), build::page()) },
    Step { name: "trunk", run: trunk::check },
    Step { name: "models", run: models::of_tests },
    Step { name: "test", run: targets::test },
    Step { name: "reference", run: || (Vec::new(), reference::check()) },
    Step { name: "fuzz", run: || (Vec::new(), fuzz()) },
    Step { name: "e2e", run: e2e::tests },
];

struct Report {
    name: &'static str,
    took: Duration,
    closing: Closing,
    result: Result<()>,
}

impl Step {
    fn is_wanted(&self, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|name| name == self.name)
    }

    fn report(&self) -> Report {
        let start = Instant::now();
        let (closing, result) = (self.run)();
        if let Err(error) = &result {
            println!("{}: {error:#}", self.name);
        }
        Report { name: self.name, took: start.elapsed(), closing, result }
    }
}

/// The names of all steps.
pub fn step_names() -> Vec<&'static str> {
    std::iter::once(&BESIDE).chain(&STEPS).map(|step| step.name).collect()
}

/// Runs the steps named in `only`, or all. A step runs even if an earlier one failed, except that the end-to-end tests need
/// a page.
pub fn run(only: &[String]) -> Result<()> {
    let reports = thread::scope(|scope| {
        let beside = BESIDE.is_wanted(only).then(|| scope.spawn(|| BESIDE.report()));
        let mut reports = one_after_the_other(only);
        if let Some(beside) = beside {
            reports.push(beside.join().map_err(|_| anyhow!("the step {} panicked", BESIDE.name))?);
        }
        anyhow::Ok(reports)
    })?;
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

fn one_after_the_other(only: &[String]) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for step in STEPS.iter().filter(|step| step.is_wanted(only)) {
        println!("\n== {} ==", step.name);
        let without_page = step.name == "e2e" && reports.iter().any(|r| r.name == "page" && r.result.is_err());
        reports.push(if without_page {
            Step { run: || (Vec::new(), Err(anyhow!("there is no page to test"))), ..*step }.report()
        } else {
            step.report()
        });
    }
    reports
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

/// The documentation of all libraries: a link that leads nowhere is an error. One to a private item leads somewhere for whoever reads the
/// code.
fn doc() -> Result<()> {
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--lib"]);
    run_command(doc.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links"))
}

/// Crates under `app/` that run in no tab: those of tests, and the command-line program with its API.
const IN_NO_TAB: [&str; 4] = ["serve", "sim", "terminal", "testkit"];

/// The crates that run in a tab: the shaders, and those under `app/`, which are named after their folders.
fn in_the_tab() -> Result<Vec<String>> {
    let mut names = vec!["potluck-shaders".to_owned()];
    for entry in fs::read_dir(root().join("app"))? {
        let path = entry?.path();
        let folder = path.file_name().map(|folder| folder.to_string_lossy()).unwrap_or_default();
        if path.join("Cargo.toml").is_file() && !IN_NO_TAB.contains(&&*folder) {
            names.push(format!("potluck-{folder}"));
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
    build::as_in_tests()?;
    run_command(command(build::program_path("debug", "potluck-fuzz-smoke")).arg(FUZZ_SECONDS))
}

/// The smoke test of the training scripts: a model of a few thousand weights, from corpus to GGUF. What it prints is shown at its
/// end, so that it does not get mixed up with that of other steps.
fn train() -> (Closing, Result<()>) {
    let folder = root().join("train");
    let smoke = || {
        let made = command("bash").arg(folder.join("environment.sh")).output().context("cannot run bash")?;
        if !made.status.success() {
            bail!("no Python environment for train/: {}", String::from_utf8_lossy(&made.stderr));
        }
        let python = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let (output, status) = output_of(command("bash").arg(folder.join("smoke.sh")).arg(python))?;
        println!("\n== train ==\n{output}");
        ensure!(status.success(), "train/smoke.sh failed ({status})");
        Ok(())
    };
    (Vec::new(), smoke().context("the smoke test of train/"))
}
