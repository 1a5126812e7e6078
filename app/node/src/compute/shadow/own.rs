//! A shadow made from the room's own model: what it takes of the memory that this device lends, and whether that is to be had.

use potluck_engine::{Capabilities, Layout, Settings};
use potluck_gguf::{GgufError, TensorType};
use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{BlockShape, Bytes, KvCacheType, ModelShape};
use thiserror::Error;

use super::options::{ShadowOptions, ShadowSource};
use crate::open::{Model, overhead, settings};

/// Its memory is taken from its host's share, so its buffers are small. Prompts take it longer, and nobody waits for that.
const PREFILL_TOKENS: u32 = 2 * Settings::MIN_PREFILL_TOKENS;
const STAGING_BYTES: u32 = 1 << 20;
const STAGING_COUNT: u32 = 2;
const IN_FLIGHT: u32 = 2;
/// Buffers are rounded up, so part of a plan's memory stays free.
const SPARE: u64 = 64;

/// A shadow that has its memory.
#[derive(Clone, Debug)]
pub struct OwnShadow {
    pub(super) spec: ModelSpec,
    pub(super) units: UnitMap,
    /// With what it takes as budget.
    pub(super) settings: Settings,
}

/// What a room's model runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomMemory {
    /// Positions of context.
    pub context: u32,
    /// KV cache type, if the host chose one.
    pub kv_cache: Option<KvCacheType>,
    /// What this device lends, a shadow included.
    pub lent: Bytes,
}

/// Why the room's model has no shadow here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoShadow {
    /// None was asked for, or it is no model of its own.
    #[error("No smaller copy of the model was asked for.")]
    NotWanted,
    /// Nobody guesses experts of a model without any.
    #[error("This model has no experts, so no smaller copy of it guesses them.")]
    NoExperts,
    /// All experts are in memory anyhow.
    #[error("The model fits the memory that this device lends, so no smaller copy has to guess its experts.")]
    Fits,
    /// The model would have too little.
    #[error(
        "A smaller copy of the model takes {needed} of GPU memory. Of the {lent} that this device lends, that leaves too little \
         for the model: it needs {least}. Answers go on without the copy."
    )]
    TooLittle {
        /// What the shadow takes.
        needed: Bytes,
        /// What this device lends.
        lent: Bytes,
        /// What the model needs with as few experts in memory as a token uses.
        least: Bytes,
    },
    /// It cannot be made.
    #[error("A smaller copy of the model cannot be made: {0} Answers go on without it.")]
    Failed(String),
}

impl From<GgufError> for NoShadow {
    fn from(error: GgufError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl OwnShadow {
    /// The shadow of a room's model on a GPU.
    ///
    /// # Errors
    /// Why there is none.
    pub fn plan(
        model: &Model,
        options: &ShadowOptions,
        gpu: &Capabilities,
        room: RoomMemory,
    ) -> Result<Self, NoShadow> {
        let kind = match &options.source {
            ShadowSource::Own(kind) => *kind,
            #[cfg(not(target_arch = "wasm32"))]
            ShadowSource::File(_) => return Err(NoShadow::NotWanted),
        };
        let own = model.units.shadow_type().ok_or(NoShadow::NoExperts)?;
        let sizes = Sizes::of(model, room).ok_or(NoShadow::NoExperts)?;
        if sizes.all <= room.lent {
            return Err(NoShadow::Fits);
        }
        // What it takes over has to be stored alike.
        let kv_cache = match options.alignment.kv {
            Some(_) => room.kv_cache.unwrap_or_default(),
            None => KvCacheType::F16,
        };
        let settings = settings(Bytes(u64::MAX), room.context, kv_cache);
        let shadow = Self::of(&model.spec, &model.units, kind.unwrap_or(own), settings, gpu)?;
        let needed = shadow.bytes();
        if needed.saturating_add(sizes.least) > room.lent {
            return Err(NoShadow::TooLittle { needed, lent: room.lent, least: sizes.least });
        }
        Ok(shadow)
    }

    /// The shadow of a model, whatever memory there is. Buffers of its own settings are small.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(
        spec: &ModelSpec,
        units: &UnitMap,
        kind: TensorType,
        settings: Settings,
        gpu: &Capabilities,
    ) -> Result<Self, NoShadow> {
        let units = units.requantized(kind)?;
        let settings = Settings {
            prefill_tokens: PREFILL_TOKENS,
            staging_bytes: STAGING_BYTES,
            staging_count: STAGING_COUNT,
            in_flight: IN_FLIGHT,
            ..settings
        };
        let layout = Layout::plan(spec, &units, &units.units().collect(), &settings, &gpu.limits);
        let budget = layout.map_err(|error| NoShadow::Failed(error.to_string()))?.total;
        Ok(Self { spec: spec.clone(), units, settings: Settings { budget, ..settings } })
    }

    /// What it takes in all.
    pub fn bytes(&self) -> Bytes {
        self.settings.budget
    }
}

/// What a model takes on one device: all of it, and with as few experts in memory as a token uses.
struct Sizes {
    all: Bytes,
    least: Bytes,
}

impl Sizes {
    /// `None` without experts. The planner takes a smaller KV cache type before it loads experts on demand.
    fn of(model: &Model, room: RoomMemory) -> Option<Self> {
        let smallest = KvCacheType::AUTOMATIC.into_iter().rev().find(|kv_cache| model.spec.takes(*kv_cache));
        let kv_cache = room.kv_cache.or(smallest).unwrap_or_default();
        let shape = model.spec.shape(&model.units, model.card.id, kv_cache);
        let blocks = shape.all_blocks();
        let pool = shape.pool_bytes(blocks, shape.smallest_pool(blocks)?);
        let pool = pool.saturating_add(Bytes(pool.0 / SPARE));
        let pinned = pinned(&shape)
            .saturating_add(shape.kv_cache_bytes(blocks, room.context))
            .saturating_add(overhead(&model.spec, room.context));
        let experts: Bytes =
            shape.blocks.iter().map(|block| block.weights().saturating_sub(block.without_experts())).sum();
        Some(Self { all: pinned.saturating_add(experts), least: pinned.saturating_add(pool) })
    }
}

/// Bytes of all weights but those of experts.
fn pinned(shape: &ModelShape) -> Bytes {
    let head = if shape.tied_lm_head { Bytes::ZERO } else { shape.lm_head };
    let blocks: Bytes = shape.blocks.iter().map(BlockShape::without_experts).sum();
    shape.embedding.saturating_add(head).saturating_add(blocks)
}
