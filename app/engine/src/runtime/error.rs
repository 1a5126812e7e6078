//! Errors. Each message is one sentence that a person can act on.

use potluck_gguf::TensorType;
use potluck_model::TensorRole;
use potluck_plan::{BlockIndex, Bytes, ConversationId, ExpertId, WeightUnit};

use crate::runtime::slots::SlotError;

/// Why no GPU could be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// The browser has no WebGPU, or the page is not in a secure context.
    #[error("There is no WebGPU here: use a current browser and open the page over HTTPS or on localhost.")]
    NoWebGpu,
    /// No adapter matches the request.
    #[error("No GPU adapter was found: check that a graphics driver is installed and that WebGPU is not blocked.")]
    NoAdapter,
    /// No adapter has the name that was asked for.
    #[error("No GPU adapter is called \"{wanted}\". This device has {}.", found.join(" and "))]
    NoSuchAdapter {
        /// The part of a name that was asked for.
        wanted: String,
        /// The names of those that there are; at least one.
        found: Vec<String>,
    },
    /// The adapter refused to create a device.
    #[error("The GPU refused to open: {0}")]
    Device(String),
    /// Matrix units are asked for, which the adapter does not offer as the kernels need them.
    #[error("This GPU or its driver has no matrix units that Potluck can use: compute prompts without them.")]
    NoMatrixUnits,
    /// The adapter lacks something that every kernel needs.
    #[error("This GPU cannot run the kernels: it offers {available} {what}, {needed} are needed.")]
    TooSmall {
        /// Which limit.
        what: &'static str,
        /// What the adapter offers.
        available: u64,
        /// What is needed.
        needed: u64,
    },
}

/// Why weights and KV cache cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The units exceed the budget that the owner set.
    #[error("This share needs {needed} of GPU memory, {budget} are set: take fewer blocks or a shorter context.")]
    TooLarge {
        /// Bytes needed.
        needed: Bytes,
        /// Bytes allowed.
        budget: Bytes,
    },
    /// A single item does not fit into one buffer.
    #[error("{what} needs {needed} in one piece, this GPU binds {limit} at most.")]
    BufferLimit {
        /// Which item.
        what: String,
        /// Bytes needed.
        needed: Bytes,
        /// Bytes allowed.
        limit: Bytes,
    },
    /// A weight type that no kernel supports.
    #[error("{role:?} of {unit:?} is stored as {kind:?}, which no kernel reads.")]
    UnsupportedType {
        /// The tensor's unit.
        unit: WeightUnit,
        /// Which tensor.
        role: TensorRole,
        /// Its weight type.
        kind: TensorType,
    },
    /// A shape that no kernel supports.
    #[error("{0}")]
    UnsupportedShape(String),
    /// A tensor that contradicts the model's description.
    #[error("{role:?} of {unit:?} has {rows} × {cols} values in {bytes} bytes, which does not fit the model.")]
    BadTensor {
        /// The tensor's unit.
        unit: WeightUnit,
        /// Which tensor.
        role: TensorRole,
        /// Its rows.
        rows: u32,
        /// Values per row.
        cols: u32,
        /// Its bytes.
        bytes: u64,
    },
    /// A unit that lacks a tensor or does not exist.
    #[error("The model has no {role:?} for {unit:?}.")]
    MissingTensor {
        /// The unit.
        unit: WeightUnit,
        /// The missing tensor.
        role: TensorRole,
    },
    /// The model has no such unit.
    #[error("The model has no weight unit {0:?}.")]
    UnknownUnit(WeightUnit),
    /// A unit that was named beside the pool which contains it.
    #[error("{0:?} lies in a pool of slots: load it there instead of reserving it.")]
    Pooled(WeightUnit),
    /// A block without experts that should be pooled.
    #[error("Block {0:?} has no experts for a pool of slots.")]
    NoExperts(BlockIndex),
    /// Fewer slots than kinds of experts.
    #[error("The pool has {slots} slots, {needed} are needed: one for each kind of expert.")]
    TooFewSlots {
        /// Slots given.
        slots: u32,
        /// Slots needed.
        needed: u32,
    },
}

