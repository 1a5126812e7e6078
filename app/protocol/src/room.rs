//! The room as the coordinator broadcasts it.

use potluck_plan::{Bytes, DeviceId, Ends, Hedging, PeerId, Plan, Sharing, WireType};
use serde::{Deserialize, Serialize};

use crate::{ExpertPhase, ModelCard, Work};

/// Icon of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceKind {
    /// Desktop or laptop.
    #[default]
    Computer,
    /// Phone.
    Phone,
    /// Tablet.
    Tablet,
    /// A native peer without a browser.
    Native,
}

/// What a peer does while it loads. The order is that of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPhase {
    /// Looking at the file's header and the cache.
    Find,
    /// Fetching what is not cached.
    Download,
    /// Comparing hashes.
    Check,
    /// To the GPU.
    Upload,
    /// Compiling pipelines.
    Kernels,
    /// Comparing them with the CPU.
    SelfTest,
    /// All there.
    Ready,
}

impl LoadPhase {
    /// Every phase, in order.
    pub const ALL: [Self; 7] =
        [Self::Find, Self::Download, Self::Check, Self::Upload, Self::Kernels, Self::SelfTest, Self::Ready];
}

/// Loading, by phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Which phase.
    pub phase: LoadPhase,
    /// Bytes done in this phase: uploaded, or arrived and waiting for their upload. While a model is looked for, all bytes that
    /// the device receives.
    pub done: Bytes,
    /// Bytes of this phase; 0 if it has none to count.
    pub total: Bytes,
    /// Bytes a second, a running mean.
    pub rate: f64,
    /// Bytes that were here already.
    pub cached: Bytes,
    /// Seconds that the model's server lets this device wait, because it has too many requests; 0 if it does not.
    pub waits: u16,
}

impl LoadReport {
    /// A phase that has just begun and has no bytes to count yet.
    #[must_use]
    pub const fn begin(phase: LoadPhase) -> Self {
        Self { phase, done: Bytes::ZERO, total: Bytes::ZERO, rate: 0.0, cached: Bytes::ZERO, waits: 0 }
    }

    /// Seconds left in this phase at the present rate; none while there is no rate, or nothing to count.
    #[must_use]
    pub fn seconds_left(&self) -> Option<f64> {
        let left = self.total.saturating_sub(self.done).0 as f64;
        (self.rate > 0.0 && self.total > Bytes::ZERO).then(|| left / self.rate)
    }
}

/// A member's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberStatus {
    /// Waits for the host to admit it.
    Asking,
    /// In the room without contributing.
    Guest,
    /// Loading its part.
    Loading,
    /// Has a part of the plan and is ready.
    Ready,
    /// Contributes, but the plan has no part for it.
    Spare,
    /// Its device failed.
    Failed,
    /// Has not answered for some seconds.
    Silent,
}

/// One member, as the coordinator sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberView {
    /// Who.
    pub peer: PeerId,
    /// What others see.
    pub name: String,
    /// Icon.
    pub kind: DeviceKind,
    /// Vendor and name as the adapter reports them.
    pub adapter: String,
    /// Opened the room.
    pub coordinator: bool,
    /// Memory budget, if it contributes.
    pub lent: Option<Bytes>,
    /// Bytes in use.
    pub used: Bytes,
    /// Its status.
    pub status: MemberStatus,
    /// Why it has no part of the plan, in one sentence, while it is a spare and the reason is known.
    pub spare: Option<String>,
    /// Which device it can replace, in one sentence.
    pub standby: Option<String>,
    /// What it is loading.
    pub loading: Option<LoadReport>,
    /// Round trip from the coordinator, milliseconds; 0 if not known.
    pub round_trip_ms: f64,
    /// Its tab is hidden.
    pub hidden: bool,
}

/// Progress of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanStatus {
    /// No plan: something is missing.
    #[default]
    Waiting,
    /// Devices load their parts.
    Preparing,
    /// The switch is under way.
    Committing,
    /// Ready to answer.
    Up,
    /// The model could not be opened, so there will be no plan.
    Failed,
}

/// A message on a token's path, from one device of the plan to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HopView {
    /// Who sends.
    pub from: PeerId,
    /// Who receives.
    pub to: PeerId,
    /// Milliseconds a token, as the planner expects.
    pub predicted_ms: f64,
    /// The same as measured, 0 before the first token: the time of all messages is split into what each was expected to take
    /// and an equal share of the rest.
    pub measured_ms: f64,
}

/// The forecast after an answer's first tokens, beside what the others took. Milliseconds a token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastView {
    /// Tokens that the forecast is based on.
    pub tokens: u32,
    /// Expected before the answer.
    pub before_ms: f64,
    /// Measured over those tokens.
    pub measured_ms: f64,
    /// Forecast for the other tokens.
    pub forecast_ms: f64,
    /// Tokens since.
    pub rest_tokens: u32,
    /// Measured over those, 0 before the first.
    pub rest_ms: f64,
}

