//! Who guesses experts here: as this node was set up, or a shadow that is made from the model that it hosts.

use potluck_panel::PredictorKind;
use potluck_swarm::HintOptions;

use crate::compute::{GuessOptions, NoShadow, ShadowOptions, ShadowSource};

/// Who guesses, of this device's experts and of those that its stage calls on others.
pub(super) struct Guessers {
    /// As the node was set up.
    pub(super) set_up: (GuessOptions, HintOptions),
    pub(super) own: ShadowWish,
    /// Why there is no shadow, as the page heard it last.
    pub(super) reported: Option<NoShadow>,
}

/// A shadow of the hosted model.
pub(super) enum ShadowWish {
    Unwanted,
    Wanted(ShadowOptions),
    /// It could not be made: there is none until somebody chooses again.
    GivenUp,
}

impl Guessers {
    pub fn new(guesses: GuessOptions, hints: HintOptions) -> Self {
        Self { set_up: (guesses, hints), own: ShadowWish::Unwanted, reported: None }
    }

    /// Somebody wants a shadow of the hosted model, or wanted one that could not be made.
    pub fn chose_own_shadow(&self) -> bool {
        !matches!(self.own, ShadowWish::Unwanted)
    }

    /// The shadow of the hosted model that the node was set up with.
    pub fn set_up_shadow(&self) -> Option<ShadowOptions> {
        let shadow = self.set_up.0.shadow.clone();
        shadow.filter(|shadow| matches!(shadow.source, ShadowSource::Own(_)))
    }

    /// Who guesses where there is a shadow of the hosted model, or where there is none although it was wanted.
    pub fn options(&self, shadow: Option<&ShadowOptions>) -> (GuessOptions, HintOptions) {
        let (guesses, hints) = self.set_up.clone();
        let Some(shadow) = shadow else {
            let predictor =
                if guesses.predictor == PredictorKind::Shadow { PredictorKind::None } else { guesses.predictor };
            let of_hints =
                if hints.predictor == PredictorKind::Shadow { PredictorKind::Frequent } else { hints.predictor };
            let hints = HintOptions { predictor: of_hints, shadow: false, ..hints };
            return (GuessOptions { predictor, shadow: None, ..guesses }, hints);
        };
        (guesses.with_shadow(shadow.clone()), hints.with_shadow())
    }
}
