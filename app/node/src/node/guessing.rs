//! Chooses who guesses experts, and makes room for a shadow.

use potluck_panel::{ExpertGuesser, NoticeLevel};
use potluck_plan::Bytes;
use potluck_predict::Alignment;

use super::Node;
use super::guessers::ShadowWish;
use crate::compute::{NoShadow, RoomMemory, ShadowOptions, ShadowSource};

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
        (self.guessers.own, self.guessers.reported) = (wanted.map_or(ShadowWish::Unwanted, ShadowWish::Wanted), None);
        self.compute.shadows.forget_own();
        self.let_guess(false);
    }

    /// What a shadow of the hosted model takes of the memory that this device lends; nothing while the model is not open, or if
    /// there is no shadow. Why there is none is told once.
    pub(super) fn shadow_bytes(&mut self, lent: Bytes) -> Bytes {
        let ShadowWish::Wanted(wanted) = &self.guessers.own else { return Bytes::ZERO };
        let (Some((model, kv_cache)), Some(context)) = (self.hosting.open_model(), self.hosting.context()) else {
            return Bytes::ZERO;
        };
        let planned = self.compute.shadows.plan_own(&model, wanted, RoomMemory { context, kv_cache, lent });
        self.let_guess(planned.is_ok());
        match planned {
            Ok(bytes) => bytes,
            Err(why) => {
                let level = match why {
                    NoShadow::Fits | NoShadow::NoExperts => NoticeLevel::Info,
                    NoShadow::NotWanted | NoShadow::TooLittle { .. } | NoShadow::Failed(_) => NoticeLevel::Warning,
                };
                if self.guessers.reported.as_ref() != Some(&why) {
                    self.notice(level, why.to_string());
                    self.guessers.reported = Some(why);
                }
                Bytes::ZERO
            }
        }
    }

    /// A shadow could not be made, or does not fit. What was set aside for it is lent again, and others guess.
    pub(super) fn shadow_failed(&mut self, sentence: String) {
        let ShadowWish::Wanted(_) = self.guessers.own else { return log::warn!("no shadow: {sentence}") };
        self.guessers.own = ShadowWish::GivenUp;
        self.compute.shadows.forget_own();
        self.let_guess(false);
        let sentence = format!("The smaller copy of the model cannot be made: {sentence} Answers go on without it.");
        self.notice(NoticeLevel::Warning, sentence);
        self.lend_beside_shadow();
    }

    /// Nobody's model is hosted any more: guesses are those that the node was set up with.
    pub(super) fn forget_guesser(&mut self) {
        self.guessers.own = ShadowWish::Unwanted;
        self.compute.shadows.forget_own();
        self.let_guess(false);
    }

    fn let_guess(&mut self, with_shadow: bool) {
        let (guesses, hints) = match &self.guessers.own {
            ShadowWish::Unwanted => self.guessers.set_up.clone(),
            ShadowWish::Wanted(own) => self.guessers.options(with_shadow.then_some(own)),
            ShadowWish::GivenUp => self.guessers.options(None),
        };
        self.compute.set_guesses(guesses);
        if let Some(peer) = &mut self.peer {
            peer.set_hints(hints);
        }
    }
}
