//! Frames about membership, plans and prompts.

use std::fmt;

use potluck_plan::{
    Arithmetic, BlockRange, Bytes, KvCacheType, ModelId, ModelShape, PeerId, Plan, PlanEpoch, ReasoningEffort,
    Sampling, WeightUnit,
};
use serde::{Deserialize, Serialize};

use crate::{
    DeviceKind, ExpertPhase, ExpertWaits, Hedging, HolderReport, LoadReport, LogitOptions, Message, RequestId,
    ToolOffer,
};

/// One start of a node: random. A peer that returns with another one has lost its KV cache and its GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartId(pub u64);

/// What a peer says of itself: first on every session, and again when something changes. Who it is, and whether it is
/// the host, the session has proved already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// This start of the node.
    pub start: StartId,
    /// Build of page and node.
    pub build: String,
    /// Kernels of peers with the same class give the same bits.
    pub kernel_class: u32,
    /// What others see.
    pub name: String,
    /// Icon.
    pub kind: DeviceKind,
    /// Vendor and name as the adapter reports them.
    pub adapter: String,
    /// What it contributes, if anything.
    pub contribution: Option<Contribution>,
    /// The newest plan it knows; a returning coordinator continues above it.
    pub epoch: PlanEpoch,
    /// Its tab is hidden.
    pub hidden: bool,
}

/// What a peer contributes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Memory budget, in bytes of GPU memory.
    pub budget: Bytes,
    /// Largest storage binding of its GPU, in bytes: a block's keys, or its values, are one buffer.
    pub binding: Bytes,
    /// Measured memory bandwidth of its kernels, in bytes a second.
    pub bandwidth: f64,
    /// Measured milliseconds of a submit with its readback.
    pub sync_millis: f64,
}

/// Where peers find a model's bytes. Logs show only the server of a link.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelSource {
    /// `GET /models/NAME` of the relay.
    Relay {
        /// Name in `GET /models`.
        name: String,
    },
    /// An address of a GGUF file.
    Link {
        /// Its first (or only) file.
        url: String,
    },
    /// On the host's disk; peers fetch pieces as frames. From page to node, the `File` object travels beside the message.
    File {
        /// The file's name.
        name: String,
        /// Its size.
        bytes: Bytes,
    },
}

impl ModelSource {
    /// The part that everybody in a room may know: only the server of a link. Path and query may hold a token, and only devices that
    /// fetch need them.
    #[must_use]
    pub fn shown(&self) -> Self {
        match self {
            Self::Link { url } => Self::Link { url: server_of(url).to_owned() },
            Self::Relay { .. } | Self::File { .. } => self.clone(),
        }
    }
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay { name } => f.debug_struct("Relay").field("name", name).finish(),
            Self::Link { url } => f.debug_struct("Link").field("server", &server_of(url)).finish_non_exhaustive(),
            Self::File { name, bytes } => f.debug_struct("File").field("name", name).field("bytes", bytes).finish(),
        }
    }
}

/// The server that an address names, with its port: `models.example:8443` of `https://user@models.example:8443/a.gguf?token=1`.
#[must_use]
pub fn server_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, server)| server)
}

/// A model as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// BLAKE3 root.
    pub id: ModelId,
    /// Where its bytes are.
    pub source: ModelSource,
    /// Its name.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// "Q4_K_M".
    pub quantization: String,
    /// Size of the file(s).
    pub bytes: Bytes,
    /// All parameters.
    pub parameters: u64,
    /// Parameters a token uses.
    pub active_parameters: u64,
    /// Blocks.
    pub blocks: u16,
    /// Experts a block, 0 if dense.
    pub experts: u16,
    /// Longest context the model was trained for.
    pub context: u32,
    /// Licence as the file says.
    pub licence: String,
}

/// The coordinator asks a device to prepare for a plan. An active plan keeps running meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The plan; its epoch names it.
    pub plan: Plan,
    /// The model.
    pub model: ModelCard,
    /// Its sizes.
    pub shape: ModelShape,
    /// Bytes the plan reserves on each device besides weights and KV cache.
    pub overhead: Bytes,
    /// The plan that keeps running meanwhile: its units stay and fit beside the new ones. Without one, the device may drop
    /// whatever the new plan does not need.
    pub keep: Option<PlanEpoch>,
    /// How stages ask holders of experts.
    pub hedging: Hedging,
    /// Share of holders' answers that another holder computes again.
    pub spot_checks: f64,
}

/// The coordinator asks a device to hold units besides its part of the plan, in case another device is lost
/// (dynamic-partitioning.txt 5.2.5). Answered like [`Prepare`]. Loading for a plan has priority, also on the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandbyOrder {
    /// Names the order, numbered among the plans. A newer order replaces an older one.
    pub epoch: PlanEpoch,
    /// The model.
    pub model: ModelCard,
    /// Its sizes.
    pub shape: ModelShape,
    /// Bytes reserved besides weights and KV cache.
    pub overhead: Bytes,
    /// Positions of KV cache to reserve for the units' blocks.
    pub context: u32,
    /// How the KV cache is stored.
    pub kv_cache: KvCacheType,
    /// How prompts are computed.
    pub arithmetic: Arithmetic,
    /// What to hold besides the plan's units; empty to drop everything held so far.
    pub units: Vec<WeightUnit>,
    /// No plan runs because the model does not fit yet: these units are the part that the device will most probably get
    /// (dynamic-partitioning.txt 4.4.1). The first plan replaces the order, whether or not it gives the device a part.
    pub in_advance: bool,
}

