//! Tensor types and their block layouts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The storage type of a tensor, with GGUF's names and numbers (ggml.h, `enum ggml_type`).
///
/// Each row is divided into blocks with a fixed number of values and bytes. `K` types have super-blocks of 256 values
/// with inner scales; `IQ` types look values up in a codebook.
///
/// ```
/// use potluck_gguf::{TensorType, dequantize, quantize};
///
/// let kind = TensorType::from_name("Q4_0").unwrap();
/// assert_eq!((kind.block_elements(), kind.block_bytes()), (32, 18));
///
/// // Half a byte for each value, and a scale: close, and not more than that.
/// let values: Vec<f32> = (0..32).map(|i| i as f32 - 16.0).collect();
/// let mut bytes = Vec::new();
/// quantize(kind, &values, &mut bytes)?;
/// let mut read = vec![0.0; 32];
/// dequantize(kind, &bytes, &mut read)?;
/// assert_eq!((bytes.len(), read[0]), (18, -16.0));
/// assert!(values.iter().zip(&read).all(|(value, read)| (value - read).abs() <= 2.0));
/// # Ok::<(), potluck_gguf::GgufError>(())
/// ```
#[allow(non_camel_case_types, reason = "spelled as ggml names the types")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u32)]
pub enum TensorType {
    /// IEEE single precision.
    F32 = 0,
    /// IEEE half precision.
    F16 = 1,
    /// 4 bits, one scale per 32 values.
    Q4_0 = 2,
    /// 4 bits, one scale and minimum per 32 values.
    Q4_1 = 3,
    /// 5 bits, one scale per 32 values.
    Q5_0 = 6,
    /// 5 bits, one scale and minimum per 32 values.
    Q5_1 = 7,
    /// 8 bits, one scale per 32 values.
    Q8_0 = 8,
    /// 8 bits, one scale and sum per 32 values (activations only).
    Q8_1 = 9,
    /// 2 bits; 4-bit scales and minimums per 16 values.
    Q2_K = 10,
    /// 3 bits; 6-bit scales per 16 values.
    Q3_K = 11,
    /// 4 bits; 6-bit scales and minimums per 32 values.
    Q4_K = 12,
    /// 5 bits; 6-bit scales and minimums per 32 values.
    Q5_K = 13,
    /// 6 bits; 8-bit scales per 16 values.
    Q6_K = 14,
    /// 8 bits; one single-precision scale per 256 values (activations only).
    Q8_K = 15,
    /// 2.06 bits, codebook of 256 groups of 8.
    IQ2_XXS = 16,
    /// 2.31 bits, codebook of 512 groups of 8.
    IQ2_XS = 17,
    /// 3.06 bits, codebook of 256 groups of 4.
    IQ3_XXS = 18,
    /// 1.56 bits, codebook of 2048 ternary groups of 8.
    IQ1_S = 19,
    /// 4 bits, lookup table of 16 values; one scale per 32 values.
    IQ4_NL = 20,
    /// 3.44 bits, codebook of 512 groups of 4.
    IQ3_S = 21,
    /// 2.56 bits, codebook of 1024 groups of 8.
    IQ2_S = 22,
    /// 4 bits, lookup table of 16 values; 6-bit scales per 32 values.
    IQ4_XS = 23,
    /// Signed byte.
    I8 = 24,
    /// Signed 16-bit integer.
    I16 = 25,
    /// Signed 32-bit integer.
    I32 = 26,
    /// Signed 64-bit integer.
    I64 = 27,
    /// IEEE double precision.
    F64 = 28,
    /// 1.75 bits, codebook of 2048 ternary groups of 8.
    IQ1_M = 29,
    /// The upper half of single precision.
    BF16 = 30,
    /// Ternary, five values per byte.
    TQ1_0 = 34,
    /// Ternary, four values per byte.
    TQ2_0 = 35,
    /// 4-bit floats (E2M1), one power-of-two scale per 32 values.
    MXFP4 = 39,
    /// 4-bit floats (E2M1), one unsigned E4M3 scale per 16 values.
    NVFP4 = 40,
    /// One bit (the sign), one scale per 128 values.
    Q1_0 = 41,
    /// Two bits (-1 to 2), one scale per 64 values.
    Q2_0 = 42,
}

