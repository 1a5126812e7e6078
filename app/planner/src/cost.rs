//! The cost of a token under a plan: layers over speeds, one session overhead per stage, messages, round trips for
//! experts (dynamic-partitioning.txt 5.2.1, extended by readbacks of a browser and by messages from stage to stage).

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, FeedForwardShape, PeerId, Plan, RemoteExperts, Stage};

use crate::layers::LayerRange;
use crate::prediction::{ExpertTrip, HopCost, Prediction, StageCost};
use crate::room::paused_millis;
use crate::{Device, Room};

/// Speeds outside this range are measuring errors, or lies.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e12;
/// The same for milliseconds.
const MILLIS: std::ops::RangeInclusive<f64> = 0.0..=1e9;

/// A speed that the search can use: clamped, and NaN is the slowest.
pub(crate) fn speed(value: f64) -> f64 {
    if value.is_nan() { *SPEEDS.start() } else { value.clamp(*SPEEDS.start(), *SPEEDS.end()) }
}

pub(crate) fn millis(value: f64) -> f64 {
    if value.is_nan() { *MILLIS.end() } else { value.clamp(*MILLIS.start(), *MILLIS.end()) }
}

/// Layers of a stage.
pub(crate) fn stage_layers(room: &Room<'_>, plan: &Plan, stage: &Stage) -> LayerRange {
    room.layers.range(stage.blocks, plan.embeds(stage.id), plan.has_lm_head(stage.id))
}

/// The time of a token under any plan that is valid for the room's model. A peer that contributes nothing counts as
/// infinitely fast.
pub fn predict(room: &Room<'_>, plan: &Plan) -> Prediction {
    let mut hops = Vec::new();
    let mut at = room.coordinator;
    let mut hop = |from: PeerId, to: PeerId, bytes: Bytes| {
        if from != to {
            let (latency_millis, transfer_millis) = room.links.parts(from, to, bytes);
            hops.push(HopCost { from, to, latency_millis, transfer_millis });
        }
    };
    let mut stages = Vec::new();
    for stage in &plan.stages {
        let layers = stage_layers(room, plan, stage);
        hop(at, stage.peer, room.layers.message(layers.start, 1));
        at = stage.peer;
        stages.push(stage_cost(room, stage, layers));
    }
    hop(at, room.coordinator, room.layers.message(room.layers.count(), 1));
    with_pauses(room, Prediction::new(stages, hops))
}

/// While a token is elsewhere, the device of a stage idles, and is slower for the next token.
fn with_pauses(room: &Room<'_>, busy: Prediction) -> Prediction {
    let slowed = |token: f64| {
        let stages = busy.stages.iter().map(|cost| {
            let work = cost.session_millis + cost.compute_millis;
            let factor = match room.device(cost.peer) {
                // Waiting for its own experts is neither pause nor work.
                Some(device) if work > 0.0 => {
                    paused_millis(&device.pauses, work, token - (cost.millis() - work)) / work
                }
                _ => 1.0,
            };
            StageCost {
                session_millis: cost.session_millis * factor,
                compute_millis: cost.compute_millis * factor,
                ..cost.clone()
            }
        });
        Prediction::new(stages.collect(), busy.hops.clone())
    };
    let token = fixed_point(busy.token_millis, |token| slowed(token).token_millis);
    if token > busy.token_millis { slowed(token) } else { busy }
}

/// Most iterations of [`fixed_point`].
const ROUNDS: usize = 1_000;
/// The iteration stops when it adds less than this share.
const TOLERANCE: f64 = 1e-9;

/// The least fixed point of `millis`, which maps a token's time to the time it takes with the pauses of such a token.
/// It is monotonic, so the iteration rises from `busy`, the time without pauses.
pub(crate) fn fixed_point(busy: f64, millis: impl Fn(f64) -> f64) -> f64 {
    let mut token = busy;
    for _ in 0..ROUNDS {
        let next = millis(token);
        if next <= token * (1.0 + TOLERANCE) {
            break;
        }
        token = next;
    }
    token
}

