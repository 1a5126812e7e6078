//! Number formats of vectors on the wire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Number format of hidden vectors on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WireType {
    /// Exact: one stage and many stages give bit-equal answers on one adapter.
    #[default]
    F32,
    /// Half the bytes. Off by at most 2⁻¹¹ of a value, below 6·10⁻⁵ by at most 3·10⁻⁸; values beyond ±65,504 become these.
    F16,
    /// Half the bytes, over the whole range of F32. Off by at most 2⁻⁸ of a value.
    Bf16,
    /// Bytes with a scale for each [`WireType::BLOCK`] values. Off by at most 1/254 of the largest value of a block.
    Int8,
}

/// Not the name of a number format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no number format: take f32, f16, bf16 or int8")]
pub struct UnknownWireType(String);

impl WireType {
    /// All of them, the exact one first.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Bf16, Self::Int8];
    /// Values that share a scale.
    pub const BLOCK: usize = 32;

    /// Bytes of so many values.
    #[must_use]
    pub const fn bytes(self, values: u64) -> u64 {
        match self {
            Self::F32 => values.saturating_mul(4),
            Self::F16 | Self::Bf16 => values.saturating_mul(2),
            Self::Int8 => values.saturating_add(values.div_ceil(Self::BLOCK as u64).saturating_mul(4)),
        }
    }

    /// Its name: `bf16`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }
}

impl fmt::Display for WireType {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for WireType {
    type Err = UnknownWireType;

    fn from_str(text: &str) -> Result<Self, UnknownWireType> {
        let found = Self::ALL.into_iter().find(|wire| wire.name() == text);
        found.ok_or_else(|| UnknownWireType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for wire in WireType::ALL {
            assert_eq!(wire.to_string().parse(), Ok(wire));
        }
        for wrong in ["", "F16", "f8"] {
            assert_eq!(wrong.parse::<WireType>(), Err(UnknownWireType(wrong.to_owned())));
        }
    }
}
