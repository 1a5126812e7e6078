//! Sets up, runs and tests the repository: `cargo xtask help` lists the commands.
#![forbid(unsafe_code)]

mod bench_report;
mod browser;
mod build;
mod check;
mod dependencies;
mod e2e;
mod models;
mod options;
mod page_text;
mod reference;
mod remap;
mod reproducible;
mod run;
mod sbom;
mod shell;
mod size;
mod sums;
mod targets;
mod test;
mod text;
mod tools;
mod trunk;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use build::PageBuild;
use options::{Command, Options};

fn main() -> ExitCode {
    match execute(Options::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<()> {
    match command {
        Command::Build { page } => {
            let page = page.build();
            let relay = build::page_and_relay(page)?;
            let flag = if page == PageBuild::Quick { " --quick" } else { "" };
            println!(
                "The page is in dist/, the relay is {}. To look at it: cargo xtask run --local{flag}",
                relay.display()
            );
            Ok(())
        }
        Command::Page => build::page_to(&trunk::staging_folder().unwrap_or_else(|| root().join("dist"))),
        Command::Run(run) => run::run(&run),
        Command::Test(test) => test::run(&test.only),
        Command::Check { name, texts } => check::check(name.as_deref(), texts),
        Command::Models { names } => models::models(&names),
        Command::Simulate { arguments } => run::tool("potluck-simulate", &arguments),
        Command::Sbom => sbom::print(),
        Command::Reference => reference::write(),
        Command::BenchReport => bench_report::write(),
        Command::Screenshots => e2e::screenshots(),
    }
}

/// The repository's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
