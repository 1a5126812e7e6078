//! The schedule of 3.1 along a trace: ablation (figure 8), alignment periods (figures 9 and 10), group sizes.

use potluck_predict::Alignment;

use super::recalls::percent;
use super::{EXPERT_MILLIS, HALF_BLOCK};
use crate::routing::{Guesses, Recorded, Schedule, ShadowTimes, Trace, on_demand, recall};
use crate::table::{Table, number};

/// Groups that take turns, as in the paper.
const GROUPS: usize = 4;
/// The paper's LAN of 1 Gbit/s: 256 KB of keys and values a token (4.2), and a round trip for the token itself.
const KV_MILLIS: f64 = 256e3 / 125e3;
const TOKEN_MILLIS: f64 = 0.3;
/// Twice as fast as the main model with its workers: the paper does not say.
const SHADOW: ShadowTimes =
    ShadowTimes { block_millis: HALF_BLOCK, token_millis: TOKEN_MILLIS, kv_millis: KV_MILLIS, tokens_ahead: 0 };
/// Experts in half precision load on time by equation 1, the paper's late, and larger ones later.
const LOADS: [(&str, f64); 3] = [
    ("half the load", EXPERT_MILLIS / 2.0),
    ("the paper's load", EXPERT_MILLIS),
    ("twice the load", 2.0 * EXPERT_MILLIS),
];

/// Groups of as many workers as a token uses experts.
fn schedule(trace: &Trace, load_millis: f64) -> Schedule {
    let used = usize::from(trace.shape.used);
    Schedule {
        workers: GROUPS * used,
        group: used,
        used,
        main_millis: HALF_BLOCK,
        worker_millis: HALF_BLOCK,
        load_millis,
    }
}

/// Milliseconds a token of the fully loaded plan: each of a block's experts is computed on a worker of its own.
fn loaded_millis(trace: &Trace) -> f64 {
    f64::from(trace.shape.blocks) * schedule(trace, 0.0).block_millis(1.0)
}

/// The share of the fully loaded plan's speed that is left.
fn speed(trace: &Trace, schedule: Schedule, guesses: Guesses) -> String {
    format!("{:.1}%", 100.0 * loaded_millis(trace) / on_demand(trace, schedule, guesses).millis_a_token())
}

fn speeds(trace: &Trace, guesses: Guesses) -> impl Iterator<Item = String> {
    LOADS.into_iter().map(move |(_, load)| speed(trace, schedule(trace, load), guesses))
}

/// Channels of shadows: index, type and alignment.
fn shadows(trace: &Trace) -> impl Iterator<Item = (usize, &str, Alignment)> {
    trace.channels.iter().enumerate().skip(1).filter_map(|(channel, name)| {
        let (kind, alignment) = name.split_once(' ')?;
        Some((channel, kind, alignment.parse().ok()?))
    })
}

fn recall_of(trace: &Trace, channel: usize) -> String {
    let recorded = Recorded::new(trace, &trace.channels[channel]);
    recorded.map_or_else(String::new, |mut recorded| percent(recall(trace, &mut recorded).overall()))
}

fn head(first: &[&'static str]) -> Vec<&'static str> {
    first.iter().copied().chain(LOADS.map(|(name, _)| name)).collect()
}

/// Figure 8, and with more alignments figures 9 and 10: each shadow of the trace, then none.
pub fn cases(trace: &Trace) -> Table {
    let title = "Figures 8 to 10: speed of four groups of as many workers as a token uses experts, as a share of the fully \
                 loaded plan's";
    let mut table = Table::new(title, &head(&["shadow", "alignment", "recall"]));
    for (channel, kind, alignment) in shadows(trace) {
        let guesses = Guesses::Shadow { channel, alignment, times: SHADOW };
        let names = [kind.to_owned(), alignment.to_string(), recall_of(trace, channel)];
        table.row(names.into_iter().chain(speeds(trace, guesses)));
        if alignment == Alignment::default() {
            let guesses = Guesses::Shadow { channel, alignment, times: ShadowTimes { tokens_ahead: 1, ..SHADOW } };
            let names = [kind.to_owned(), "unaligned, a token ahead".to_owned(), recall_of(trace, channel)];
            table.row(names.into_iter().chain(speeds(trace, guesses)));
        }
    }
    let random = f64::from(trace.shape.used) / f64::from(trace.shape.experts);
    let names = ["none, random experts".to_owned(), "–".to_owned(), percent(random)];
    table.row(names.into_iter().chain(speeds(trace, Guesses::Random(1))));
    let names = ["none, after the router".to_owned(), "–".to_owned(), percent(0.0)];
    table.row(names.into_iter().chain(speeds(trace, Guesses::None)));
    table
}

/// Group sizes of as many workers, with the shadow in Q4_0 that is aligned every time, or else the last such; `None` without one.
pub fn group_sizes(trace: &Trace) -> Option<Table> {
    let always = "T1 KV1".parse().ok()?;
    let aligned = || shadows(trace).filter(|(.., alignment)| *alignment == always);
    let (channel, kind, alignment) = aligned().find(|(_, kind, _)| *kind == "Q4_0").or_else(|| aligned().last())?;
    let guesses = Guesses::Shadow { channel, alignment, times: SHADOW };
    let workers = GROUPS * usize::from(trace.shape.used);
    let title = format!("Group sizes of {workers} workers, shadow in {kind} aligned every time");
    let mut table = Table::new(&title, &head(&["group size", "groups", "equation 1 allows, ms"]));
    for group in (1..=workers).filter(|group| workers.is_multiple_of(*group)) {
        let of = |load| Schedule { group, ..schedule(trace, load) };
        let bound = of(0.0);
        let sizes = [group.to_string(), bound.groups().to_string(), number(bound.max_load_millis())];
        table.row(sizes.into_iter().chain(LOADS.map(|(_, load)| speed(trace, of(load), guesses))));
    }
    Some(table)
}
