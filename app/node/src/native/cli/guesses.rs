//! Options of guesses, where experts come on demand.

use potluck_predict::PredictorKind;

use crate::compute::GuessOptions;

/// Who guesses which experts come next.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct GuessArguments {
    /// host, run: who guesses which experts come next, where they load on demand: none, frequent or router
    #[arg(long, value_name = "WHO", default_value_t)]
    pub predictor: PredictorKind,
    /// Load guesses whether they pay or not
    #[arg(long)]
    pub always_guess: bool,
}

impl From<GuessArguments> for GuessOptions {
    fn from(arguments: GuessArguments) -> Self {
        Self { predictor: arguments.predictor, always: arguments.always_guess }
    }
}
