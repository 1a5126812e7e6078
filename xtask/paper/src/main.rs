//! `cargo xtask paper`: evaluates the equations and tables of papers and prints them beside the papers' figures.
//!
//! A crate of its own, so that `cargo xtask run` does not wait until the planner is compiled.
#![forbid(unsafe_code)]

mod moex;
mod pool;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Evaluates what papers project, beside their figures.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask paper")]
struct Options {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Debug, Subcommand)]
enum Paper {
    /// MoEx: tables 1 and 3, equations 3 to 13
    Moex,
}

fn main() -> ExitCode {
    match Options::parse().paper {
        Paper::Moex => print!("{}", moex::report()),
    }
    ExitCode::SUCCESS
}
