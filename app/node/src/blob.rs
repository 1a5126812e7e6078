//! Names in the cache: one folder per model. Natively one blob per weight unit; in a browser units lie in packs (`pack.rs`).

use std::fmt;

use potluck_plan::{BlockIndex, ExpertId, ModelId, WeightUnit};
use serde::{Deserialize, Serialize};

/// Identifies a blob of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobKey {
    /// The model.
    pub model: ModelId,
    /// The blob of that model.
    pub name: BlobName,
}

impl BlobKey {
    /// Measurements of the device itself, in a folder that belongs to no model.
    pub const DEVICE: BlobKey = BlobKey { model: ModelId([0; 32]), name: BlobName::About };
    /// The tuning of its kernels, in the same folder.
    pub const TUNING: BlobKey = BlobKey { model: ModelId([0; 32]), name: BlobName::Tuning };
}

/// A blob inside a model's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BlobName {
    /// Name and size of the model as JSON, for the list of stored models.
    About,
    /// The header of a file of the model, so that a second visit needs no network.
    Header(u16),
    /// The times of the model's blocks on this device, as JSON.
    Calibration,
    /// The fastest kernels for each shape on this device, as JSON.
    Tuning,
    /// The tensors of a unit, concatenated in the order of `UnitMap::tensors`.
    Unit(WeightUnit),
}

impl fmt::Display for BlobName {
    /// The file name. Part of the on-disk format, so it keeps older words: `head` is the LM head, `mixer` the token mixer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About => write!(f, "about"),
            Self::Calibration => write!(f, "calibration"),
            Self::Tuning => write!(f, "tuning"),
            Self::Header(file) => write!(f, "header-{file}"),
            Self::Unit(WeightUnit::Embedding) => write!(f, "embedding"),
            Self::Unit(WeightUnit::LmHead) => write!(f, "head"),
            Self::Unit(WeightUnit::TokenMixer(block)) => write!(f, "mixer-{}", block.0),
            Self::Unit(WeightUnit::Router(block)) => write!(f, "router-{}", block.0),
            Self::Unit(WeightUnit::Dense(block)) => write!(f, "dense-{}", block.0),
            Self::Unit(WeightUnit::SharedExpert(block)) => write!(f, "shared-{}", block.0),
            Self::Unit(WeightUnit::Expert(block, expert)) => write!(f, "expert-{}-{}", block.0, expert.0),
        }
    }
}

impl BlobName {
    /// Parses a file name; `None` if it is not a blob's.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let kind = parts.next()?;
        let mut number = || parts.next()?.parse::<u16>().ok();
        let blob = match kind {
            "about" => Self::About,
            "calibration" => Self::Calibration,
            "tuning" => Self::Tuning,
            "header" => Self::Header(number()?),
            "embedding" => Self::Unit(WeightUnit::Embedding),
            "head" => Self::Unit(WeightUnit::LmHead),
            "mixer" => Self::Unit(WeightUnit::TokenMixer(BlockIndex(number()?))),
            "router" => Self::Unit(WeightUnit::Router(BlockIndex(number()?))),
            "dense" => Self::Unit(WeightUnit::Dense(BlockIndex(number()?))),
            "shared" => Self::Unit(WeightUnit::SharedExpert(BlockIndex(number()?))),
            "expert" => Self::Unit(WeightUnit::Expert(BlockIndex(number()?), ExpertId(number()?))),
            _ => return None,
        };
        (blob.to_string() == name).then_some(blob)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A unit of each kind.
    pub(crate) fn every_kind(block: BlockIndex, expert: ExpertId) -> [WeightUnit; 7] {
        [
            WeightUnit::Embedding,
            WeightUnit::LmHead,
            WeightUnit::TokenMixer(block),
            WeightUnit::Router(block),
            WeightUnit::Dense(block),
            WeightUnit::SharedExpert(block),
            WeightUnit::Expert(block, expert),
        ]
    }

    #[test]
    fn names_round_trip_and_others_are_refused() {
        let units = every_kind(BlockIndex(47), ExpertId(127));
        let names = units.map(BlobName::Unit).into_iter().chain([
            BlobName::About,
            BlobName::Calibration,
            BlobName::Tuning,
            BlobName::Header(3),
        ]);
        for name in names {
            assert_eq!(BlobName::parse(&name.to_string()), Some(name));
        }
        for other in ["", "mixer", "mixer-", "mixer-1-2", "mixer-+1", "expert-1", "expert-70000-1", "notes.txt"] {
            assert_eq!(BlobName::parse(other), None, "{other}");
        }
    }
}
