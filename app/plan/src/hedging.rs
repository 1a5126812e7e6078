//! When more than one holder is asked for an expert.

use serde::{Deserialize, Serialize};

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
