//! When more than one holder is asked for an expert.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Copies of an expert call that go to several holders; the first answer wins (moex.txt 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hedging {
    /// One holder is asked; another one only after a timeout.
    Off,
    /// So many holders are asked at once.
    Copies(u8),
    /// Another holder is asked when the first one takes longer than usual, within a budget of bytes.
    #[default]
    Adaptive,
}

/// Not the name of a hedging.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no hedging: take off, adaptive or a number of holders from 1 to {max}", max = Hedging::MAX_COPIES)]
pub struct UnknownHedging(String);

impl Hedging {
    /// Most holders that are asked for an expert, one after the other or at once.
    pub const MAX_COPIES: u8 = 4;
}

/// `off`, `adaptive` or the number of holders.
impl fmt::Display for Hedging {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => to.write_str("off"),
            Self::Copies(copies) => write!(to, "{copies}"),
            Self::Adaptive => to.write_str("adaptive"),
        }
    }
}

impl FromStr for Hedging {
    type Err = UnknownHedging;

    fn from_str(text: &str) -> Result<Self, UnknownHedging> {
        match (text, text.parse()) {
            ("off", _) => Ok(Self::Off),
            ("adaptive", _) => Ok(Self::Adaptive),
            (_, Ok(copies @ 1..=Self::MAX_COPIES)) => Ok(Self::Copies(copies)),
            _ => Err(UnknownHedging(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hedging_is_read_by_the_name_that_it_is_written_with() {
        for hedging in [Hedging::Off, Hedging::Adaptive, Hedging::Copies(1), Hedging::Copies(Hedging::MAX_COPIES)] {
            assert_eq!(hedging.to_string().parse(), Ok(hedging));
        }
        for wrong in ["", "0", "5", "200", "all", "Off"] {
            assert_eq!(wrong.parse::<Hedging>(), Err(UnknownHedging(wrong.to_owned())));
        }
    }
}