impl TensorType {
    /// All types, ordered by number.
    pub const ALL: [TensorType; 35] = [
        TensorType::F32,
        TensorType::F16,
        TensorType::Q4_0,
        TensorType::Q4_1,
        TensorType::Q5_0,
        TensorType::Q5_1,
        TensorType::Q8_0,
        TensorType::Q8_1,
        TensorType::Q2_K,
        TensorType::Q3_K,
        TensorType::Q4_K,
        TensorType::Q5_K,
        TensorType::Q6_K,
        TensorType::Q8_K,
        TensorType::IQ2_XXS,
        TensorType::IQ2_XS,
        TensorType::IQ3_XXS,
        TensorType::IQ1_S,
        TensorType::IQ4_NL,
        TensorType::IQ3_S,
        TensorType::IQ2_S,
        TensorType::IQ4_XS,
        TensorType::I8,
        TensorType::I16,
        TensorType::I32,
        TensorType::I64,
        TensorType::F64,
        TensorType::IQ1_M,
        TensorType::BF16,
        TensorType::TQ1_0,
        TensorType::TQ2_0,
        TensorType::MXFP4,
        TensorType::NVFP4,
        TensorType::Q1_0,
        TensorType::Q2_0,
    ];

    /// Looks up a type by its number in a file.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Looks up a type by its GGUF name, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The number in a file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name as GGUF spells it.
    pub const fn name(self) -> &'static str {
        self.layout().0
    }

    /// Values per block. A row is a whole number of blocks.
    pub const fn block_elements(self) -> u64 {
        self.layout().1
    }

    /// Bytes per block.
    pub const fn block_bytes(self) -> u64 {
        self.layout().2
    }

    /// Bytes of a row of `cols` values; `None` if the row is not whole blocks or the size overflows.
    pub const fn row_bytes(self, cols: u64) -> Option<u64> {
        if cols.is_multiple_of(self.block_elements()) {
            (cols / self.block_elements()).checked_mul(self.block_bytes())
        } else {
            None
        }
    }

    /// True for types that store weight matrices. The others hold activations or integers.
    pub const fn holds_weights(self) -> bool {
        use TensorType::{F64, I8, I16, I32, I64, Q8_1, Q8_K};
        !matches!(self, Q8_1 | Q8_K | I8 | I16 | I32 | I64 | F64)
    }

    /// Name, values per block, bytes per block (the block structs in ggml-common.h).
    const fn layout(self) -> (&'static str, u64, u64) {
        match self {
            TensorType::F32 => ("F32", 1, 4),
            TensorType::F16 => ("F16", 1, 2),
            TensorType::Q4_0 => ("Q4_0", 32, 18),
            TensorType::Q4_1 => ("Q4_1", 32, 20),
            TensorType::Q5_0 => ("Q5_0", 32, 22),
            TensorType::Q5_1 => ("Q5_1", 32, 24),
            TensorType::Q8_0 => ("Q8_0", 32, 34),
            TensorType::Q8_1 => ("Q8_1", 32, 36),
            TensorType::Q2_K => ("Q2_K", 256, 84),
            TensorType::Q3_K => ("Q3_K", 256, 110),
            TensorType::Q4_K => ("Q4_K", 256, 144),
            TensorType::Q5_K => ("Q5_K", 256, 176),
            TensorType::Q6_K => ("Q6_K", 256, 210),
            TensorType::Q8_K => ("Q8_K", 256, 292),
            TensorType::IQ2_XXS => ("IQ2_XXS", 256, 66),
            TensorType::IQ2_XS => ("IQ2_XS", 256, 74),
            TensorType::IQ3_XXS => ("IQ3_XXS", 256, 98),
            TensorType::IQ1_S => ("IQ1_S", 256, 50),
            TensorType::IQ4_NL => ("IQ4_NL", 32, 18),
            TensorType::IQ3_S => ("IQ3_S", 256, 110),
            TensorType::IQ2_S => ("IQ2_S", 256, 82),
            TensorType::IQ4_XS => ("IQ4_XS", 256, 136),
            TensorType::I8 => ("I8", 1, 1),
            TensorType::I16 => ("I16", 1, 2),
            TensorType::I32 => ("I32", 1, 4),
            TensorType::I64 => ("I64", 1, 8),
            TensorType::F64 => ("F64", 1, 8),
            TensorType::IQ1_M => ("IQ1_M", 256, 56),
            TensorType::BF16 => ("BF16", 1, 2),
            TensorType::TQ1_0 => ("TQ1_0", 256, 54),
            TensorType::TQ2_0 => ("TQ2_0", 256, 66),
            TensorType::MXFP4 => ("MXFP4", 32, 17),
            TensorType::NVFP4 => ("NVFP4", 64, 36),
            TensorType::Q1_0 => ("Q1_0", 128, 18),
            TensorType::Q2_0 => ("Q2_0", 64, 18),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
