//! What a token costs: bytes over bandwidth, synchronizations, hops.

use potluck_plan::{BlockRange, Bytes, Plan};

use crate::{Device, Request};

/// Sizes of block ranges in constant time, by prefix sums (dynamic-partitioning.txt 5.3).
pub struct CostModel<'a> {
    request: &'a Request<'a>,
    weights: Vec<u64>,
    active: Vec<u64>,
    state: Vec<u64>,
}

/// What a stage computes besides its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// It embeds.
    pub first: bool,
    /// It computes the head.
    pub last: bool,
}

impl<'a> CostModel<'a> {
    /// Prefix sums over the model's blocks.
    pub fn new(request: &'a Request<'a>) -> Self {
        let prefix = |size: fn(&potluck_plan::BlockShape) -> u64| {
            let mut sum = 0u64;
            let sums = request.shape.blocks.iter().map(|block| {
                sum = sum.saturating_add(size(block));
                sum
            });
            std::iter::once(0).chain(sums).collect::<Vec<_>>()
        };
        Self {
            request,
            weights: prefix(|block| block.weights().0),
            active: prefix(|block| block.active_weights().0),
            state: prefix(|block| block.state_per_position.0),
        }
    }

    /// Weight bytes of a stage, without scratch and state.
    pub(crate) fn weight_bytes(&self, blocks: BlockRange, ends: Ends) -> Bytes {
        let shape = self.request.shape;
        let range = Bytes(self.weights[usize::from(blocks.end)] - self.weights[usize::from(blocks.start)]);
        let embedding = if ends.first { shape.embedding } else { Bytes::ZERO };
        let shared_table = ends.first && shape.tied_head;
        let head = if ends.last && !shared_table { shape.head } else { Bytes::ZERO };
        [range, embedding, head].into_iter().sum()
    }

    /// All bytes a stage takes on its device.
    pub(crate) fn stage_bytes(&self, blocks: BlockRange, ends: Ends) -> Bytes {
        let state = self.state[usize::from(blocks.end)] - self.state[usize::from(blocks.start)];
        let state = Bytes(state.saturating_mul(u64::from(self.request.context)));
        [self.weight_bytes(blocks, ends), state, self.request.overhead].into_iter().sum()
    }

    /// Milliseconds one token spends in a stage's engine: its bytes once over the device's bandwidth, and one
    /// synchronization. The embedding table is read at one row only.
    pub(crate) fn stage_millis(&self, device: &Device, blocks: BlockRange, ends: Ends) -> f64 {
        let active = self.active[usize::from(blocks.end)] - self.active[usize::from(blocks.start)];
        let head = if ends.last { self.request.shape.head.0 } else { 0 };
        (active + head) as f64 / device.bandwidth.max(1.0) * 1e3 + device.sync_millis
    }

    /// Milliseconds of one message between two devices through the relay: half a round trip on each leg.
    pub(crate) fn hop_millis(&self, from: Option<&Device>, to: Option<&Device>) -> f64 {
        let leg = |device: Option<&Device>| device.map_or(0.0, |device| device.latency_millis);
        leg(from) + leg(to)
    }
}

/// Milliseconds for one decoded token under a plan, and those of each stage's engine.
pub fn token_millis(request: &Request<'_>, plan: &Plan) -> (f64, Vec<f64>) {
    let model = CostModel::new(request);
    let device = |peer| request.devices.iter().find(|device| device.peer == peer);
    let mut stages = Vec::new();
    let mut total = 0.0;
    let mut at = request.coordinator;
    for stage in &plan.stages {
        let ends = Ends { first: plan.embeds(stage.id), last: plan.has_head(stage.id) };
        let millis = device(stage.peer).map_or(0.0, |device| model.stage_millis(device, stage.blocks, ends));
        if stage.peer != at {
            total += model.hop_millis(device(at), device(stage.peer));
        }
        for remote in &stage.remote {
            let trips = remote.holders.iter().flatten().filter_map(|holder| match holder {
                potluck_plan::Holder::Peer(peer) => Some(2.0 * model.hop_millis(device(stage.peer), device(*peer))),
                potluck_plan::Holder::Own => None,
            });
            total += trips.fold(0.0, f64::max) + device(stage.peer).map_or(0.0, |device| device.sync_millis);
        }
        total += millis;
        stages.push(millis);
        at = stage.peer;
    }
    if at != request.coordinator {
        total += model.hop_millis(device(at), device(request.coordinator));
    }
    (total, stages)
}
