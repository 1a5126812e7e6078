//! What the planner knows of members: what they promise, what they timed, and what their stages take in use.

mod devices;
mod drift;
mod holders;
mod links;

use std::cell::LazyCell;
use std::collections::BTreeMap;

use potluck_plan::{FeedForwardShape, Millis, PeerId, Plan, PlanEpoch, RemoteExperts, Stage, StageId};
use potluck_planner::measures::{PeerMeasure, Ring, SPEEDS};
use potluck_planner::{
    Device, HopCost, Observed, ObservedStage, Room, StageCost, hops, split_network_millis, storage_rate,
};
use potluck_protocol::WorkerStatus;

pub(in crate::coordinator::planning) use self::drift::Drift;
use self::holders::Answering;
pub(in crate::coordinator::planning) use self::links::path_noise;
use super::calibrating::Profile;
use super::expert_times::ExpertTimes;
use crate::coordinator::answering::{DecodePass, PrefillPass};

/// Passes needed before a measured value counts.
const ENOUGH: usize = 3;
/// Milliseconds a hop takes in use beyond its idle link, until that is measured: devices, links and the relay sleep
/// between tokens and wake up, frames are encoded and decoded (0.3 to 0.5 between native peers).
const HOP_MILLIS: f64 = 0.4;
/// Prefill speed is measured from chunks of at least this many tokens.
const MIN_PREFILL_TOKENS: usize = 64;
/// No hop is free: of two plans that seem to cost the same the one with fewer messages wins.
const MIN_HOP_MILLIS: f64 = 0.01;
/// A device that became slower by more than this has a reason of its own: the others are not assumed to be as slow.
const MAX_SLOWDOWN: f64 = 1.3;
/// Limit on the measured spread that a better plan has to win by.
const MAX_SPREAD: f64 = 0.25;

/// Measured in use.
#[derive(Default)]
pub(in crate::coordinator::planning) struct Measures {
    peers: BTreeMap<PeerId, PeerMeasure>,
    /// Bytes a millisecond at which devices load experts on demand.
    storage: BTreeMap<PeerId, Ring<SPEEDS>>,
    /// Milliseconds that a message takes in use beyond its idle link.
    hop: Ring<SPEEDS>,
    /// Measurements of each stage for a decoded token, on one plan.
    stages: BTreeMap<StageId, StageUse>,
    /// Milliseconds that a token spends on all its messages, on the same plan.
    paths: Ring<SPEEDS>,
    /// What experts elsewhere take, on the same plan.
    experts: ExpertTimes,
    epoch: PlanEpoch,
    /// Start of the current run of tokens, and the newest of them.
    used: Option<(Millis, Millis)>,
    /// What stages reported last of their holders. All of them are in the room.
    holders: BTreeMap<(PeerId, PeerId), Answering>,
}

/// What a stage's engine took for the tokens of one pass.
#[derive(Clone, Copy)]
struct Spent {
    millis: f64,
    /// Milliseconds for which it idled before each token.
    pause: f64,
    steps: u16,
}

/// Measurements of a stage in use.
#[derive(Default)]
struct StageUse {
    /// Engine milliseconds for a decoded token.
    millis: Ring<SPEEDS>,
    /// Its device's clock had adapted to the work, or does not vary, when the last token passed.
    is_settled: bool,
}

/// After this pause, in milliseconds, a device's clock is unknown again.
const REST: f64 = 5_000.0;
/// Milliseconds of use until the clock has adapted to the work. Earlier tokens say nothing about later ones.
const SETTLING: f64 = 2_500.0;
/// A device that slows down by this factor after pauses has a varying clock.
const VARYING: f64 = 1.2;

impl Measures {
    /// A device was timed: what it took before was compared with another overhead.
    pub fn recalibrated(&mut self, peer: PeerId) {
        self.peers.remove(&peer);
    }

    /// Measured engine milliseconds of a stage on this plan.
    pub fn stage_millis(&self, epoch: PlanEpoch, stage: StageId) -> Option<f64> {
        self.stages.get(&stage).filter(|_| self.epoch == epoch)?.millis.median()
    }

    /// Milliseconds of each message on this plan, 0 before the first token. Only their sum is measured, so each
    /// message gets its predicted time and an equal share of the rest.
    pub fn hop_millis_of(&self, epoch: PlanEpoch, hops: &[HopCost]) -> Vec<f64> {
        match self.paths.median().filter(|_| self.epoch == epoch) {
            Some(all) => split_network_millis(hops, all),
            None => vec![0.0; hops.len()],
        }
    }

