//! When a shadow model takes over what the base model did (od-moe.txt 3.2).

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use thiserror::Error;

/// How often a shadow is aligned with its base. Written `T1 KV4`: tokens every time, keys and values every fourth time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alignment {
    /// Every how many tokens the shadow goes on from the base's token rather than its own; `None` is never.
    pub token: Option<NonZeroU32>,
    /// Every how many tokens it takes over the base's KV cache.
    pub kv: Option<NonZeroU32>,
}

impl Alignment {
    /// The base's token after each, and never its KV cache.
    #[must_use]
    pub const fn each_token() -> Self {
        Self { token: Some(NonZeroU32::MIN), kv: None }
    }
}

/// Not the name of an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected an alignment such as T1, T4KV8 or KV2")]
pub struct NoAlignment;

impl Alignment {
    /// Whether the answer's token with this index (from 0) is the base's.
    pub fn takes_token(self, index: u32) -> bool {
        self.token.is_some_and(|period| index.is_multiple_of(period.get()))
    }

    /// Whether the shadow's KV cache becomes the base's before the answer's token with this index (from 0).
    pub fn takes_kv(self, index: u32) -> bool {
        self.kv.is_some_and(|period| index.is_multiple_of(period.get()))
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.token, self.kv) {
            (None, None) => f.write_str("unaligned"),
            (Some(token), None) => write!(f, "T{token}"),
            (None, Some(kv)) => write!(f, "KV{kv}"),
            (Some(token), Some(kv)) => write!(f, "T{token} KV{kv}"),
        }
    }
}

impl FromStr for Alignment {
    type Err = NoAlignment;

    fn from_str(text: &str) -> Result<Self, NoAlignment> {
        if text == "unaligned" {
            return Ok(Self::default());
        }
        let period = |digits: &str| digits.trim().parse().map_err(|_| NoAlignment);
        let (token, kv) = text.split_once("KV").map_or((text, None), |(token, kv)| (token, Some(kv)));
        let token = match token.strip_prefix('T') {
            Some(digits) => Some(period(digits)?),
            None if token.is_empty() && kv.is_some() => None,
            None => return Err(NoAlignment),
        };
        Ok(Self { token, kv: kv.map(period).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["unaligned", "T1", "KV16", "T2 KV4"] {
            assert_eq!(name.parse::<Alignment>().unwrap().to_string(), name);
        }
        assert_eq!("T2KV4".parse::<Alignment>().unwrap().to_string(), "T2 KV4", "as on a command line");
        for wrong in ["", "T", "T0", "KV", "T1KV", "often", "KV1T1", "1"] {
            assert_eq!(wrong.parse::<Alignment>(), Err(NoAlignment), "{wrong}");
        }
    }

    #[test]
    fn periods_count_from_the_first_token() {
        let every_third: Alignment = "T3".parse().unwrap();
        assert_eq!([0, 1, 2, 3].map(|index| every_third.takes_token(index)), [true, false, false, true]);
        assert!(!every_third.takes_kv(0));
    }
}
