//! What a contribution may use.

use potluck_plan::{Bytes, KvCacheType};

/// Sizes that are fixed before anything is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// For everything the engine allocates on the GPU.
    pub budget: Bytes,
    /// Positions reserved, of all conversations together.
    pub context: u32,
    /// Rows of a prompt computed at a time. Where the budget is too small for them, the engine halves them, down to
    /// [`Settings::MIN_PREFILL_TOKENS`]; longer pieces of work are cut.
    pub prefill_tokens: u32,
    /// Most rows whose logits exist at a time; the most that `LogitsRequest::Logits` returns.
    pub lm_head_tokens: u32,
    /// Type of the keys and values.
    pub kv_cache: KvCacheType,
    /// Uses, of kernels that give the same bits, those that were measured to be quickest here.
    pub tuned: bool,
    /// Pieces of work whose results may be under way at a time; more wait inside the engine.
    pub in_flight: u32,
    /// Bytes of one staging buffer.
    pub staging_bytes: u32,
    /// Staging buffers.
    pub staging_count: u32,
}

impl Settings {
    /// Fewer rows of a prompt at a time would waste even a small device.
    pub const MIN_PREFILL_TOKENS: u32 = 64;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            budget: Bytes(u64::MAX),
            context: 4096,
            prefill_tokens: potluck_plan::Work::PREFILL_TOKENS as u32,
            lm_head_tokens: 16,
            kv_cache: KvCacheType::F32,
            tuned: true,
            in_flight: 4,
            staging_bytes: 8 << 20,
            staging_count: 3,
        }
    }
}
