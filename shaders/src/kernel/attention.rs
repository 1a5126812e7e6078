//! Attention kernels: how large heads may be, and what they do besides the softmax.

use potluck_plan::KvCacheType;

use super::Kernel;

/// What attention does besides the softmax of scaled scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extras {
    /// A query sees only the last positions.
    pub window: bool,
    /// Scores have a soft cap.
    pub cap: bool,
    /// Each head has a score without a value.
    pub sinks: bool,
}

impl Extras {
    /// Nothing.
    pub const NONE: Self = Self { window: false, cap: false, sinks: false };
}

impl Kernel {
    /// Largest head width of the attention kernels, in quads.
    pub const MAX_QUADS: u16 = 144;
    /// The same of the flash attention, whose registers wider heads would exceed.
    pub const MAX_SHARED_QUADS: u16 = 64;
    /// The same of the split attention, which has a thread for each quad.
    pub const MAX_SPLIT_QUADS: u16 = 128;
    /// Most heads of latent attention: those of 512 prompt tokens are workgroups of one dispatch, at most 65,535.
    pub const MAX_LATENT_HEADS: u32 = 127;

    /// Decode attention for models with this many query heads per key head. A workgroup takes at most four of them, one
    /// in each component of its scores; two of wide heads, for which it has the memory.
    pub fn split(kv_type: KvCacheType, quads: u16, queries: u32) -> Kernel {
        let most = if quads > Self::MAX_SHARED_QUADS { 2 } else { 4 };
        let heads = queries.next_power_of_two().min(most) as u8;
        Self::Split { kv_type, quads, heads, extras: Extras::NONE }
    }

    /// An attention kernel with extras; any other kernel unchanged.
    pub fn with_extras(self, extras: Extras) -> Kernel {
        match self {
            Self::Split { kv_type, quads, heads, .. } => Self::Split { kv_type, quads, heads, extras },
            Self::Attention { kv_type, strategy, quads, .. } => Self::Attention { kv_type, strategy, quads, extras },
            Self::FlashAttention { kv_type, quads, .. } => Self::FlashAttention { kv_type, quads, extras },
            other => other,
        }
    }

    /// What an attention kernel does besides the softmax.
    pub fn extras(self) -> Extras {
        match self {
            Self::Split { extras, .. } | Self::Attention { extras, .. } | Self::FlashAttention { extras, .. } => extras,
            _ => Extras::NONE,
        }
    }
}
