//! `cargo xtask paper`: evaluates the equations and tables of papers and prints them beside the papers' figures.
//!
//! A crate of its own, so that `cargo xtask run` does not wait until the planner is compiled.
#![forbid(unsafe_code)]

mod moex;
mod od_moe;
mod pool;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
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
    /// OD-MoE: equation 1; with a routing trace also recall, and what slots of experts load
    OdMoe {
        /// A routing trace (its format: app/predict/src/trace.rs)
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(&Options::parse().paper) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(paper: &Paper) -> Result<()> {
    match paper {
        Paper::Moex => print!("{}", moex::report()),
        Paper::OdMoe { trace } => {
            print!("{}", od_moe::report());
            if let Some(path) = trace {
                print!("\n{}", od_moe::of_trace(&od_moe::read(path)?));
            }
        }
    }
    Ok(())
}
