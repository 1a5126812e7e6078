//! What a storage binding is, and how weights are bound.

use super::Kernel;
use crate::Format;

/// How a storage binding is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and written.
    Write,
}

impl Kernel {
    /// Whether the kernel reads the [`crate::codebooks`], which are then its last storage binding.
    pub fn has_codebook(self) -> bool {
        self.format().is_some_and(|format| format.codebook_at().is_some())
    }

    /// Whether the weights are bound as `vec4<u32>`, which works because each block is a whole number of them.
    pub(super) fn is_wide(self) -> bool {
        match self {
            Self::Packed { format, .. } | Self::Fused { format, dots: Some(_), .. } => {
                [Format::Q4_K, Format::Q5_K].contains(&format)
            }
            Self::Fused { format, .. } | Self::Matrix { format, .. } => format == Format::Q4_K,
            _ => false,
        }
    }
}
