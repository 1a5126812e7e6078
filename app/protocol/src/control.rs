//! Frames about membership, plans and prompts.

use potluck_plan::{BlockRange, Bytes, KvCacheType, ModelId, ModelShape, PeerId, Plan, PlanEpoch, WeightUnit};
use serde::{Deserialize, Serialize};

use crate::{DeviceKind, LoadReport, Message, RequestId};

/// Random at each start of a node: a peer that comes back with another session has lost its state and its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session(pub u64);

/// Who a peer is. Sent to everyone on entering, to a newcomer as answer, and again when something changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// This start of the node.
    pub session: Session,
    /// Build of page and node.
    pub build: String,
    /// Kernels of two peers with one class compute alike.
    pub kernel_class: u32,
    /// What others see.
    pub name: String,
    /// Icon.
    pub kind: DeviceKind,
    /// What the adapter tells.
    pub adapter: String,
    /// The room's key, if the peer came by its link.
    pub key: Option<String>,
    /// The peer opened the room.
    pub coordinator: bool,
    /// What it lends.
    pub contribution: Option<Contribution>,
    /// The newest plan it has heard of; a returning coordinator continues above it.
    pub epoch: PlanEpoch,
    /// Its tab is hidden.
    pub hidden: bool,
}

/// What a peer lends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Bytes of GPU memory.
    pub budget: Bytes,
    /// Most bytes of a buffer that a kernel of its GPU sees at once: a block's keys, or its values, are one buffer.
    pub binding: Bytes,
    /// Bytes a second its kernels stream, measured.
    pub bandwidth: f64,
    /// Milliseconds of a submit with its readback, measured.
    pub sync_millis: f64,
}

/// Where peers find a model's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// On the host's disk; pieces come as frames. From page to node, the `File` object travels beside the message.
    File {
        /// The file's name.
        name: String,
        /// Its size.
        bytes: Bytes,
    },
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

/// The coordinator's order to get ready for a plan. An active plan goes on meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The plan; its epoch names it.
    pub plan: Plan,
    /// The model.
    pub model: ModelCard,
    /// Its sizes.
    pub shape: ModelShape,
    /// Bytes the plan sets aside on each device besides weights and state.
    pub overhead: Bytes,
    /// The plan that goes on meanwhile: its units stay, they fit beside the new ones. Without one, what the new plan does not
    /// need can go.
    pub keep: Option<PlanEpoch>,
}

/// The coordinator's order to hold units beside whatever plan there is, for the loss of another device
/// (dynamic-partitioning.txt 5.2.5). Answered like [`Prepare`]; loading for a plan goes first, and a plan that needs the
/// memory gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandbyOrder {
    /// Names the order, numbered among the plans. A newer order takes the place of an older one.
    pub epoch: PlanEpoch,
    /// The model.
    pub model: ModelCard,
    /// Its sizes.
    pub shape: ModelShape,
    /// Bytes set aside besides weights and state.
    pub overhead: Bytes,
    /// Positions of state to reserve for the units' blocks.
    pub context: u32,
    /// How keys and values are stored.
    pub kv_cache: KvCacheType,
    /// What to hold besides the plans' units; none: nothing any more.
    pub units: Vec<WeightUnit>,
    /// No plan runs, because the model does not fit: these units are the part that the device will most probably get
    /// (dynamic-partitioning.txt 4.4.1). The plan that comes takes the order's place, with a part for the device or without.
    pub in_advance: bool,
}

/// Times of two ranges of a model's blocks on one device, for the planner to tell overhead and speed apart
/// (dynamic-partitioning.txt 4.3.2). Milliseconds from submit to result, run by run, the first ones included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationRuns {
    /// The short range.
    pub short: BlockRange,
    /// The long range; the short one is its first part.
    pub long: BlockRange,
    /// One decoded row through the short range.
    pub decode_short: Vec<f64>,
    /// One decoded row through the long range.
    pub decode_long: Vec<f64>,
    /// One decoded row through the short range and the head; empty if the head has no room on the device.
    pub decode_lm_head: Vec<f64>,
    /// One decoded row through the long range after so many milliseconds without work, again and again: a GPU that waits
    /// for others lowers its clock.
    pub decode_paused: Vec<(f64, Vec<f64>)>,
    /// In between, after the pauses at [`CalibrationRuns::middle_pause`]: one decoded row through the short range.
    pub short_paused: Vec<f64>,
    /// And one through the short range and the head.
    pub lm_head_paused: Vec<f64>,
    /// What is timed after pauses takes seconds: another answer will bring it.
    pub pauses_follow: bool,
    /// Rows of a prompt's chunk.
    pub chunk: u32,
    /// Such a chunk through the short range.
    pub prefill_short: Vec<f64>,
    /// Such a chunk through the long range.
    pub prefill_long: Vec<f64>,
}

impl CalibrationRuns {
    /// Of so many pauses the one after which the short range and the head are timed as well.
    pub const fn middle_pause(pauses: usize) -> usize {
        pauses / 2
    }
}

/// Why a device could not load its part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadFault {
    /// It needs more memory than is lent: one sentence. A smaller part may do.
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

/// How a worker is; with every heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Weight bytes and state on its GPU.
    pub used: Bytes,
    /// What it is loading.
    pub loading: Option<LoadReport>,
    /// Newest plan it prepared.
    pub prepared: Option<PlanEpoch>,
    /// Its running mean of the engine's milliseconds for one decoded row.
    pub decode_millis: f64,
    /// Its tab is hidden.
    pub hidden: bool,
    /// Milliseconds of its way to others and back while it has nothing to do.
    pub round_trips: Vec<(PeerId, f64)>,
}

/// A question to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptRequest {
    /// Unique within the asking peer's session.
    pub request: RequestId,
    /// Names the conversation; state of an equal prefix is reused.
    pub conversation: String,
    /// Oldest first; the last one is answered.
    pub messages: Vec<Message>,
    /// Continue the last message's text without the chat template.
    pub raw: bool,
    /// Most tokens to write.
    pub max_tokens: u32,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// How the next token is chosen. The random number is a hash of seed and position: no sampler state can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Keep the best `k`; 0 keeps all candidates.
    pub top_k: u32,
    /// Keep the most likely tokens up to this probability.
    pub top_p: f32,
    /// Drop tokens below this share of the best one's probability.
    pub min_p: f32,
    /// Divides (or multiplies) logits of tokens seen before; 1 is off.
    pub repetition_penalty: f32,
    /// The same seed gives the same answer.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.7, top_k: 40, top_p: 0.95, min_p: 0.05, repetition_penalty: 1.0, seed: 0 }
    }
}

/// Bytes of a file on the host's disk. Asking is the credit: a peer keeps few requests open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceRequest {
    /// Comes back with the piece.
    pub id: u64,
    /// Index of the split file.
    pub file: u16,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, at most [`PieceRequest::MOST`].
    pub len: u32,
}

impl PieceRequest {
    /// Largest piece: small enough that a token's frame never waits long behind it.
    pub const MAX_LEN: u32 = 256 * 1024;
}
