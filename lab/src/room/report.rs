//! What is known after a round, as JSON.

use std::collections::BTreeSet;

use potluck_panel::{ExpertsView, OnDemandReport, Sealing, Status, Timings};
use serde_json::{Value, json};

use super::asking::Asked;

/// What sealing and experts on demand had taken before a round.
pub struct Before {
    sealing: Sealing,
    on_demand: OnDemandReport,
}

impl Before {
    /// What they have taken so far.
    pub fn of(status: &Status) -> Self {
        Self { sealing: status.sealing, on_demand: status.on_demand.unwrap_or_default() }
    }
}

/// Devices that hold experts for a stage of another device.
pub fn holders(status: &Status) -> usize {
    let stages = status.plan.iter().flat_map(|plan| &plan.stages);
    stages.flat_map(|stage| &stage.expert_holders).map(|holding| holding.peer).collect::<BTreeSet<_>>().len()
}

/// What is known after a round.
pub fn round_line(status: &Status, round: u32, asked: Asked, before: &Before) -> Value {
    let Asked { timings, mut gaps, changes } = asked;
    gaps.sort_by(f64::total_cmp);
    let quantile = |share: f64| gaps.get((gaps.len() as f64 * share) as usize).or(gaps.last());
    let (tokens, longest) = timings.iter().fold((0, 0f64), |(tokens, longest), timings| {
        (tokens + timings.answer_tokens.saturating_sub(1), longest.max(timings.decode_ms))
    });
    let plan = status.plan.as_ref();
    let experts = plan.and_then(|plan| plan.experts.as_ref());
    let millis: Vec<f64> = timings.iter().map(Timings::millis_a_token).collect();
    let mean = millis.iter().sum::<f64>() / millis.len().max(1) as f64;
    let a_token = |sum: f64| sum / f64::from(tokens.max(1));
    let sealing = status.sealing;
    json!({
        "round": round,
        "conversations": timings.len(),
        "tokens_per_second": if longest > 0.0 { f64::from(tokens) * 1e3 / longest } else { 0.0 },
        "token_ms": millis,
        "gap_ms": { "median": quantile(0.5), "p99": quantile(0.99), "longest": gaps.last() },
        "parts_ms": experts.map(|experts| parts(experts, status.device.sync_ms, mean)),
        "vector_bytes_a_token": experts.map(|experts| experts.token_bytes),
        // Of this device, the prompt's messages included.
        "sealed_bytes_a_token": a_token(sealing.bytes.saturating_sub(before.sealing.bytes) as f64),
        "sealing_ms_a_token": a_token(sealing.ms - before.sealing.ms),
        "first_token_ms": timings.iter().map(|timings| timings.first_token_ms).collect::<Vec<f64>>(),
        "prompt_tokens": timings.first().map(|timings| timings.prompt_tokens),
        "stages": plan.map(|plan| plan.stages.len()),
        "holders": holders(status),
        "copies": experts.map(|experts| experts.mean_holders),
        "expert_phases": experts.map(|experts| &experts.phases),
        "expected_token_ms": plan.map(|plan| plan.token_ms),
        "holder_changes": changes.lines(),
        "members": status.peers.len(),
        // Of all rounds so far.
        "hints": status.hints,
        "drafts": status.drafts,
        "on_demand": status.on_demand.map(|now| now.since(&before.on_demand)),
    })
}

/// The parts of a token, milliseconds. Readbacks are those of an empty piece of work, one for each trip and one at the end.
fn parts(experts: &ExpertsView, sync: f64, token: f64) -> Value {
    let readbacks = (experts.trips + 1.0) * sync;
    json!({
        "token": token,
        "own_kernels": experts.own_ms - readbacks,
        "readbacks": readbacks,
        "wire": experts.trips_ms - experts.trips_engine_ms,
        "experts": experts.trips_engine_ms,
        "sum": experts.own_ms + experts.trips_ms,
    })
}

/// Times of a prompt of another length. `tokens_per_second` counts the first token's time, too (table 2 of od-moe.txt).
pub fn lengths_line(timings: &Timings) -> Value {
    let Timings { prompt_tokens, answer_tokens, first_token_ms, decode_ms, .. } = *timings;
    let mut line = json!({ "prompt_tokens": prompt_tokens, "first_token_ms": first_token_ms });
    if answer_tokens > 1 {
        line["answer_tokens"] = json!(answer_tokens);
        line["token_ms"] = json!(timings.millis_a_token());
        line["decode_per_second"] = json!(1e3 / timings.millis_a_token());
        line["tokens_per_second"] = json!(f64::from(answer_tokens) * 1e3 / (first_token_ms + decode_ms));
    }
    line
}

/// Equation 1 of od-moe.txt 3.1: what the load of an expert may take, if a group of blocks is hinted ahead.
pub fn equation_1(status: &Status, group: u16) -> Option<Value> {
    let plan = status.plan.as_ref()?;
    let experts = plan.experts.as_ref().filter(|experts| experts.trips > 0.0)?;
    let (main, holders) = (experts.own_ms / experts.trips, experts.trips_ms / experts.trips);
    // As stages do where there are few blocks.
    let group = f64::from(group).min((experts.trips / 4.0).round()).max(1.0);
    let allowed = group * main + (group - 1.0) * holders;
    Some(json!({ "group": group, "main_ms": main, "experts_ms": holders, "load_may_take_ms": allowed }))
}
