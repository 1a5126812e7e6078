//! Spelling, by typos (`typos.toml`). It is one program in a Python package, which is fetched once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::root;
use crate::shell::{command, find, output_of};
use crate::test::Closing;

/// The package and its version, as pip reads it.
const REQUIREMENT: &str = "xtask/requirements.txt";

/// Where the package cannot be fetched, the summary says so, and nothing fails.
pub fn check() -> (Closing, Result<()>) {
    match program().and_then(|program| program.map(|program| spell(&program)).transpose()) {
        Ok(Some(())) => (Vec::new(), Ok(())),
        Ok(None) => {
            (vec!["spelling: skipped: out of reach. The package typos cannot be fetched here.".to_owned()], Ok(()))
        }
        Err(error) => (Vec::new(), Err(error)),
    }
}

fn spell(program: &Path) -> Result<()> {
    let (output, status) = output_of(command(program).args(["--format", "brief"]))?;
    ensure!(status.success(), "misspelled, or a word for typos.toml:\n{output}");
    println!("Spelling: nothing to correct.");
    Ok(())
}

/// The pinned program, fetched if it is not there.
fn program() -> Result<Option<PathBuf>> {
    let requirement = fs::read_to_string(root().join(REQUIREMENT))?;
    let folder = root().join(".run").join(requirement.trim());
    let program = folder.join("bin").join(format!("typos{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(Some(program));
    }
    let Some(python) = ["python3", "python"].iter().find_map(|name| find(name)) else { return Ok(None) };
    // In a folder of its own until it is whole.
    let half = folder.with_extension("half");
    if half.exists() {
        fs::remove_dir_all(&half)?;
    }
    let mut pip = command(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]);
    pip.args(["--retries", "1", "--timeout", "20", "--requirement", REQUIREMENT, "--target"]).arg(&half);
    let (output, status) = output_of(&mut pip)?;
    if !status.success() {
        println!("{output}");
        return Ok(None);
    }
    fs::rename(&half, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if program.is_file() { Ok(Some(program)) } else { bail!("the package typos has no program {}", program.display()) }
}
