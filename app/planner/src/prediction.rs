//! Predicted time of a token, part by part, so that each part can be compared with a measurement.

use potluck_plan::{BlockIndex, PeerId, StageId};

/// One message from peer to peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HopCost {
    /// Who sends.
    pub from: PeerId,
    /// Who receives.
    pub to: PeerId,
    /// Milliseconds of latency.
    pub latency_millis: f64,
    /// Milliseconds of transfer.
    pub transfer_millis: f64,
}

/// The round trip for one block's experts on other peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertTrip {
    /// The block.
    pub block: BlockIndex,
    /// How many peers may be called.
    pub holders: usize,
    /// How many of them a token calls, on average, copies not counted.
    pub others_asked: f64,
    /// How many holders every expert has at least, the stage itself included.
    pub replicas: usize,
    /// How many holders are asked for an answer at most: where answers vary, a second one after a delay.
    pub asked: usize,
    /// Milliseconds of the additional submit and readback of the router's choice.
    pub sync_millis: f64,
    /// Milliseconds until the last output is there, averaged over the router's choices and over what answers take. The stage's
    /// own experts of the block are computed meanwhile.
    pub wait_millis: f64,
    /// Bytes of all calls and answers of the token, on average.
    pub bytes: f64,
}

/// One stage's part of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct StageCost {
    /// The stage.
    pub stage: StageId,
    /// Who runs it.
    pub peer: PeerId,
    /// Milliseconds besides its layers: submit, copies, one readback.
    pub session_millis: f64,
    /// Milliseconds for its layers, without experts of blocks that have some elsewhere.
    pub compute_millis: f64,
    /// Milliseconds to load experts on demand, with a readback for each of their blocks.
    pub loading_millis: f64,
    /// Round trips for experts elsewhere.
    pub experts: Vec<ExpertTrip>,
}

/// The largest part of a token's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bottleneck {
    /// A stage's layers.
    Compute(StageId),
    /// A stage's submit and readback.
    Session(StageId),
    /// A stage waits for experts elsewhere.
    Experts(StageId),
    /// A stage loads experts on demand.
    Loading(StageId),
    /// A message.
    Hop {
        /// Who sends.
        from: PeerId,
        /// Who receives.
        to: PeerId,
    },
}

/// A token's time under a plan, with its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Milliseconds for one decoded token, seen from the coordinator: all parts together.
    pub token_millis: f64,
    /// One for each stage.
    pub stages: Vec<StageCost>,
    /// Messages in order, experts not counted; none inside one peer.
    pub hops: Vec<HopCost>,
}

impl HopCost {
    /// Milliseconds in all.
    pub fn millis(&self) -> f64 {
        self.latency_millis + self.transfer_millis
    }
}

impl StageCost {
    /// Milliseconds of the stage's own engine, as [`potluck_plan::Computed::millis`] measures it.
    pub fn engine_millis(&self) -> f64 {
        let own = self.session_millis + self.compute_millis + self.loading_millis;
        own + self.experts.iter().map(|trip| trip.sync_millis).sum::<f64>()
    }

    /// Milliseconds from a token's arrival to its departure.
    pub fn millis(&self) -> f64 {
        self.engine_millis() + self.experts_millis()
    }

    /// Milliseconds that the stage waits for experts elsewhere.
    pub fn experts_millis(&self) -> f64 {
        self.experts.iter().map(|trip| trip.wait_millis).sum()
    }
}

impl Prediction {
    pub(crate) fn new(stages: Vec<StageCost>, hops: Vec<HopCost>) -> Self {
        let stage_millis: f64 = stages.iter().map(StageCost::millis).sum();
        let hop_millis: f64 = hops.iter().map(HopCost::millis).sum();
        Self { token_millis: stage_millis + hop_millis, stages, hops }
    }

    /// Milliseconds of each stage's engine.
    pub fn stage_millis(&self) -> Vec<f64> {
        self.stages.iter().map(StageCost::engine_millis).collect()
    }

    /// The largest part, and its milliseconds.
    pub fn bottleneck(&self) -> Option<(Bottleneck, f64)> {
        let stages = self.stages.iter().flat_map(|cost| {
            [
                (Bottleneck::Compute(cost.stage), cost.compute_millis),
                (Bottleneck::Session(cost.stage), cost.session_millis),
                (Bottleneck::Experts(cost.stage), cost.experts_millis()),
                (Bottleneck::Loading(cost.stage), cost.loading_millis),
            ]
        });
        let hops = self.hops.iter().map(|hop| (Bottleneck::Hop { from: hop.from, to: hop.to }, hop.millis()));
        stages.chain(hops).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
