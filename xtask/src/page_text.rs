//! `cargo xtask check page-text`: reads texts written by others in WebAssembly, as the page reads them (`fuzz/page`).

use anyhow::{Context, Result};

use crate::build::{bundler, program_path, target_folder};
use crate::remap::without_paths;
use crate::root;
use crate::shell::{command, find, run};
use crate::tools::{TARGET, cargo, ensure_target};

/// Texts, unless told otherwise.
const COUNT: u64 = 1_000_000;
const NAME: &str = "potluck-fuzz-page";

/// Which texts are read: their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Texts {
    /// With `page-text`: how many texts are read (a million unless given)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// With `page-text`: the number of the first one; others give other texts
    #[arg(long, value_name = "N")]
    first: Option<u64>,
}

impl Texts {
    /// Nothing was said of texts.
    pub fn is_unset(self) -> bool {
        self == Self::default()
    }
}

/// Reads texts.
///
/// # Errors
/// A text stops the program or takes too long, or there is no Node.
pub fn check(texts: Texts) -> Result<()> {
    let node = find("node").context("this needs Node 20 or newer, which is not installed: get it from nodejs.org")?;
    ensure_target()?;
    // As the page is compiled: the same profile, and so the same stack.
    let mut build = cargo();
    build.args(["build", "--profile", "web", "--target", TARGET, "--package", NAME, "--bins"]);
    run(without_paths(&mut build)?)?;
    run(&mut bundler())?;
    let out = target_folder().join("page-text");
    let program = target_folder().join(TARGET).join("web").join(format!("{NAME}.wasm"));
    run(command(program_path("debug", "potluck-bundle")).arg(program).arg(&out))?;
    let mut read = command(node);
    read.arg(root().join("fuzz/page/run.mjs")).arg(out);
    run(read.arg(texts.count.unwrap_or(COUNT).to_string()).arg(texts.first.unwrap_or(0).to_string()))
}