    /// What tokens of a plan took so far, once enough have passed.
    pub fn seen(&self, plan: &Plan) -> Option<Observed> {
        if self.epoch != plan.epoch {
            return None;
        }
        let of = |stage: &Stage| {
            let used = self.stages.get(&stage.id).filter(|used| used.millis.len() >= ENOUGH)?;
            Some(ObservedStage { millis: used.millis.median()?, is_settled: used.is_settled })
        };
        let stages = plan.stages.iter().map(of).collect::<Option<Vec<_>>>()?;
        let known = Observed { stages, network_millis: self.paths.median().unwrap_or(0.0), experts_millis: None };
        let has_experts = plan.stages.iter().any(|stage| !stage.remote.is_empty());
        // Experts take what is left of a token.
        let left = |token: f64| (token - known.token_millis()).max(0.0);
        let experts_millis = self.experts.token_millis().filter(|_| has_experts).map(left);
        Some(Observed { experts_millis, ..known })
    }

    /// A decoded token passed all stages alone.
    pub fn learn(&mut self, room: &Room<'_>, plan: &Plan, pass: &DecodePass, now: Millis) {
        let settles = self.settles(pass, now);
        if pass.stage_millis.len() != plan.stages.len() {
            return;
        }
        if self.epoch != plan.epoch {
            self.epoch = plan.epoch;
            self.stages.clear();
            self.paths = Ring::default();
            self.experts = ExpertTimes::default();
        }
        let token_millis = pass.millis / f64::from(pass.steps);
        self.experts.passed(token_millis);
        // It takes long, and is needed only for experts on demand, and until the stages have reported.
        let prediction = LazyCell::new(|| potluck_planner::predict(room, plan));
        // Only the sum of messages and experts is measured by tokens.
        let predicted = || prediction.stages.iter().map(StageCost::experts_millis).collect();
        let waits: Vec<f64> = self.experts.reported_millis(plan).unwrap_or_else(predicted);
        for (index, stage) in plan.stages.iter().enumerate() {
            // The planner adds the cost of pauses, so it is taken out here. It counts no wait for a stage's own experts.
            let pause = token_millis - pass.stage_millis[index] / f64::from(pass.steps) - waits[index];
            let spent = Spent { millis: pass.stage_millis[index], pause, steps: pass.steps };
            if stage.pool.is_some() {
                self.learn_storage(room, stage, &prediction.stages[index], &spent);
            }
            self.learn_stage((room, plan), stage, spent, settles);
        }
        self.learn_messages(plan, &hops(room, plan), pass, waits.iter().sum());
    }

    /// True in the first seconds after a pause, while clocks adapt.
    fn settles(&mut self, pass: &DecodePass, now: Millis) -> bool {
        let since = self.used.filter(|(_, last)| now.0 - pass.millis - last.0 < REST).map_or(now, |(since, _)| since);
        self.used = Some((since, now));
        now.0 - since.0 < SETTLING
    }

    /// How fast a stage loads experts on demand.
    fn learn_storage(&mut self, room: &Room<'_>, stage: &Stage, predicted: &StageCost, spent: &Spent) {
        if let Some(rate) = storage_rate(room, stage, predicted, spent.millis / f64::from(spent.steps)) {
            self.storage.entry(stage.peer).or_default().push(rate);
        }
    }

