//! How products are computed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How matrix products are computed. Part of both [kernel classes](crate::KernelClass): all devices of a room use the
/// same, so that a replay gives the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Arithmetic {
    /// 32-bit floats.
    #[default]
    Exact,
    /// Vectors are quantized to signed bytes in blocks of 32, and products with quantized weights are sums of integers.
    /// Matrices of formats without a packed kernel, such as routers, are computed exactly, and so is decode where threads
    /// share no work (software adapters).
    Packed,
    /// Vectors and weights are rounded to half floats and multiplied by the device's matrix units, which sum in 32-bit
    /// floats. Natively only, and only prompts: decode is exact. So are matrices of 32-bit floats.
    Matrix,
}

/// Not the name of an arithmetic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no arithmetic: take exact, packed or matrix.")]
pub struct UnknownArithmetic(String);

impl Arithmetic {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Exact, Self::Packed, Self::Matrix];
    /// Those that every device has, from which a host may choose.
    pub const PORTABLE: [Self; 2] = [Self::Exact, Self::Packed];

    /// What a host computes by unless it chooses: `packed` if its GPU's threads share work, since it is up to twice as fast
    /// and costs about as much perplexity as llama.cpp's own quantized path (docs/lab/real-models.md). Software adapters gain
    /// nothing by it.
    #[must_use]
    pub const fn automatic(threads_share_work: bool) -> Self {
        if threads_share_work { Self::Packed } else { Self::Exact }
    }

    /// Its name: `packed`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Packed => "packed",
            Self::Matrix => "matrix",
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arithmetic {
    type Err = UnknownArithmetic;

    fn from_str(text: &str) -> Result<Self, UnknownArithmetic> {
        let found = Self::ALL.into_iter().find(|arithmetic| arithmetic.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownArithmetic(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for arithmetic in Arithmetic::ALL {
            assert_eq!(arithmetic.to_string().parse(), Ok(arithmetic));
        }
        assert_eq!("f16".parse::<Arithmetic>(), Err(UnknownArithmetic("f16".into())));
    }
}
