//! `cargo xtask check reproducible`: tests that two builds of one commit give the same page, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::root;
use crate::shell::{command, output, run};
use crate::sums;
use crate::tools::cargo;
use crate::trunk::{Files, differences, files};

/// The parts of a Cargo home that are copied to another one, so that nothing is fetched again. Sources are unpacked anew.
const FETCHED: [&str; 3] = ["config.toml", "registry/index", "registry/cache"];

/// Builds the page of the last commit twice: here with one job, and in another folder with two jobs and another Cargo home.
/// `POTLUCK_BUILDS` names a folder that keeps the compiled files for the next run.
///
/// # Errors
/// A file differs, or something cannot be built.
pub fn check() -> Result<()> {
    let changed = output(command("git").args(["status", "--porcelain"])).context("git does not run")?;
    ensure!(changed.trim().is_empty(), "commit what is changed first: the last commit is built");
    let kept = std::env::var_os("POTLUCK_BUILDS").map(PathBuf::from);
    let folder =
        kept.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("potluck-builds-{}", std::process::id())));
    let built = twice(&folder);
    if kept.is_none() && folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    built
}

fn twice(folder: &Path) -> Result<()> {
    let other_home = folder.join("another-home");
    copy_home(&other_home)?;
    let elsewhere = folder.join("in/another/place");
    check_out(&elsewhere)?;
    let one = page_of(&root(), |cargo| cargo.env("CARGO_BUILD_JOBS", "1"))?;
    let other = page_of(&elsewhere, |cargo| cargo.env("CARGO_BUILD_JOBS", "2").env("CARGO_HOME", &other_home))?;
    let different = differences(&one, &other);
    ensure!(different.is_empty(), "two builds of one commit differ in {different:?}");
    let hash = sums::release_hash(&root().join("dist"))?;
    println!("Two builds of one commit have the same {} files, with the release hash {hash}.", one.len());
    Ok(())
}

/// Makes a copy of the repository, with the files of the last commit.
fn check_out(place: &Path) -> Result<()> {
    let commit = output(command("git").args(["rev-parse", "HEAD"])).context("git does not run")?;
    if !place.exists() {
        run(command("git").args(["clone", "--quiet", "--no-checkout"]).arg(root()).arg(place))?;
    }
    let git = || {
        let mut git = command("git");
        git.current_dir(place);
        git
    };
    run(git().args(["fetch", "--quiet", "origin", commit.trim()]))?;
    run(git().args(["checkout", "--quiet", "--detach", commit.trim()]))
}

/// Builds the page of a repository: its files.
fn page_of(place: &Path, set: impl FnOnce(&mut Command) -> &mut Command) -> Result<Files> {
    let mut xtask = cargo();
    xtask.current_dir(place).env_remove("CARGO_TARGET_DIR").args([
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--",
        "page",
    ]);
    run(set(&mut xtask))?;
    files(&place.join("dist"))
}

/// Makes another Cargo home with the same fetched crates.
fn copy_home(home: &Path) -> Result<()> {
    let own = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let own = own.context("neither CARGO_HOME nor HOME is set")?;
    for part in FETCHED {
        copy(&own.join(part), &home.join(part)).with_context(|| format!("cannot copy {part} of {}", own.display()))?;
    }
    Ok(())
}

/// Copies a file or a folder, unless it is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
    } else if from.is_file() && !to.exists() {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, to)?;
    }
    Ok(())
}
