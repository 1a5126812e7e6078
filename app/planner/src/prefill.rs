//! What a prompt costs: its chunks pass the stages as a pipeline.

use potluck_plan::Plan;

use crate::Room;
use crate::cost::{millis, speed, stage_layers};

/// How a prompt is expected to pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefill {
    /// Milliseconds from the departure of the first chunk to the last result at the coordinator.
    pub millis: f64,
    /// Milliseconds of each stage's engine per full chunk.
    pub stage_millis: Vec<f64>,
    /// Index of the slowest stage, where chunks queue.
    pub bottleneck: usize,
}

/// The time of a prompt of `tokens` under a plan, in chunks of at most `chunk` tokens with at most `window` of them in
/// flight. Blocks with experts elsewhere count as if all experts were the stage's own.
pub fn predict_prefill(room: &Room<'_>, plan: &Plan, tokens: u32, chunk: u32, window: usize) -> Prefill {
    let (chunk, window) = (chunk.max(1), window.max(1));
    let stage_millis: Vec<f64> = (0..plan.stages.len()).map(|index| stage(room, plan, index, chunk)).collect();
    let slowest = stage_millis.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let bottleneck = slowest.map_or(0, |(index, _)| index);
    let mut free = vec![0.0f64; plan.stages.len()];
    let mut finished: Vec<f64> = Vec::new();
    let mut left = tokens;
    while left > 0 {
        let rows = left.min(chunk);
        left -= rows;
        let departs = finished.len().checked_sub(window).map_or(0.0, |before| finished[before]);
        let mut at = (room.coordinator, departs);
        for (index, stage_at) in plan.stages.iter().enumerate() {
            let layers = stage_layers(room, plan, stage_at);
            let bytes = room.layers.message(layers.start, rows);
            let arrives = at.1 + room.links.millis(at.0, stage_at.peer, bytes);
            free[index] = free[index].max(arrives) + stage(room, plan, index, rows);
            at = (stage_at.peer, free[index]);
        }
        let back = room.layers.message(room.layers.count(), 1);
        finished.push(at.1 + room.links.millis(at.0, room.coordinator, back));
    }
    Prefill { millis: finished.last().copied().unwrap_or(0.0), stage_millis, bottleneck }
}

/// Time to first token of an answer to a prompt of `tokens`, milliseconds: [`predict_prefill`] and the LM head for the
/// last token.
pub fn first_token_millis(room: &Room<'_>, plan: &Plan, tokens: u32, chunk: u32, window: usize) -> f64 {
    let head = room.layers.iter().last().map_or(0.0, |head| head.decode);
    let device = plan.stages.last().and_then(|stage| room.device(stage.peer));
    predict_prefill(room, plan, tokens, chunk, window).millis
        + device.map_or(0.0, |device| head / speed(device.speed.decode))
}

fn stage(room: &Room<'_>, plan: &Plan, index: usize, rows: u32) -> f64 {
    let Some(stage) = plan.stages.get(index) else { return 0.0 };
    let Some(device) = room.device(stage.peer) else { return 0.0 };
    let cost = room.layers.prefill(stage_layers(room, plan, stage)) * f64::from(rows);
    millis(device.session_millis) + cost / speed(device.speed.prefill)
}
