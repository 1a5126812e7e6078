//! How the KV cache is stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Tokens in one page of the KV cache. `attention.wgsl` in `shaders` repeats it as a literal; `split.wgsl` takes a page at a
/// time.
pub const KV_PAGE_TOKENS: u32 = 64;

/// Type of the KV cache of every conversation of a room. Names are those of GGUF.
///
/// In order of preference: exact first, smallest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KvCacheType {
    /// 32-bit floats: exact.
    #[default]
    F32,
    /// Half floats, two per 32-bit word.
    F16,
    /// Blocks of 32 values of a head: a half float as scale, and signed bytes.
    Q8_0,
    /// The same with four bits per value.
    Q4_0,
}

/// Not the name of a KV cache type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no type for keys and values: take f32, f16, q8_0 or q4_0.")]
pub struct UnknownKvCacheType(String);

impl KvCacheType {
    /// All of them, the largest first.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Q8_0, Self::Q4_0];
    /// Those that are chosen automatically, the largest first. `q4_0` is not: it raised the perplexity of published
    /// models by 11 to 1,828% (`docs/lab/real-models.md`).
    pub const AUTOMATIC: [Self; 3] = [Self::F32, Self::F16, Self::Q8_0];
    /// Values of a head that share a scale, where values are quantized.
    pub const BLOCK: u32 = 32;

    /// Values are stored in blocks with a scale.
    #[must_use]
    pub const fn is_quantized(self) -> bool {
        matches!(self, Self::Q8_0 | Self::Q4_0)
    }

    /// True if heads of this width can be stored: blocks are never cut.
    #[must_use]
    pub const fn takes(self, head_dim: u32) -> bool {
        !self.is_quantized() || head_dim.is_multiple_of(Self::BLOCK)
    }

    /// 32-bit words for the scales of a head, two per word; zero without scales.
    #[must_use]
    pub const fn scale_words(self, head_dim: u32) -> u32 {
        if self.is_quantized() { head_dim.div_ceil(2 * Self::BLOCK) } else { 0 }
    }

    /// 32-bit words for the keys (or the values) of one head at one position.
    #[must_use]
    pub const fn head_words(self, head_dim: u32) -> u32 {
        let values_a_word = match self {
            Self::F32 => 1,
            Self::F16 => 2,
            Self::Q8_0 => 4,
            Self::Q4_0 => 8,
        };
        self.scale_words(head_dim) + head_dim.div_ceil(values_a_word)
    }

    /// Its name: `q8_0`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }
}

impl fmt::Display for KvCacheType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KvCacheType {
    type Err = UnknownKvCacheType;

    fn from_str(text: &str) -> Result<Self, UnknownKvCacheType> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownKvCacheType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_takes_the_words_that_ggml_would_use_where_blocks_come_in_pairs() {
        let bytes = |kind: KvCacheType, dim| 4 * kind.head_words(dim);
        assert_eq!(KvCacheType::ALL.map(|kind| bytes(kind, 64)), [256, 128, 68, 36]);
        assert_eq!(KvCacheType::ALL.map(|kind| bytes(kind, 128)), [512, 256, 136, 72]);
        // The scale of a single block has half a word to spare.
        assert_eq!(KvCacheType::ALL.map(|kind| bytes(kind, 32)), [128, 64, 36, 20]);
        assert_eq!(bytes(KvCacheType::Q8_0, 96), 2 * 4 + 96);
    }

    #[test]
    fn blocks_are_never_cut() {
        assert_eq!([20, 64, 80].map(|dim| KvCacheType::Q8_0.takes(dim)), [false, true, false]);
        assert!(KvCacheType::F16.takes(20));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in KvCacheType::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("Q8_0".parse(), Ok(KvCacheType::Q8_0));
        let error = "q5_1".parse::<KvCacheType>();
        assert_eq!(error, Err(UnknownKvCacheType("q5_1".into())));
    }
}
