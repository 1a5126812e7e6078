//! What a contribution may use on its device.

use potluck_plan::{Arithmetic, Bytes, KvCacheType};

use crate::runtime::slots::Eviction;

/// Sizes fixed before anything is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Budget for everything the engine allocates on the GPU.
    pub budget: Bytes,
    /// Positions reserved for all conversations together.
    pub context: u32,
    /// Prompt tokens computed at a time. If the budget is too small, the engine halves this down to
    /// [`Settings::MIN_PREFILL_TOKENS`]. Longer work is cut into pieces.
    pub prefill_tokens: u32,
    /// Most batch tokens whose logits exist at a time, and so the most that `LogitsRequest::Logits` returns.
    pub lm_head_tokens: u32,
    /// How many of them come back at a time; longer work is cut. Rooms read the logits of one token.
    pub logits_read: u32,
    /// Element type of the keys and values.
    pub kv_cache: KvCacheType,
    /// How products are computed.
    pub arithmetic: Arithmetic,
    /// Among kernels that give the same bits, uses those measured to be fastest on this device.
    pub tuned: bool,
    /// Pieces of work whose results may be in flight at a time; further work waits inside the engine.
    pub in_flight: u32,
    /// Size of one staging buffer in bytes.
    pub staging_bytes: u32,
    /// Number of staging buffers.
    pub staging_count: u32,
    /// Which expert makes room in a pool of slots.
    pub eviction: Eviction,
}

impl Settings {
    /// Prefilling fewer tokens at a time would waste even a small device.
    pub const MIN_PREFILL_TOKENS: u32 = 64;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            budget: Bytes(u64::MAX),
            context: 4096,
            prefill_tokens: potluck_plan::Work::PREFILL_TOKENS as u32,
            lm_head_tokens: 16,
            logits_read: 1,
            kv_cache: KvCacheType::F32,
            arithmetic: Arithmetic::Exact,
            tuned: true,
            in_flight: 4,
            staging_bytes: 4 << 20,
            // Natively threads fill several at a time. In a browser each takes twice its size: another process has a copy.
            staging_count: if cfg!(target_arch = "wasm32") { 3 } else { 6 },
            eviction: Eviction::default(),
        }
    }
}