/// The plan, with what was expected and measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanView {
    /// How far it is.
    pub status: PlanStatus,
    /// The plan, unless something is missing.
    pub plan: Option<Plan>,
    /// Weight bytes of each stage.
    pub stage_bytes: Vec<Bytes>,
    /// KV cache bytes of each stage, for the whole context.
    pub kv_cache_bytes: Vec<Bytes>,
    /// Bytes reserved on each device with a stage besides weights and KV cache.
    pub overhead: Bytes,
    /// Milliseconds a token for each stage, as the planner expects.
    pub predicted_ms: Vec<f64>,
    /// The same as measured, 0 before the first.
    pub measured_ms: Vec<f64>,
    /// Messages of a token in their order, those for experts not counted.
    pub hops: Vec<HopView>,
    /// Experts that lie on several devices, if the plan has any.
    pub experts: Option<ExpertsView>,
    /// Milliseconds a token in all, hops included, as the planner expects.
    pub token_ms: f64,
    /// The same as the last answer measured it, 0 before the first.
    pub measured_token_ms: f64,
    /// Forecast and measurement of the newest answer.
    pub forecast: Option<ForecastView>,
    /// Bytes needed in all, and lent in all, while something is missing.
    pub shortfall: Option<(Bytes, Bytes)>,
    /// Why this plan, or why none: one sentence.
    pub reason: String,
    /// What would help, a sentence each, the least memory first.
    pub help: Vec<String>,
    /// Why experts are spread over devices or not, and what that costs: one sentence, if the room could do both.
    pub spreading: Option<String>,
    /// Who checks what stages compute, and what was found.
    pub checks: LayerChecksView,
}

/// How the work of stages is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerChecksView {
    /// The host asks stages what they got and sent, and compares neighbours.
    pub asked: bool,
    /// Devices with a stage whose part the host can compute again, and does for a share of the answers.
    pub checked: Vec<PeerId>,
    /// Those of another kind than the host's device: the host does the same, but what differs convicts nobody.
    pub unlike: Vec<PeerId>,
    /// Answers whose stages have all said the same of what went between them.
    pub compared: u32,
    /// Stages' parts of answers that the host has computed again.
    pub repeated: u32,
    /// Of these, parts whose numbers were the same bit by bit.
    pub equal: u32,
    /// The first device says that it sent what the second one says that it did not get: one of them is wrong.
    pub differ: Vec<(PeerId, PeerId)>,
    /// Devices of another kind whose numbers were further from the host's than the tolerance.
    pub apart: Vec<PeerId>,
    /// Devices that did not show their work when they were asked.
    pub withheld: Vec<PeerId>,
}

/// How pooled experts are held and asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpertsView {
    /// Experts that do not (only) lie with their block's stage.
    pub pooled: u32,
    /// The fewest holders that any of them has.
    pub fewest_holders: u32,
    /// The mean number of holders.
    pub mean_holders: f64,
    /// Holders that each of them should have.
    pub wanted_holders: u32,
    /// Experts that have fewer.
    pub short: u32,
    /// How they are asked.
    pub hedging: Hedging,
    /// Number format of vectors to and from them.
    pub wire: WireType,
    /// Devices that hold some of them for others, or load some.
    pub holders: Vec<HolderView>,
    /// Calls that are not answered yet.
    pub open_calls: u32,
    /// Copies of calls that were sent, and those of them that were answered first.
    pub hedges: u32,
    /// See [`ExpertsView::hedges`].
    pub hedges_won: u32,
    /// Milliseconds of a call of decoded tokens, the mean of the holders' medians; 0 before the first.
    pub round_trip_ms: f64,
    /// Round trips of a token, as measured on average; 0 before the first.
    pub trips: f64,
    /// Milliseconds that a token waited for nothing else, on average.
    pub trips_ms: f64,
    /// Of these, milliseconds in which the engine computed whose answer came last.
    pub trips_engine_ms: f64,
    /// Milliseconds that a token takes on the engines that ask.
    pub own_ms: f64,
    /// Bytes of vectors that are sent to holders and back for a token.
    pub token_bytes: f64,
    /// How long a block's experts took, by the number of devices that were asked for them.
    pub phases: Vec<ExpertPhase>,
}

/// A device that holds experts for stages elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HolderView {
    /// Which device.
    pub peer: PeerId,
    /// Experts that it holds, counted once for each block.
    pub experts: u32,
    /// Their bytes.
    pub bytes: Bytes,
    /// Calls that it has answered.
    pub answers: u32,
    /// Calls that it has not answered yet.
    pub open: u32,
    /// Copies of calls that it was sent.
    pub hedges: u32,
    /// Of these, calls that it answered first.
    pub hedges_won: u32,
    /// Calls for which somebody else was asked because it took too long.
    pub timeouts: u32,
    /// It is asked last: several times in a row it did not answer, or refused.
    pub is_unhealthy: bool,
    /// Median milliseconds of a call of decoded tokens; 0 before the first.
    pub median_ms: f64,
    /// The 95th percentile of these milliseconds.
    pub slow_ms: f64,
    /// Experts that it is told to load besides.
    pub ordered: u32,
    /// How far it is with them, once it has begun.
    pub loading: Option<LoadReport>,
}

/// What a device has computed for the room since it was opened, as the host counted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreditView {
    /// The device's key.
    pub device: DeviceId,
    /// Its tabs that are in the room.
    pub peers: Vec<PeerId>,
    /// Its name.
    pub name: String,
    /// What it has computed.
    pub work: Work,
}

/// The room as the coordinator sees it; broadcast on change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomView {
    /// The coordinator.
    pub host: PeerId,
    /// The model.
    pub model: Option<ModelCard>,
    /// Positions of context, all conversations together.
    pub context: u32,
    /// How work is shared between devices.
    pub sharing: Sharing,
    /// Where the ends of the model may be, as the host has chosen.
    pub ends: Ends,
    /// The plan.
    pub plan: PlanView,
    /// Everyone, the host first.
    pub members: Vec<MemberView>,
    /// Last measured tokens a second.
    pub tokens_per_second: f64,
    /// Tokens written since the host opened the room, as of the last second.
    pub tokens: u64,
    /// What devices have computed since then, those that left included.
    pub credits: Vec<CreditView>,
    /// Who hosts if the host is lost.
    pub deputy: Option<PeerId>,
}
