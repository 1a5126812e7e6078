//! Who guesses experts here: as this node was set up, or a shadow that is made from the model that it hosts.

use potluck_panel::{ExpertGuesser, NoticeLevel, PredictorKind};
use potluck_plan::Bytes;
use potluck_predict::Alignment;
use potluck_swarm::HintOptions;

use super::Node;
use crate::compute::{GuessOptions, NoShadow, RoomMemory, ShadowOptions, ShadowSource};

/// Who guesses, of this device's experts and of those that its stage calls on others.
pub(super) struct Guessers {
    /// As the node was set up.
    set_up: (GuessOptions, HintOptions),
    own: Own,
    /// Why there is no shadow, as it was told last.
    told: Option<NoShadow>,
}

/// A shadow of the hosted model.
enum Own {
    Unwanted,
    Wanted(ShadowOptions),
    /// It could not be made: there is none until somebody chooses again.
    GivenUp,
}

impl Guessers {
    pub fn new(guesses: GuessOptions, hints: HintOptions) -> Self {
        Self { set_up: (guesses, hints), own: Own::Unwanted, told: None }
    }

    /// Somebody wants a shadow of the hosted model, or wanted one that could not be made.
    pub fn chose_own_shadow(&self) -> bool {
        !matches!(self.own, Own::Unwanted)
    }

    /// The shadow of the hosted model that the node was set up with.
    fn set_up_shadow(&self) -> Option<ShadowOptions> {
        let shadow = self.set_up.0.shadow.clone();
        shadow.filter(|shadow| matches!(shadow.source, ShadowSource::Own(_)))
    }

    /// Who guesses where there is a shadow of the hosted model, or where there is none although it was wanted.
    fn options(&self, shadow: Option<&ShadowOptions>) -> (GuessOptions, HintOptions) {
        let (guesses, hints) = self.set_up.clone();
        let Some(shadow) = shadow else {
            let predictor =
                if guesses.predictor == PredictorKind::Shadow { PredictorKind::None } else { guesses.predictor };
            let of_hints =
                if hints.predictor == PredictorKind::Shadow { PredictorKind::Frequent } else { hints.predictor };
            let hints = HintOptions { predictor: of_hints, shadow: false, ..hints };
            return (GuessOptions { predictor, shadow: None, ..guesses }, hints);
        };
        // A recorded text is believed, and the shadow only judged.
        let believed = |kind| if kind == PredictorKind::Recorded { kind } else { PredictorKind::Shadow };
        let guesses = GuessOptions { predictor: believed(guesses.predictor), shadow: Some(shadow.clone()), ..guesses };
        let hints = HintOptions { predictor: believed(hints.predictor), shadow: true, ..hints };
        (guesses, hints)
    }
}

impl Node {
    /// The host chose who guesses the experts of its model.
    pub(super) fn choose_guesser(&mut self, guesser: ExpertGuesser) {
        let wanted = match guesser {
            ExpertGuesser::Usual => self.guessers.set_up_shadow(),
            ExpertGuesser::SmallerCopy => {
                let source = ShadowSource::Own(None);
                Some(ShadowOptions { source, alignment: Alignment::each_token(), tokens: None })
            }
        };
        (self.guessers.own, self.guessers.told) = (wanted.map_or(Own::Unwanted, Own::Wanted), None);
        self.compute.forget_own_shadow();
        self.let_guess(false);
    }

    /// What a shadow of the hosted model takes of the memory that this device lends; nothing while the model is not open, or if
    /// there is no shadow. Why there is none is told once.
    pub(super) fn shadow_bytes(&mut self, lent: Bytes) -> Bytes {
        let Own::Wanted(wanted) = &self.guessers.own else { return Bytes::ZERO };
        let (Some((model, kv_cache)), Some(context)) = (self.hosting.open_model(), self.hosting.context()) else {
            return Bytes::ZERO;
        };
        let planned = self.compute.plan_own_shadow(&model, wanted, RoomMemory { context, kv_cache, lent });
        self.let_guess(planned.is_ok());
        match planned {
            Ok(bytes) => bytes,
            Err(why) => {
                let level = match why {
                    NoShadow::Fits | NoShadow::NoExperts => NoticeLevel::Info,
                    NoShadow::NotWanted | NoShadow::TooLittle { .. } | NoShadow::Failed(_) => NoticeLevel::Warning,
                };
                if self.guessers.told.as_ref() != Some(&why) {
                    self.notice(level, why.to_string());
                    self.guessers.told = Some(why);
                }
                Bytes::ZERO
            }
        }
    }

    /// A shadow could not be made, or does not fit. What was set aside for it is lent again, and others guess.
    pub(super) fn shadow_failed(&mut self, sentence: String) {
        let Own::Wanted(_) = self.guessers.own else { return log::warn!("no shadow: {sentence}") };
        self.guessers.own = Own::GivenUp;
        self.compute.forget_own_shadow();
        self.let_guess(false);
        let sentence = format!("The smaller copy of the model cannot be made: {sentence} Answers go on without it.");
        self.notice(NoticeLevel::Warning, sentence);
        self.lend_beside_shadow();
    }

    /// Nobody's model is hosted any more: guesses are those that the node was set up with.
    pub(super) fn forget_guesser(&mut self) {
        self.guessers.own = Own::Unwanted;
        self.compute.forget_own_shadow();
        self.let_guess(false);
    }

    fn let_guess(&mut self, with_shadow: bool) {
        let (guesses, hints) = match &self.guessers.own {
            Own::Unwanted => self.guessers.set_up.clone(),
            Own::Wanted(own) => self.guessers.options(with_shadow.then_some(own)),
            Own::GivenUp => self.guessers.options(None),
        };
        self.compute.set_guesses(guesses);
        if let Some(peer) = &mut self.peer {
            peer.set_hints(hints);
        }
    }
}
