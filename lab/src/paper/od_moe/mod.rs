//! OD-MoE (od-moe.txt): equation 1 for other groups, and recall, slots and schedules along a routing trace.

mod recalls;
mod schedules;
mod switched;

use std::path::Path;

use crate::routing::{Schedule, Trace};
use crate::table::{Table, number};
use anyhow::{Context, Result};

/// Milliseconds of a block at the 4.89 tokens a second of the fully loaded model (4.4), 32 blocks, in equal halves for main
/// node and worker: the paper gives neither alone.
const HALF_BLOCK: f64 = 1e3 / 4.89 / 32.0 / 2.0;
/// An expert of Mixtral-8x7B: 3 × 4096 × 14336 weights of four bytes (the base is in FP32, figure 3).
const EXPERT_BYTES: f64 = 3.0 * 4096.0 * 14336.0 * 4.0;
/// PCIe 4.0 with 16 lanes as it is reached in practice, bytes a millisecond.
const BUS: f64 = 25e6;
/// Milliseconds to load an expert.
const EXPERT_MILLIS: f64 = EXPERT_BYTES / BUS;
const BLOCKS: f64 = 32.0;

/// The paper's eight workers in groups of this size.
fn schedule(group: usize) -> Schedule {
    Schedule {
        workers: 8,
        group,
        used: 2,
        main_millis: HALF_BLOCK,
        worker_millis: HALF_BLOCK,
        load_millis: EXPERT_MILLIS,
    }
}

/// What follows from the equations alone, in Markdown.
pub fn report() -> String {
    let title = "Equation 1: eight workers, Mixtral-8x7B in FP32 over a bus of 25 GB/s; main node and worker take half of a \
                 fully loaded block each (assumed)";
    let head = ["group size", "groups", "a group loads, ms", "equation 1 allows, ms", "G as printed, ms"];
    let recalls = [1.0, 0.9734, 0.9567, 0.86, 0.25];
    let rates = recalls.map(|recall| format!("tok/s at {:.1}%", 100.0 * recall));
    let head: Vec<&str> = head.into_iter().chain(rates.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &head);
    for group in [1, 2, 4, 8] {
        let schedule = schedule(group);
        let printed = group as f64 * HALF_BLOCK + (group as f64 - 1.0) * HALF_BLOCK;
        let fixed = [schedule.loading_millis(), schedule.max_load_millis(), printed].map(number);
        let rates = recalls.map(|recall| number(1e3 / BLOCKS / schedule.block_millis(recall)));
        let sizes = [group.to_string(), schedule.groups().to_string()];
        table.row(sizes.into_iter().chain(fixed).chain(rates));
    }
    table.to_string()
}

/// Reads a routing trace.
///
/// # Errors
/// A file that cannot be read or is no trace.
pub fn read(path: &Path) -> Result<Trace> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Trace::from_bytes(&bytes).with_context(|| format!("in {}", path.display()))
}

/// The cut of a trace along which tests run.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
fn recorded() -> Trace {
    let compressed = include_bytes!("../../../traces/potluck-small.plrt.br");
    Trace::from_bytes(&potluck_testkit::unbrotli(compressed)).unwrap()
}

/// Recall by token index, what pools load and how fast groups are, from a routing trace.
pub fn of_trace(trace: &Trace) -> String {
    let tables = [
        recalls::beside_the_paper(trace),
        Some(recalls::by_token(trace)),
        Some(recalls::slots(trace)),
        Some(switched::table(trace)),
        Some(schedules::cases(trace)),
        schedules::group_sizes(trace),
    ];
    let tables: Vec<String> = tables.into_iter().flatten().map(|table| table.to_string()).collect();
    tables.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::ExpertId;
    use potluck_predict::TraceShape;

    use super::*;
    use crate::routing::Sequence;

    #[test]
    fn pairs_have_time_to_load_only_if_groups_are_counted() {
        let pairs = schedule(2);
        assert!((pairs.max_load_millis() - 7.0 * HALF_BLOCK).abs() < 1e-9, "4 t^M + 3 t^W, as in the paper's example");
        assert!((pairs.loading_millis() - 28.2).abs() < 0.1, "{} ms over the bus", pairs.loading_millis());
        assert!(pairs.loading_millis() > pairs.max_load_millis(), "FP32 over this bus is later than equation 1 allows");
    }

    #[test]
    fn a_trace_gives_all_tables() {
        let shape = TraceShape { blocks: 1, experts: 4, used: 1 };
        let experts: Vec<ExpertId> = [0, 1, 0, 1, 0, 1].map(ExpertId).to_vec();
        let sequences = vec![Sequence { prompt: 2, experts: vec![experts.clone(), experts] }];
        let trace = Trace { shape, channels: ["base", "Q8_0 T1 KV1"].map(str::to_owned).into(), sequences };
        let path = std::env::temp_dir().join(format!("potluck-trace-{}.bin", std::process::id()));
        std::fs::write(&path, trace.to_bytes().unwrap()).unwrap();
        let report = read(&path).map(|trace| of_trace(&trace)).unwrap();
        std::fs::remove_file(&path).unwrap();
        for row in [
            "| Q8_0 T1 KV1 | 100.00% | – | – | – | 100.00% |",
            "| 2 of 4 | Optimal | none | 66.7% |",
            "| Q8_0 | T1 KV1 | 100.00% |",
            "| none, after the router | – | 0.00% |",
            "| 4 | 1 |",
        ] {
            assert!(report.contains(row), "no {row} in\n{report}");
        }
        assert!(read(Path::new("no such file")).is_err());
    }

    #[test]
    fn the_lab_shows_these_tables() {
        let lab = include_str!("../../../../docs/lab/on-demand.md");
        let says = |tables: &str, command| {
            assert!(lab.contains(tables), "on-demand.md differs: paste the output of {command}")
        };
        says(&report(), "`cargo lab paper od-moe`");
        let trace = recorded();
        let tables = of_trace(&trace);
        let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| predictor");
        let missing: Vec<&str> = tables.lines().filter(is_row).filter(|row| !lab.contains(row)).collect();
        assert!(missing.is_empty(), "on-demand.md differs from `cargo lab paper od-moe --trace`:\n{missing:#?}");
        assert!(tables.lines().filter(is_row).count() > 30, "{tables}");
        let groups = schedules::group_sizes(&trace).unwrap();
        says(&groups.to_string(), "`cargo lab paper od-moe --trace`");
    }
}