    /// What a token took on a stage.
    fn learn_stage(&mut self, (room, plan): (&Room<'_>, &Plan), stage: &Stage, spent: Spent, settles: bool) {
        let cost = own_cost(room, plan, stage) * f64::from(spent.steps);
        let Some(device) = room.device(stage.peer).filter(|_| cost > 0.0) else { return };
        let (millis, factor) = (spent.millis / f64::from(spent.steps), device.pause_factor(spent.pause));
        let used = self.stages.entry(stage.id).or_default();
        used.is_settled = !settles || factor < VARYING;
        used.millis.push(millis);
        // With experts on demand, time says as much of the storage as of the GPU.
        let is_computing = stage.pool.is_none();
        if is_computing && (!settles || device.pause_factor(f64::INFINITY) < VARYING) {
            // A router's choice is read back before its experts are asked.
            let readbacks = stage.remote.len() * usize::from(spent.steps);
            let measure = self.peers.entry(stage.peer).or_insert_with(|| PeerMeasure::new(device));
            measure.decoded(cost, readbacks, spent.millis / factor);
        }
    }

    /// What engines and experts leave of a token's time. `waited`: milliseconds of a token for experts.
    fn learn_messages(&mut self, plan: &Plan, hops: &[HopCost], pass: &DecodePass, waited: f64) {
        if hops.is_empty() {
            return;
        }
        let on_the_way = pass.millis - pass.stage_millis.iter().sum::<f64>() - waited * f64::from(pass.steps);
        self.paths.push(on_the_way.max(MIN_HOP_MILLIS * hops.len() as f64));
        if plan.stages.iter().all(|stage| stage.remote.is_empty()) {
            let expected: f64 = hops.iter().map(HopCost::millis).sum();
            self.hop.push_difference(self.hop_millis() + (on_the_way - expected) / hops.len() as f64);
        }
    }

    /// A stage reports how long it waited for experts elsewhere.
    pub fn learn_waits(&mut self, plan: &Plan, stage: PeerId, status: &WorkerStatus) {
        if self.epoch == plan.epoch {
            self.experts.reported(stage, status);
        }
    }

    /// The rate at which a device loads experts on demand: measured, or the rate of its download if its cache is empty.
    fn storage(&self, peer: PeerId, download: Option<f64>) -> Option<f64> {
        let measured = self.storage.get(&peer).filter(|rates| rates.len() >= ENOUGH).and_then(Ring::median);
        measured.or(download)
    }

    /// A prompt chunk passed all stages. Short chunks say little: weights are read for them as for long ones.
    pub fn learn_prefill(&mut self, room: &Room<'_>, plan: &Plan, pass: &PrefillPass) {
        let measurable = plan.stages.iter().all(|stage| stage.remote.is_empty() && stage.pool.is_none());
        if pass.tokens < MIN_PREFILL_TOKENS || pass.stage_millis.len() != plan.stages.len() || !measurable {
            return;
        }
        for (stage, millis) in plan.stages.iter().zip(&pass.stage_millis) {
            if let Some(device) = room.device(stage.peer) {
                let fresh = || PeerMeasure::new(device);
                let cost = room.layers.stage_prefill(plan, stage) * pass.tokens as f64;
                self.peers.entry(stage.peer).or_insert_with(fresh).prefilled(cost, *millis);
            }
        }
    }

    /// Milliseconds that a hop takes in use beyond its idle link: event queues, frames encoded and decoded. May be
    /// negative.
    fn hop_millis(&self) -> f64 {
        self.hop.median().filter(|_| self.hop.len() >= ENOUGH).unwrap_or(HOP_MILLIS)
    }

    /// Relative spread of single measurements of these devices: what a better plan must win by, in addition.
    pub fn spread(&self, peers: impl IntoIterator<Item = PeerId>) -> f64 {
        let spreads = peers.into_iter().filter_map(|peer| self.peers.get(&peer)?.spread());
        spreads.fold(0.0, f64::max).min(MAX_SPREAD)
    }

    /// How fast devices usually are in use, relative to when they were timed.
    fn in_use(&self, devices: &[(Device, Option<Profile>)]) -> f64 {
        let ratio = |(device, profile): &(Device, Option<Profile>)| {
            let measure = self.peers.get(&device.peer).filter(|measure| measure.is_measured())?;
            Some(measure.speed().decode / profile.as_ref()?.speed.decode)
        };
        let usual = middle(devices.iter().filter_map(ratio).collect()).unwrap_or(1.0);
        if usual.is_finite() { usual.clamp(1.0 / MAX_SLOWDOWN, MAX_SLOWDOWN) } else { 1.0 }
    }
}

/// Bytes of weights that a token passes in a stage's own work: without the experts of blocks that have some elsewhere. Own
/// ones among them are computed while others are waited for.
fn own_cost(room: &Room<'_>, plan: &Plan, stage: &Stage) -> f64 {
    let experts = |remote: &RemoteExperts| match room
        .shape
        .blocks
        .get(usize::from(remote.block.0))
        .map(|block| &block.feed_forward)
    {
        Some(FeedForwardShape::Experts { expert, used, .. }) => expert.0 as f64 * f64::from(*used),
        _ => 0.0,
    };
    let apart: f64 = stage.remote.iter().map(experts).sum();
    (room.layers.stage_decode(plan, stage) - apart).max(0.0)
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests;
