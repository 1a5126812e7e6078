//! `cargo lab`: the laboratory beside the product. It measures, studies and evaluates papers; nothing here is in what people run.
#![forbid(unsafe_code)]

mod device;
mod paper;
mod predicted;
mod room;
mod routing;
mod study;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measures and studies Potluck, and evaluates papers.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo lab", args_override_self = true)]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Evaluate what a paper projects, beside its figures
    #[command(subcommand)]
    Paper(paper::Paper),
    /// Compare predicted and measured times of tokens, in rooms of unequal devices
    Predicted(predicted::PredictedArguments),
    /// Take part in a room that is measured: ask in rounds, on a device that may act as a slower one, or one that is far away
    #[command(subcommand)]
    Room(room::Room),
    /// Record which experts a model's routers choose, and those of shadows beside it
    Trace(study::TraceArguments),
    /// Write a model with its matrices in another type
    Requantize(study::RequantizeArguments),
}

fn main() -> ExitCode {
    match Arguments::parse().subject {
        Subject::Paper(paper) => ended(paper::run(&paper)),
        Subject::Predicted(predicted) => ended(predicted::run(&predicted)),
        Subject::Room(room) => ended(room::run(room)),
        Subject::Trace(trace) => ended(trace.run()),
        Subject::Requantize(requantize) => ended(requantize.run()),
    }
}

fn ended(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_finds_no_fault_in_the_options() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn commands_of_scripts_and_documents_are_understood() {
        for line in [
            // e2e/large/experts.sh
            "room host models/experts.gguf --relay http://localhost:1 --replicas 2 --hedging 2 --budget 36M --context 2048 --cache c \
             --raw --prompt once --max-tokens 200 --rounds 4 --members 7 --holders 1 --gpu-index 0 --temperature 1 --seed 1 \
             --last-round last-round --protect --share fastest --conversations 1,8 --prompt-tokens 16,128/64",
            "room join http://localhost:1/r/a#b --budget 300M --hesitate 20,0.5 --hesitate-until last-round --slow 0 --gpu-index 1 \
             --cache c",
            // e2e/large/on-demand.sh
            "room alone models/experts.gguf --budget 6500M --gpu-index 0 --cache c --raw --prompt once --max-tokens 32 --rounds 3 \
             --temperature 1 --seed 15 --context 2048 --shadow models/experts.gguf --always-guess --recalls 0,95.7 --rounds 4",
            "room host experts --relay http://localhost:1 --share experts --replicas 1 --hedging off --budget 1160M --cache c \
             --members 9 --holders 7 --raw --prompt once --rounds 3 --on-demand --hints recorded --always-guess --recalls 0,99.9 \
             --rounds 3 --shadow models/experts.gguf",
            // docs/lab/on-demand.md
            "room alone m.gguf --kv f32 --context 512 --budget 49400K --rounds 3 --max-tokens 170 --predictor router \
             --always-guess --prompt once",
            "trace small-F32.gguf --prompts prompts.txt --max-tokens 256 --cpu --shadows a.gguf,b.gguf@T1KV4 --out small.plrt",
            "requantize in.gguf out.gguf --type Q2_K",
        ] {
            let words = std::iter::once("lab").chain(line.split_whitespace());
            Arguments::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn who_asks_in_rounds_has_a_question() {
        let line = ["lab", "room", "join", "http://localhost:1/r/a#b", "--rounds", "3"];
        let error = Arguments::try_parse_from(line).expect_err("there is no question").to_string();
        assert!(error.contains("--prompt <TEXT>"), "{error}");
    }
}
