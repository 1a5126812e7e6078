//! The predictors that a device can be told to use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Who says which experts are loaded ahead while a model answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictorKind {
    /// Nobody: experts load when they are chosen.
    #[default]
    None,
    /// How often they followed those of the last token ([`crate::GivenLast`]).
    Frequent,
    /// The next block's router, asked with this block's output.
    Router,
    /// The same model in another type, a token ahead.
    Shadow,
    /// For measurements: a known share of what was chosen for the same text before ([`crate::KnownRecall`]).
    Recorded,
}

/// Not the name of a predictor that needs nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected none, frequent or router")]
pub struct NoPredictor;

impl fmt::Display for PredictorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Frequent => "frequent",
            Self::Router => "router",
            Self::Shadow => "shadow",
            Self::Recorded => "recorded",
        })
    }
}

impl FromStr for PredictorKind {
    type Err = NoPredictor;

    /// A shadow needs a file, so its name alone is none of these.
    fn from_str(name: &str) -> Result<Self, NoPredictor> {
        let kinds = [Self::None, Self::Frequent, Self::Router, Self::Recorded];
        kinds.into_iter().find(|kind| kind.to_string() == name).ok_or(NoPredictor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let kinds = [PredictorKind::None, PredictorKind::Frequent, PredictorKind::Router, PredictorKind::Recorded];
        for kind in kinds {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("shadow".parse::<PredictorKind>(), Err(NoPredictor), "a shadow is named by its file");
    }
}
