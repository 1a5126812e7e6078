//! How a host wants the experts of a model spread over devices.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Hedging, WireType};

/// How experts are spread over devices, where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pooling {
    /// Holders that each pooled expert shall have, where memory allows.
    pub replicas: u8,
    /// How stages ask them.
    pub hedging: Hedging,
    /// Number format of vectors to and from them. Anything but F32 rounds what experts get and give.
    pub wire: WireType,
}

impl Pooling {
    /// Holders of an expert unless somebody chooses otherwise: with two, no single device is missed.
    pub const REPLICAS: u8 = 2;

    /// The same, if a room can do it.
    ///
    /// # Errors
    /// A number that is out of range.
    pub const fn checked(self) -> Result<Self, BadPooling> {
        match self {
            Self { replicas: 0, .. } => Err(BadPooling::NoHolder),
            Self { hedging: Hedging::Copies(copies), .. } if copies == 0 || copies > Hedging::MAX_COPIES => {
                Err(BadPooling::Copies(copies))
            }
            _ => Ok(self),
        }
    }
}

impl Default for Pooling {
    fn default() -> Self {
        Self { replicas: Self::REPLICAS, hedging: Hedging::default(), wire: WireType::default() }
    }
}

/// Why experts cannot be spread like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadPooling {
    /// No device would hold an expert.
    #[error("every expert needs a holder")]
    NoHolder,
    /// So many holders are not asked at once.
    #[error("{0} holders cannot be asked at once: take 1 to {max}", max = Hedging::MAX_COPIES)]
    Copies(u8),
    /// Something that was stored is no such choice.
    #[error("this is no choice of how experts are spread")]
    Unreadable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_in_range_stays_and_any_other_is_named() {
        let usual = Pooling::default();
        assert_eq!((usual.replicas, usual.hedging, usual.wire), (2, Hedging::Adaptive, WireType::F32));
        for hedging in [Hedging::Off, Hedging::Adaptive, Hedging::Copies(1), Hedging::Copies(Hedging::MAX_COPIES)] {
            let chosen = Pooling { replicas: u8::MAX, hedging, wire: WireType::Int8 };
            assert_eq!(chosen.checked(), Ok(chosen));
        }
        assert_eq!(Pooling { replicas: 0, ..usual }.checked(), Err(BadPooling::NoHolder));
        for copies in [0, Hedging::MAX_COPIES + 1, u8::MAX] {
            let asked = Pooling { hedging: Hedging::Copies(copies), ..usual };
            assert_eq!(asked.checked(), Err(BadPooling::Copies(copies)));
        }
    }
}