/// Times of two ranges of a model's blocks on one device, from which the planner separates overhead from speed
/// (dynamic-partitioning.txt 4.3.2). Milliseconds from submit to result, run by run, warm-up runs included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationRuns {
    /// The short range.
    pub short: BlockRange,
    /// The long range; the short one is its first part.
    pub long: BlockRange,
    /// One decoded token through the short range.
    pub decode_short: Vec<f64>,
    /// One decoded token through the long range.
    pub decode_long: Vec<f64>,
    /// One decoded token through the short range and the LM head; empty if the LM head does not fit on the device.
    pub decode_lm_head: Vec<f64>,
    /// One decoded token through the long range after a pause of the given milliseconds, several times: an idle GPU lowers
    /// its clock.
    pub decode_paused: Vec<(f64, Vec<f64>)>,
    /// The same through the short range, after the pause at [`CalibrationRuns::middle_pause`] only.
    pub short_paused: Vec<f64>,
    /// The same through the short range and the LM head.
    pub lm_head_paused: Vec<f64>,
    /// Timing after pauses takes seconds; a later message carries it.
    pub pauses_follow: bool,
    /// Tokens of a prefill chunk.
    pub chunk: u32,
    /// Such a chunk through the short range.
    pub prefill_short: Vec<f64>,
    /// Such a chunk through the long range.
    pub prefill_long: Vec<f64>,
}

impl CalibrationRuns {
    /// Index of the pause, of `pauses`, after which the short range and the LM head are timed as well.
    pub const fn middle_pause(pauses: usize) -> usize {
        pauses / 2
    }
}

/// Why a device could not load its part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadFault {
    /// The part does not fit in the memory budget: one sentence. A smaller part may fit.
    NoRoom(String),
    /// Anything else: one sentence.
    Failed(String),
}

impl LoadFault {
    /// The sentence for people.
    pub fn sentence(&self) -> &str {
        match self {
            Self::NoRoom(sentence) | Self::Failed(sentence) => sentence,
        }
    }
}

/// A worker's status, sent with every heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Bytes of weights and KV cache on its GPU.
    pub used: Bytes,
    /// What it is loading.
    pub loading: Option<LoadReport>,
    /// Newest plan it prepared.
    pub prepared: Option<PlanEpoch>,
    /// Running mean of the engine's milliseconds for one decoded token.
    pub decode_millis: f64,
    /// Its tab is hidden.
    pub hidden: bool,
    /// Round-trip milliseconds to other peers, measured while it is idle.
    pub round_trips: Vec<(PeerId, f64)>,
    /// What its stages have seen of the holders of their experts.
    pub holders: Vec<HolderReport>,
    /// What its stages have waited for them.
    pub expert_waits: ExpertWaits,
    /// How long experts took, by the number of devices that were asked for them.
    pub expert_phases: Vec<ExpertPhase>,
    /// Experts that it loads besides its part, while it works.
    pub holding: Option<LoadReport>,
}

/// A question to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptRequest {
    /// Unique within one start of the asking peer.
    pub request: RequestId,
    /// Names the conversation; the KV cache of a common prefix is reused.
    pub conversation: String,
    /// Oldest first; the last one is answered.
    pub messages: Vec<Message>,
    /// Continue the last message's text without the chat template.
    pub raw: bool,
    /// Most tokens to write.
    pub max_tokens: u32,
    /// How tokens are sampled. The penalty's window is not sent: it is the default.
    #[serde(with = "crate::prompt_sampling")]
    pub sampling: Sampling,
    /// How much the model is to think; none: as its chat template has it.
    #[serde(default)]
    pub reasoning: Option<ReasoningEffort>,
    /// The functions that the model may call.
    #[serde(default)]
    pub tools: ToolOffer,
    /// What it wants of the logits besides a token.
    #[serde(default)]
    pub logits: LogitOptions,
}

impl PromptRequest {
    /// Bytes of the texts of its messages and functions.
    pub fn bytes(&self) -> usize {
        self.messages.iter().fold(self.tools.bytes(), |sum, message| sum.saturating_add(message.bytes()))
    }
}

/// Asks for bytes of a file on the host's disk. Requests are the flow control: a peer keeps only a few open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceRequest {
    /// Comes back with the piece.
    pub id: u64,
    /// Index of the split file.
    pub file: u16,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, at most [`PieceRequest::MAX_LEN`].
    pub len: u32,
}

/// Why the host does not send bytes of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PieceFault {
    /// More is asked for at once than it sends.
    TooMuch,
    /// It keeps these bytes for itself: they are of no expert that the asker is to hold. Asking again changes nothing.
    Kept,
    /// Its file cannot be read, or has no such bytes: one sentence.
    Failed(String),
}

impl PieceRequest {
    /// Largest piece, in bytes: small enough that a token's frame never waits long behind it.
    pub const MAX_LEN: u32 = 256 * 1024;
}
