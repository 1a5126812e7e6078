//! OD-MoE (od-moe.txt): equation 1 for other groups, and recall and slots along a routing trace.

use std::path::Path;

use anyhow::{Context, Result};
use potluck_plan::Bytes;
use potluck_predict::{
    Eviction, GivenLast, MostFrequent, MostRecent, Nothing, Pool, Predictor, Recorded, Schedule, Trace, recall,
    simulate,
};

use crate::table::{Table, number};

/// Milliseconds of a block at the 4.89 tokens a second of the fully loaded model (4.4), 32 blocks, in equal halves for main
/// node and worker: the paper gives neither alone.
const HALF_BLOCK: f64 = 1e3 / 4.89 / 32.0 / 2.0;
/// An expert of Mixtral-8x7B: 3 × 4096 × 14336 weights of four bytes (the base is in FP32, figure 3).
const EXPERT_BYTES: f64 = 3.0 * 4096.0 * 14336.0 * 4.0;
/// PCIe 4.0 with 16 lanes as it is reached in practice, bytes a millisecond.
const BUS: f64 = 25e6;
const BLOCKS: f64 = 32.0;

/// The paper's eight workers in groups of this size.
fn schedule(group: usize) -> Schedule {
    Schedule {
        workers: 8,
        group,
        used: 2,
        main_millis: HALF_BLOCK,
        worker_millis: HALF_BLOCK,
        load_millis: EXPERT_BYTES / BUS,
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

/// Recall by token index and what pools load, from a routing trace.
///
/// # Errors
/// A file that cannot be read or is no trace.
pub fn of_trace(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let trace = Trace::from_bytes(&bytes).with_context(|| format!("in {}", path.display()))?;
    Ok(format!("{}\n{}", recalls(&trace), slots(&trace)))
}

/// Predictors without the model, then the recorded ones.
fn predictors(trace: &Trace) -> Vec<Box<dyn Predictor + '_>> {
    let shape = trace.shape;
    let mut predictors: Vec<Box<dyn Predictor + '_>> =
        vec![Box::new(MostRecent::new(shape)), Box::new(MostFrequent::new(shape)), Box::new(GivenLast::new(shape))];
    for channel in trace.channels.iter().skip(1) {
        predictors.extend(Recorded::new(trace, channel).map(|recorded| Box::new(recorded) as Box<dyn Predictor>));
    }
    predictors
}

/// Equations 2 and 3.
fn recalls(trace: &Trace) -> Table {
    const RANGES: [(usize, usize); 4] = [(0, 16), (16, 64), (64, 256), (256, usize::MAX)];
    let title = "Equations 2 and 3: recall by the index of the answer's token";
    let mut table = Table::new(title, &["predictor", "to 16", "to 64", "to 256", "from 256", "all"]);
    for mut predictor in predictors(trace) {
        let recall = recall(trace, predictor.as_mut());
        let percent = |share: f64| format!("{:.2}%", 100.0 * share);
        let has = |start: usize| recall.by_token.len() > start;
        let ranges =
            RANGES.map(|(start, end)| if has(start) { percent(recall.between(start, end)) } else { "–".to_owned() });
        table.row([predictor.name()].into_iter().chain(ranges).chain([percent(recall.overall())]));
    }
    table
}

/// Slots for a quarter, a third and half of all experts on one device.
fn slots(trace: &Trace) -> Table {
    let all = usize::from(trace.shape.blocks) * usize::from(trace.shape.experts);
    let title =
        "Slots on one device: hit rate, blocks a token waits at, experts loaded a token; guesses one block ahead";
    let mut table = Table::new(title, &["slots", "eviction", "predictor", "hits", "stalls a token", "loads a token"]);
    for share in [4, 3, 2] {
        let used = usize::from(trace.shape.used);
        let pool = Pool {
            devices: 1,
            group: 1,
            slots: (all / share).max(2 * used),
            expert: Bytes(1),
            ahead: 1,
            guesses: used,
        };
        let mut run = |eviction: Eviction, predictor: &mut dyn Predictor| {
            // Two tokens' worth of a block's experts fit, so the pool is never too small.
            if let Ok(report) = simulate(trace, pool, eviction, predictor) {
                table.row([
                    format!("{} of {all}", pool.slots),
                    format!("{eviction:?}"),
                    predictor.name(),
                    format!("{:.1}%", 100.0 * report.hit_rate()),
                    number(report.stalls as f64 / report.tokens.max(1) as f64),
                    number(report.bytes_a_token()),
                ]);
            }
        };
        for eviction in [Eviction::Optimal, Eviction::Lru, Eviction::Lfu] {
            run(eviction, &mut Nothing);
        }
        for mut predictor in predictors(trace) {
            run(Eviction::Lru, predictor.as_mut());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::ExpertId;
    use potluck_predict::{Sequence, TraceShape};

    use super::*;

    #[test]
    fn pairs_have_time_to_load_only_if_groups_are_counted() {
        let pairs = schedule(2);
        assert!((pairs.max_load_millis() - 7.0 * HALF_BLOCK).abs() < 1e-9, "4 t^M + 3 t^W, as in the paper's example");
        assert!((pairs.loading_millis() - 28.2).abs() < 0.1, "{} ms over the bus", pairs.loading_millis());
        assert!(pairs.loading_millis() > pairs.max_load_millis(), "FP32 over this bus is later than equation 1 allows");
    }

    #[test]
    fn a_trace_gives_both_tables() {
        let shape = TraceShape { blocks: 1, experts: 4, used: 1 };
        let experts: Vec<ExpertId> = [0, 1, 0, 1, 0, 1].map(ExpertId).to_vec();
        let sequences = vec![Sequence { prompt: 2, experts: vec![experts.clone(), experts] }];
        let trace = Trace { shape, channels: vec!["base".to_owned(), "shadow".to_owned()], sequences };
        let path = std::env::temp_dir().join(format!("potluck-trace-{}.bin", std::process::id()));
        std::fs::write(&path, trace.to_bytes().unwrap()).unwrap();
        let report = of_trace(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(report.contains("| shadow | 100.00% | – | – | – | 100.00% |"), "{report}");
        assert!(report.contains("| 2 of 4 | Optimal | none | 66.7% |"), "{report}");
        assert!(of_trace(Path::new("no such file")).is_err());
    }

    #[test]
    fn the_lab_shows_this_table() {
        let lab = include_str!("../../../docs/lab/on-demand.md");
        assert!(
            lab.contains(&report()),
            "docs/lab/on-demand.md differs: paste the output of `cargo xtask paper od-moe`"
        );
    }
}
