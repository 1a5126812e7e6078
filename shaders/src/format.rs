//! Weight formats that the kernels can read.

use potluck_gguf::{Codebook, TensorType};

macro_rules! formats {
    ($($name:ident)*) => {
        /// How a weight matrix is stored: every GGUF type that holds weights, under its GGUF name.
        #[allow(non_camel_case_types, reason = "the names are those of GGUF")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Format { $(#[doc = concat!("`", stringify!($name), "`.")] $name,)* }

        impl Format {
            /// Every format.
            pub const ALL: [Format; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            /// The GGUF tensor type.
            pub const fn tensor_type(self) -> TensorType {
                match self { $(Self::$name => TensorType::$name,)* }
            }
        }
    };
}

formats! {
    F32 F16 BF16
    Q4_0 Q4_1 Q5_0 Q5_1 Q8_0
    Q2_K Q3_K Q4_K Q5_K Q6_K
    IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S
    IQ4_NL IQ4_XS MXFP4 NVFP4
    TQ1_0 TQ2_0 Q1_0 Q2_0
}

/// The numbers that turn the integers of 32 values into values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// A scale.
    Scale,
    /// A scale, and what every value is less.
    ScaleAndLeast,
    /// A scale for each 16 values.
    TwoScales,
}

impl Format {
    /// How the packed product reads the format; `None` if it does not.
    pub fn packing(self) -> Option<Packing> {
        Some(match self {
            Self::Q4_0 | Self::Q5_0 | Self::Q8_0 | Self::IQ4_NL | Self::IQ4_XS | Self::MXFP4 => Packing::Scale,
            Self::Q4_1 | Self::Q5_1 | Self::Q4_K | Self::Q5_K => Packing::ScaleAndLeast,
            Self::Q3_K | Self::Q6_K => Packing::TwoScales,
            _ => return None,
        })
    }

    /// The format for a tensor type, `None` if no kernel reads it.
    pub fn of(kind: TensorType) -> Option<Format> {
        Self::ALL.into_iter().find(|format| format.tensor_type() == kind)
    }

    /// The name as GGUF spells it.
    pub fn name(self) -> &'static str {
        self.tensor_type().name()
    }

    /// Values per block; a row is a whole number of blocks.
    pub fn block_values(self) -> u32 {
        self.tensor_type().block_elements() as u32
    }

    /// Bytes per block.
    pub fn block_bytes(self) -> u32 {
        self.tensor_type().block_bytes() as u32
    }

    /// Row lengths must be a multiple of this, because the kernels read activations four at a time.
    pub fn row_step(self) -> u32 {
        self.block_values().max(4)
    }

    /// Bytes in a row of `cols` values, `None` if the format does not allow that length.
    pub fn row_bytes(self, cols: u32) -> Option<u32> {
        if cols == 0 || !cols.is_multiple_of(self.row_step()) {
            return None;
        }
        (cols / self.block_values()).checked_mul(self.block_bytes())
    }

    /// Offset of the format's codebook in [`codebooks`], in words; `None` if it needs none.
    pub fn codebook_at(self) -> Option<u32> {
        let own = Codebook::of(self.tensor_type())?;
        let before = Codebook::ALL.into_iter().take_while(|book| *book != own);
        Some(before.map(|book| book.values().len() as u32 / 4).sum())
    }
}

/// Contents of the kernels' codebook binding: every codebook, one signed byte per value.
pub fn codebooks() -> Vec<u8> {
    Codebook::ALL.into_iter().flat_map(Codebook::values).map(|value| value as u8).collect()
}

/// Length of [`codebooks`] in bytes.
pub const CODEBOOK_BYTES: u64 = 33_792;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_holds_weights_has_a_format() {
        for kind in TensorType::ALL {
            assert_eq!(Format::of(kind).is_some(), kind.holds_weights(), "{kind}");
        }
        assert_eq!(Format::of(TensorType::Q8_1), None);
    }

    #[test]
    fn codebooks_lie_one_after_another() {
        assert_eq!(codebooks().len() as u64, CODEBOOK_BYTES);
        assert_eq!(Format::IQ2_XXS.codebook_at(), Some(0));
        assert_eq!(Format::IQ2_XS.codebook_at(), Some(512));
        assert_eq!(Format::IQ1_S.codebook_at(), Format::IQ1_M.codebook_at());
        assert_eq!(Format::IQ4_NL.codebook_at(), None);
        // The first group of IQ2_XXS is eight times the value 8 (ggml-common.h, `iq2xxs_grid`).
        assert_eq!(codebooks()[..8], [8; 8]);
    }
}
