//! Recall along a trace (equations 2 and 3, figures 3 and 6), and what pools of slots load.

use potluck_plan::Bytes;
use potluck_predict::{GivenLast, MostFrequent, Predictor};

use crate::routing::{Eviction, MostRecent, Nothing, Pool, Recorded, Trace, recall, simulate};
use crate::table::{Table, number};

/// The paper's recall with tokens and KV cache aligned every time (3.2), beside our types.
const PAPER: [(&str, &str, f64); 3] = [("FP16", "F16", 99.94), ("INT8", "Q8_0", 97.34), ("NF4", "Q4_0", 95.67)];

pub fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// Predictors without the model, then the recorded ones that are wanted.
fn predictors(trace: &Trace, wanted: fn(&str) -> bool) -> Vec<Box<dyn Predictor + '_>> {
    let shape = trace.shape;
    let mut predictors: Vec<Box<dyn Predictor + '_>> =
        vec![Box::new(MostRecent::new(shape)), Box::new(MostFrequent::new(shape)), Box::new(GivenLast::new(shape))];
    for channel in trace.channels.iter().skip(1).filter(|channel| wanted(channel)) {
        predictors.extend(Recorded::new(trace, channel).map(|recorded| Box::new(recorded) as Box<dyn Predictor>));
    }
    predictors
}

/// The nearest router, and shadows that are aligned every time.
pub fn foresees_best(channel: &str) -> bool {
    channel == "router, 1 ahead" || channel.ends_with("T1 KV1")
}

/// Our recall beside the paper's; `None` if the trace has no such shadows.
pub fn beside_the_paper(trace: &Trace) -> Option<Table> {
    let title = "Recall beside the paper's, tokens and KV cache aligned every time";
    let mut table = Table::new(title, &["paper", "recall", "here", "recall here"]);
    for (theirs, ours, reached) in PAPER {
        let mut recorded = Recorded::new(trace, &format!("{ours} T1 KV1"))?;
        let here = percent(recall(trace, &mut recorded).overall());
        table.row([theirs.to_owned(), format!("{reached:.2}%"), ours.to_owned(), here]);
    }
    Some(table)
}

/// Equations 2 and 3.
pub fn by_token(trace: &Trace) -> Table {
    const RANGES: [(usize, usize); 4] = [(0, 16), (16, 64), (64, 256), (256, usize::MAX)];
    let title = "Equations 2 and 3: recall by the index of the answer's token";
    let mut table = Table::new(title, &["predictor", "to 16", "to 64", "to 256", "from 256", "all"]);
    for mut predictor in predictors(trace, |_| true) {
        let recall = recall(trace, predictor.as_mut());
        let has = |start: usize| recall.by_token.len() > start;
        let ranges =
            RANGES.map(|(start, end)| if has(start) { percent(recall.between(start, end)) } else { "–".to_owned() });
        table.row([predictor.name()].into_iter().chain(ranges).chain([percent(recall.overall())]));
    }
    table
}

/// Slots for a quarter, a third and half of all experts on one device.
pub fn slots(trace: &Trace) -> Table {
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
        for mut predictor in predictors(trace, foresees_best) {
            run(Eviction::Lru, predictor.as_mut());
        }
    }
    table
}