/// Why the engine rejected a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// The work needs weights that are not, or not completely, resident.
    #[error("The weights of {0:?} are not on this GPU.")]
    NotResident(WeightUnit),
    /// The GPU has other bytes than were uploaded.
    #[error("This GPU has other weights of {0:?} than were sent to it.")]
    NotKept(WeightUnit, usize),
    /// The unit was never reserved with `Engine::reserve`.
    #[error("{0:?} is not held here.")]
    NotHeld(WeightUnit),
    /// A block outside the model.
    #[error("The model has no block {0:?}.")]
    NoSuchBlock(BlockIndex),
    /// A block without a router.
    #[error("Block {0:?} has no experts.")]
    NoExperts(BlockIndex),
    /// A route names an expert that the block does not have, or more experts than a token uses.
    #[error("A route of block {block:?} is wrong: {reason}.")]
    BadRoute {
        /// The block.
        block: BlockIndex,
        /// What is wrong.
        reason: &'static str,
    },
    /// A route names an expert that is not held here.
    #[error("Expert {1:?} of block {0:?} is not on this GPU.")]
    ExpertNotHeld(BlockIndex, ExpertId),
    /// A slot of the pool was not given or freed.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// The page pool is exhausted.
    #[error(
        "The conversations need {needed} pages of context, {free} are free: forget a conversation or reserve more."
    )]
    OutOfKvCache {
        /// Pages needed.
        needed: u32,
        /// Pages free.
        free: u32,
    },
    /// More batch tokens than the engine planned for.
    #[error("{rows} rows were asked for at once, {max} is the most.")]
    TooManyRows {
        /// Batch tokens requested.
        rows: usize,
        /// The maximum.
        max: usize,
    },
    /// Work without batch tokens.
    #[error("The work has no rows.")]
    NoRows,
    /// A hidden vector, token list or route list has the wrong length.
    #[error("The input has {got} values, {expected} are expected.")]
    HiddenLength {
        /// Values given.
        got: usize,
        /// Values expected.
        expected: usize,
    },
    /// NaN or infinity in the input.
    #[error("The input holds a value that is not a finite number.")]
    NotFinite,
    /// A token outside the vocabulary.
    #[error("Token {0} is outside the vocabulary.")]
    UnknownToken(u32),
    /// A mask of the logits is of another vocabulary.
    #[error("A mask of the logits is of another vocabulary.")]
    OtherVocabulary,
    /// A position leaves a gap, or positions are not consecutive.
    #[error("Conversation {conversation:?} knows {known} positions here, work starts at {wanted}.")]
    Gap {
        /// Positions in the KV cache.
        conversation: ConversationId,
        /// Positions known.
        known: u32,
        /// First position of the work.
        wanted: u32,
    },
    /// No recurrent state is kept for the position where work begins.
    #[error("The state of conversation {conversation:?} cannot be taken up at {wanted} here, but at {known}.")]
    NoState {
        /// The conversation.
        conversation: ConversationId,
        /// The last position before it where work can begin.
        known: u32,
        /// First position of the work.
        wanted: u32,
    },
    /// More conversations than the recurrent states have room for.
    #[error("There is no room for the recurrent state of another conversation: end one first.")]
    OutOfStates,
    /// Rows of a conversation do not lie together in a batch, which a recurrence needs.
    #[error("The rows of conversation {0:?} do not lie together.")]
    Scattered(ConversationId),
    /// The blocks do not follow those of `Input::Experts`, or `Then::Route` names a block that does not follow the range.
    #[error("Block {0:?} does not follow the blocks of this work.")]
    NotNext(BlockIndex),
    /// A continuation of a position whose sampled token is not on the GPU.
    #[error("No token was chosen here for position {position} of conversation {conversation:?}.")]
    NothingChosen {
        /// The conversation.
        conversation: ConversationId,
        /// The position.
        position: u32,
    },
    /// A continuation with no steps or too many.
    #[error("{0} steps were asked for; 1 to 8 are possible.")]
    BadSteps(u16),
    /// More candidates than the kernels can return.
    #[error("{0} candidates were asked for; 1 to 128 are possible.")]
    BadCandidateCount(u16),
    /// A piece of an upload lies outside its tensor or its staging buffer, or is not aligned to 4 bytes.
    #[error("A piece of an upload to {0:?} lies outside its tensor or is not aligned.")]
    BadPiece(WeightUnit),
    /// The bytes of a file end inside, or before, a tensor.
    #[error("The file ends before the weights of {0:?} do.")]
    FileTooShort(WeightUnit),
    /// A staging buffer was uploaded while somebody could still write to a part of it.
    #[error("A part of a staging buffer is still being filled.")]
    PartsOut,
    /// The weights and KV cache cannot be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The driver reported an error.
    #[error("The GPU reports an error: {0}")]
    Gpu(String),
    /// The device is lost.
    #[error("The GPU device was lost: open Potluck again.")]
    Lost,
}
