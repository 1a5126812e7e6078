//! The cost of a token under a plan: layers over speeds, one session overhead per stage, messages, round trips for
//! experts (dynamic-partitioning.txt 5.2.1, extended by readbacks of a browser and by messages from stage to stage).

use potluck_plan::{BlockIndex, PeerId, Plan, RemoteExperts, Stage};

use crate::delay::{Call, expected_max, expected_max_at_least};
use crate::layers::LayerRange;
use crate::on_demand::{loading_millis, misses};
use crate::prediction::{HopCost, Prediction, StageCost};
use crate::room::paused_millis;
use crate::trips::{BlockHolders, Routing, trip};
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
    Estimate::of(room, plan, remote).predicted(room)
}

/// The messages of a decoded token: from the coordinator through all stages and back.
pub fn hops(room: &Room<'_>, plan: &Plan) -> Vec<HopCost> {
    let to = plan.stages.iter().map(|stage| (stage.peer, stage_layers(room, plan, stage).start));
    let back = (room.coordinator, room.layers.count());
    let mut at = room.coordinator;
    let hop = |(to, layer): (PeerId, usize)| {
        let from = std::mem::replace(&mut at, to);
        let (latency_millis, transfer_millis) = room.links.parts(from, to, room.layers.message(layer, 1));
        (from != to).then_some(HopCost { from, to, latency_millis, transfer_millis })
    };
    to.chain([back]).filter_map(hop).collect()
}

fn remote(stage: &Stage) -> Vec<&RemoteExperts> {
    stage.remote.iter().collect()
}

/// A prediction in which the waits for experts are still to be integrated: they take most of its time.
pub(crate) struct Estimate {
    stages: Vec<StageCost>,
    /// What each stage waits for, trip by trip.
    waits: Vec<Vec<Vec<Call>>>,
    hops: Vec<HopCost>,
}

impl Estimate {
    /// Everything but the waits. The blocks of a stage that have experts elsewhere are those of `remote`.
    pub fn of<'p, H: BlockHolders>(room: &Room<'_>, plan: &'p Plan, remote: impl Fn(&'p Stage) -> Vec<H>) -> Self {
        let cost = |stage: &'p Stage| stage_cost(room, plan, stage, &remote(stage));
        let (stages, waits) = plan.stages.iter().map(cost).unzip();
        Self { stages, waits, hops: hops(room, plan) }
    }

    /// The whole prediction.
    pub fn predicted(mut self, room: &Room<'_>) -> Prediction {
        let mut known = Waits::default();
        for (cost, waits) in self.stages.iter_mut().zip(&self.waits) {
            for (trip, calls) in cost.experts.iter_mut().zip(waits) {
                trip.wait_millis = known.millis(calls);
            }
        }
        with_pauses(room, Prediction::new(self.stages, self.hops))
    }

    /// A token takes no less than this, milliseconds: in a fraction of the time.
    pub fn at_least(&self) -> f64 {
        // Pauses only add to it.
        let waits: f64 = self.waits.iter().flatten().map(|calls| expected_max_at_least(calls)).sum();
        let others: f64 = self.stages.iter().map(StageCost::millis).chain(self.hops.iter().map(HopCost::millis)).sum();
        // Sums in another order round differently.
        (others + waits) * (1.0 - TOLERANCE)
    }
}

/// Integrals that were computed already: blocks are often alike.
#[derive(Default)]
struct Waits<'a> {
    known: Vec<(&'a [Call], f64)>,
}

impl<'a> Waits<'a> {
    fn millis(&mut self, calls: &'a [Call]) -> f64 {
        if let Some((_, millis)) = self.known.iter().find(|(known, _)| *known == calls) {
            return *millis;
        }
        let millis = expected_max(calls);
        self.known.push((calls, millis));
        millis
    }
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

/// What a stage costs without the waits for experts elsewhere, and what it waits for.
fn stage_cost<H: BlockHolders>(
    room: &Room<'_>,
    plan: &Plan,
    stage: &Stage,
    remote: &[H],
) -> (StageCost, Vec<Vec<Call>>) {
    let Some(device) = room.device(stage.peer) else {
        let (session_millis, compute_millis, experts) = (0.0, 0.0, Vec::new());
        let (stage, peer, loading_millis) = (stage.id, stage.peer, 0.0);
        return (StageCost { stage, peer, session_millis, compute_millis, loading_millis, experts }, Vec::new());
    };
    let (layers, misses) = (stage_layers(room, plan, stage), misses(room, plan, stage));
    let trips = remote.iter().filter_map(|block| trip(room, device, block, &misses));
    let (experts, waits) = trips.unzip();
    let cost = StageCost {
        stage: stage.id,
        peer: stage.peer,
        session_millis: millis(device.session_millis),
        compute_millis: compute_millis(room, device, layers, |block| {
            remote.iter().any(|remote| remote.block() == block)
        }),
        loading_millis: loading_millis(room, device, stage),
        experts,
    };
    (cost, waits)
}

/// Milliseconds for a stage's own layers. Own experts of a block that has others elsewhere are computed while those are waited
/// for, and counted there.
fn compute_millis(
    room: &Room<'_>,
    device: &Device,
    layers: LayerRange,
    has_experts_elsewhere: impl Fn(BlockIndex) -> bool,
) -> f64 {
    let elsewhere = |block: BlockIndex| {
        let routing = Routing::of(room, block).filter(|_| has_experts_elsewhere(block))?;
        Some(-(f64::from(routing.used) * routing.expert.0 as f64))
    };
    let more: f64 = room.layers.blocks(layers).iter().filter_map(elsewhere).sum();
    (room.layers.decode(layers) + more).max(0.0) / speed(device.speed.decode)
}
