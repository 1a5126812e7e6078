//! `cargo xtask check NAME`: what takes minutes, or needs something from outside, and so is no step of the tests.

use anyhow::{Context, Result, bail};

use crate::page_text::{self, Texts};
use crate::reproducible;
use crate::shell::run;
use crate::tools::cargo;

struct Check {
    name: &'static str,
    /// When to run it.
    when: &'static str,
    run: Run,
}

/// What a check does.
#[derive(Clone, Copy)]
enum Run {
    Alone(fn() -> Result<()>),
    /// It takes a number of texts.
    OnTexts(fn(Texts) -> Result<()>),
}

use Run::{Alone, OnTexts};

const CHECKS: [Check; 8] = [
    Check { name: "holders", when: "after a change of how devices hold or load experts: minutes", run: Alone(holders) },
    Check {
        name: "rooms",
        when: "after a change of a decision: 10,000 rooms that change all the time",
        run: Alone(rooms),
    },
    Check {
        name: "templates",
        when: "after a change of chat templates: needs llama.cpp's and generated ones in POTLUCK_TEMPLATES",
        run: Alone(templates),
    },
    Check {
        name: "vocabularies",
        when: "after a change of tokenizers: needs llama.cpp's in POTLUCK_VOCABULARIES",
        run: Alone(vocabularies),
    },
    Check {
        name: "published",
        when: "after a change of arithmetic: published models beside llama.cpp, once `cargo xtask models` has fetched them",
        run: Alone(published),
    },
    Check {
        name: "advisories",
        when: "before a release: known faults of dependencies, with cargo-deny",
        run: Alone(advisories),
    },
    Check {
        name: "page-text",
        when: "after a change of how the page reads texts of others: a million of them in WebAssembly, with Node",
        run: OnTexts(page_text::check),
    },
    Check {
        name: "reproducible",
        when: "before a release, and after a change of how the page is built: two whole builds, which must be the same",
        run: Alone(reproducible::check),
    },
];

/// The names of all checks.
pub fn names() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// Runs the check called `name`, or lists all.
///
/// # Errors
/// What failed, or what the check needs and does not find.
pub fn check(name: Option<&str>, texts: Texts) -> Result<()> {
    let Some(name) = name else {
        CHECKS.iter().for_each(|check| println!("{:14}{}", check.name, check.when));
        return Ok(());
    };
    let check = CHECKS.iter().find(|check| check.name == name).with_context(|| format!("there is no check {name}"))?;
    match check.run {
        OnTexts(run) => run(texts),
        Alone(run) if texts.is_unset() => run(),
        Alone(_) => bail!("--count and --first are for page-text, not for {name}"),
    }
}

/// The tests of `target` in the crate `package` that are ignored otherwise.
fn ignored(package: &str, target: &str) -> Result<()> {
    run(cargo().args(["test", "--release", "--package", package, "--test", target, "--", "--ignored", "--nocapture"]))
}

fn holders() -> Result<()> {
    ["spread_experts", "on_demand_holders", "on_demand"].iter().try_for_each(|target| ignored("potluck-node", target))
}

fn rooms() -> Result<()> {
    let mut simulate = cargo();
    simulate.args(["run", "--release", "--package", "potluck-simulate", "--", "churn", "--seeds", "10000"]);
    run(&mut simulate)
}

fn templates() -> Result<()> {
    needs("POTLUCK_TEMPLATES")?;
    ["templates", "generated_templates"].iter().try_for_each(|target| ignored("potluck-model", target))
}

fn vocabularies() -> Result<()> {
    needs("POTLUCK_VOCABULARIES")?;
    ignored("potluck-model", "real_vocabularies")
}

fn published() -> Result<()> {
    run(cargo().args(["run", "--release", "--package", "potluck-judge", "--example", "table"]))
}

fn advisories() -> Result<()> {
    run(cargo().args(["deny", "check"])).context("install the tool with `cargo install --locked cargo-deny`")
}

/// An error unless the variable names a folder.
fn needs(variable: &str) -> Result<()> {
    match std::env::var_os(variable) {
        Some(folder) if std::path::Path::new(&folder).is_dir() => Ok(()),
        _ => bail!("{variable} must name a folder: see the comment on top of the test"),
    }
}
