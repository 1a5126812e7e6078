//! Equations and tables of papers, evaluated beside the papers' figures.

mod dgp;
mod llamaweb;
mod moex;
mod od_moe;
mod pool;
mod records;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

/// A paper, and what is evaluated of it.
#[derive(Debug, Subcommand)]
pub enum Paper {
    /// DGP: partitions, ablation and times of its devices and models, predicted here
    Dgp,
    /// LlamaWeb: formats, models and memory that are supported here, and what was measured beside it
    Llamaweb,
    /// MoEx: tables 1 and 3, equations 3 to 13
    Moex,
    /// OD-MoE: equation 1; with a routing trace also recall, and what slots of experts load
    OdMoe {
        /// A routing trace (its format: lab/src/routing/trace.rs)
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
    },
}

/// Prints a paper's tables.
///
/// # Errors
/// A routing trace cannot be read.
pub fn run(paper: &Paper) -> Result<()> {
    match paper {
        Paper::Dgp => print!("{}", dgp::report(&records::Records::here())?),
        Paper::Llamaweb => print!("{}", llamaweb::report(&records::Records::here())?),
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
