//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::build::PageBuild;
use crate::page_text::Texts;

/// Sets up, runs and tests Potluck.
#[derive(Debug, Parser, PartialEq)]
#[command(bin_name = "cargo xtask", after_help = "The WebAssembly target of Rust is fetched when it is missing.")]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand, PartialEq)]
pub enum Command {
    /// Build the page and the relay, start the relay and open the page
    Run(Run),
    /// Run every check that a change must pass
    Test(Test),
    /// Run what takes minutes or needs something from outside; without a name, list it
    Check {
        /// What to check
        #[arg(value_parser = crate::check::names())]
        name: Option<String>,
        /// Which texts
        #[command(flatten)]
        texts: Texts,
    },
    /// Fetch the published models that the tests and the tables of docs/lab/real-models.md need
    Models {
        /// Which ones (all unless given)
        names: Vec<String>,
    },
    /// Run rooms on a virtual clock; `cargo xtask simulate --help` lists the options
    #[command(disable_help_flag = true)]
    Simulate {
        /// Passed on to the simulator
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build the page (to dist/) and the relay without starting them
    Build {
        /// How the page is compiled
        #[command(flatten)]
        page: PageOptions,
    },
    /// Build the page alone (to dist/; for `trunk build`, which calls this, to Trunk's folder)
    Page,
    /// Print what is built into what ships: a bill of materials (CycloneDX 1.5)
    Sbom,
    /// Write docs/command-line.md from what the programs say with --help
    Reference,
    /// Render the tables of BENCHMARKS.md from bench/results/
    BenchReport,
    /// Take the still pictures in docs/screenshots/ again
    Screenshots,
}

#[derive(Debug, Args, Default, PartialEq)]
pub struct Run {
    /// The port (8787 unless given)
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// A folder with GGUF files to offer beside the built-in model; may be repeated
    #[arg(long, value_name = "DIR")]
    pub models: Vec<PathBuf>,
    /// Serve only this machine: no LAN, no HTTPS
    #[arg(long)]
    pub local: bool,
    /// Do not open the browser
    #[arg(long)]
    pub no_open: bool,
    /// How the page is compiled
    #[command(flatten)]
    pub page: PageOptions,
}

/// How the page is compiled.
#[derive(Clone, Copy, Debug, Args, Default, PartialEq)]
pub struct PageOptions {
    /// Compile the page in half a minute after a change; it is larger and slower
    #[arg(long)]
    quick: bool,
}

impl PageOptions {
    /// The build that is meant.
    pub fn build(self) -> PageBuild {
        if self.quick { PageBuild::Quick } else { PageBuild::Shipped }
    }
}

#[derive(Debug, Args, Default, PartialEq)]
pub struct Test {
    /// Run only this step; may be repeated
    #[arg(long, value_name = "STEP", value_parser = crate::test::step_names())]
    pub only: Vec<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Options::try_parse_from(std::iter::once("xtask").chain(line.split_whitespace())).map(|options| options.command)
    }

    #[test]
    fn commands_take_their_options() {
        let page = PageOptions { quick: true };
        let run = Run { port: Some(9000), models: vec!["a".into(), "b".into()], local: true, no_open: true, page };
        assert_eq!(
            parse("run --port 9000 --models a --models=b --local --no-open --quick").unwrap(),
            Command::Run(run)
        );
        assert_eq!(parse("build --quick").unwrap(), Command::Build { page });
        assert_eq!(parse("test --only fmt").unwrap(), Command::Test(Test { only: vec!["fmt".into()] }));
    }

    #[test]
    fn the_simulator_gets_its_arguments_as_they_are() {
        let arguments = ["churn", "--seed", "7", "--help"].map(OsString::from).to_vec();
        assert_eq!(parse("simulate churn --seed 7 --help").unwrap(), Command::Simulate { arguments });
    }

    #[test]
    fn options_of_other_commands_are_refused() {
        for line in [
            "test --port 1",
            "build --local",
            "run --only fmt",
            "walk",
            "run --port many",
            "run file",
            "test --only walk",
            "check walk",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