fn stage_cost(room: &Room<'_>, stage: &Stage, layers: LayerRange) -> StageCost {
    let Some(device) = room.device(stage.peer) else {
        let (session_millis, compute_millis, experts) = (0.0, 0.0, Vec::new());
        return StageCost { stage: stage.id, peer: stage.peer, session_millis, compute_millis, experts };
    };
    let own = |remote: &RemoteExperts| {
        remote.holders.iter().filter(|holders| holders.first() == Some(&ExpertHolder::Own)).count()
    };
    let away: f64 = stage
        .remote
        .iter()
        .filter_map(|remote| Some(Routing::of(room, remote.block)?.active_bytes(remote.holders.len() - own(remote))))
        .sum();
    let compute = (room.layers.decode(layers) - away).max(0.0) / speed(device.speed.decode);
    StageCost {
        stage: stage.id,
        peer: stage.peer,
        session_millis: millis(device.session_millis),
        compute_millis: compute,
        experts: stage.remote.iter().filter_map(|remote| trip(room, device, remote)).collect(),
    }
}

/// The round trip for a block's experts, averaged over the router's choices.
fn trip(room: &Room<'_>, device: &Device, remote: &RemoteExperts) -> Option<ExpertTrip> {
    let routing = Routing::of(room, remote.block)?;
    let mut shares: Vec<(PeerId, usize)> = Vec::new();
    for holders in &remote.holders {
        if let Some(ExpertHolder::Peer(peer)) = holders.first() {
            match shares.iter_mut().find(|(known, _)| known == peer) {
                Some((_, count)) => *count += 1,
                None => shares.push((*peer, 1)),
            }
        }
    }
    let calls: Vec<(f64, f64)> = shares
        .iter()
        .map(|(peer, count)| (call_millis(room, device, *peer, routing, *count), routing.called(*count)))
        .collect();
    Some(ExpertTrip {
        block: remote.block,
        holders: shares.len(),
        sync_millis: millis(device.sync_millis),
        wait_millis: slowest(calls),
    })
}

/// Milliseconds of one call of a holder with `count` of the block's experts.
pub(crate) fn call_millis(room: &Room<'_>, caller: &Device, holder: PeerId, routing: Routing, count: usize) -> f64 {
    let bytes = room.layers.message(1, 1);
    let there = room.links.millis(caller.peer, holder, bytes) + room.links.millis(holder, caller.peer, bytes);
    let work = routing.active_bytes(count) / routing.called(count).max(f64::MIN_POSITIVE);
    let computing =
        room.device(holder).map_or(0.0, |device| millis(device.session_millis) + work / speed(device.speed.decode));
    there + computing
}

/// Expected time of the slowest of independent calls, each with the probability that it is made.
fn slowest(mut calls: Vec<(f64, f64)>) -> f64 {
    calls.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut expected, mut none_slower) = (0.0, 1.0);
    for (millis, called) in calls {
        expected += millis * called * none_slower;
        none_slower *= 1.0 - called;
    }
    expected
}

/// How a block's router spreads a token over its experts, if all choices are equally likely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    pub expert: Bytes,
    pub count: u16,
    pub used: u16,
}

impl Routing {
    pub fn of(room: &Room<'_>, block: BlockIndex) -> Option<Self> {
        match room.shape.blocks.get(usize::from(block.0))?.feed_forward {
            FeedForwardShape::Experts { expert, count, used, .. } => Some(Self { expert, count, used }),
            FeedForwardShape::Dense { .. } => None,
        }
    }

    /// Bytes that a token reads of `held` experts, on average.
    pub fn active_bytes(self, held: usize) -> f64 {
        self.expert.0 as f64 * f64::from(self.used) * held as f64 / f64::from(self.count.max(1))
    }

    /// Probability that a token uses at least one of `held` experts (hypergeometric).
    pub fn called(self, held: usize) -> f64 {
        let (count, held) = (usize::from(self.count), held.min(usize::from(self.count)));
        let missed = (0..usize::from(self.used)).map(|i| {
            let left = count.saturating_sub(i).max(1) as f64;
            (count.saturating_sub(held).saturating_sub(i)) as f64 / left
        });
        1.0 - missed.product::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_that_a_holder_is_called_is_hypergeometric() {
        let routing = Routing { expert: Bytes(10), count: 4, used: 2 };
        // Two of four are chosen; both are among the other two in 1 of 6 cases.
        assert!((routing.called(2) - 5.0 / 6.0).abs() < 1e-12, "{}", routing.called(2));
        assert_eq!(routing.called(0), 0.0);
        assert_eq!(routing.called(4), 1.0);
        assert_eq!(routing.active_bytes(2), 10.0);
    }

    #[test]
    fn the_slowest_of_two_calls_is_weighed_by_its_chance() {
        // Half of the time the slow one is called (8 ms), else the quick one always answers (2 ms).
        assert_eq!(slowest(vec![(2.0, 1.0), (8.0, 0.5)]), 5.0);
        assert_eq!(slowest(Vec::new()), 0.0);
    }
}
