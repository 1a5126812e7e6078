//! Weight formats the kernels read.

/// How a weight matrix is stored; named as GGUF does.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    F32,
    F16,
    Q8_0,
    Q4_0,
    Q4_K,
    Q6_K,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] = [Self::F32, Self::F16, Self::Q8_0, Self::Q4_0, Self::Q4_K, Self::Q6_K];

    /// Its name, as GGUF spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Q8_0 => "Q8_0",
            Self::Q4_0 => "Q4_0",
            Self::Q4_K => "Q4_K",
            Self::Q6_K => "Q6_K",
        }
    }

    /// Values in a block; a row is a whole number of blocks.
    pub fn block_values(self) -> u32 {
        match self {
            Self::F32 | Self::F16 => 1,
            Self::Q8_0 | Self::Q4_0 => 32,
            Self::Q4_K | Self::Q6_K => 256,
        }
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> u32 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::Q8_0 => 34,
            Self::Q4_0 => 18,
            Self::Q4_K => 144,
            Self::Q6_K => 210,
        }
    }

    /// Row lengths the kernels take are multiples of this (they read activations four at a time).
    pub fn row_step(self) -> u32 {
        self.block_values().max(4)
    }

    /// Bytes of a row of `cols` values, `None` if no row has that length.
    pub fn row_bytes(self, cols: u32) -> Option<u32> {
        if cols == 0 || !cols.is_multiple_of(self.row_step()) {
            return None;
        }
        (cols / self.block_values()).checked_mul(self.block_bytes())
    }
}
