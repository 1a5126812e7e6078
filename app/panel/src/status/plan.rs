//! Where the model's parts live, and what that costs.

use potluck_plan::{Ends, KvCacheType, PeerId, PlanEpoch, Sharing, StageId};
use potluck_protocol::{ExpertsView, ForecastView, HopView, LayerChecksView, PlanStatus};
use serde::{Deserialize, Serialize};

/// Where the model's parts live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// Which plan; 0 before the first.
    pub epoch: PlanEpoch,
    /// Its progress.
    pub state: PlanStatus,
    /// Stages in the order a token passes them.
    pub stages: Vec<StageReport>,
    /// Messages from device to device in the order of a token.
    pub hops: Vec<HopView>,
    /// How the KV cache is stored; none before there is a plan.
    pub cache: Option<KvCacheType>,
    /// Bytes reserved on each device with a stage besides weights and KV cache: scratch, staging, parameters.
    pub overhead: u64,
    /// Messages from device to device a token needs.
    pub network_hops: u32,
    /// Milliseconds a token in all, hops included, as the planner expects.
    pub token_ms: f64,
    /// The same as the last answer measured it, 0 before the first.
    pub measured_token_ms: f64,
    /// Forecast and measurement of the newest answer.
    pub forecast: Option<ForecastView>,
    /// How the host wants work shared.
    pub sharing: Sharing,
    /// Where the ends of the model may be, as the host has chosen.
    pub ends: Ends,
    /// What is missing while there is no plan.
    pub waiting: Option<Waiting>,
    /// One sentence on why this plan was chosen and what it costs.
    pub reason: String,
    /// What would help, a sentence each: "If one more device lends 3 GB, each token takes 40 ms less."
    pub help: Vec<String>,
    /// Who holds experts of other devices' blocks, and what that costs.
    pub experts: Option<ExpertsView>,
    /// Why experts are spread over devices or not: "Experts are not spread: with 48 round trips, a token would take 96 ms more."
    pub spreading: Option<String>,
    /// Who checks what stages compute, and what was found.
    pub checks: LayerChecksView,
}

/// What is missing for a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Bytes needed in all.
    pub needed: u64,
    /// Bytes lent in all.
    pub lent: u64,
    /// One sentence: "The model needs 5.2 GB, and the devices lend 2.0 GB. With 3.2 GB more it fits."
    pub sentence: String,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Id in the plan.
    pub id: StageId,
    /// Who runs it.
    pub peer: PeerId,
    /// First block.
    pub first_block: u16,
    /// One past the last block.
    pub end_block: u16,
    /// It embeds.
    pub embeds: bool,
    /// It computes the LM head.
    pub head: bool,
    /// Other peers that hold experts for it.
    pub expert_holders: Vec<ExpertHolding>,
    /// Weight bytes.
    pub bytes: u64,
    /// KV cache bytes, for the whole context.
    pub kv_cache_bytes: u64,
    /// Milliseconds a token as the planner expects.
    pub predicted_ms: f64,
    /// Milliseconds a token as measured, 0 before the first.
    pub measured_ms: f64,
}

/// Experts of a stage that another peer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertHolding {
    /// Who holds them.
    pub peer: PeerId,
    /// How many, counted once for each block.
    pub experts: u32,
}
