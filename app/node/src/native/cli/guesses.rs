//! Options of guesses, where experts come on demand.

use std::num::NonZeroU32;
use std::path::PathBuf;

use potluck_predict::{Alignment, NoAlignment, PredictorKind};

use crate::compute::{GuessOptions, ShadowOptions};

/// Who guesses which experts come next.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct GuessArguments {
    /// host, run: who guesses which experts come next, where they load on demand: none, frequent or router
    #[arg(long, value_name = "WHO", default_value_t)]
    pub predictor: PredictorKind,
    /// Load guesses whether they pay or not
    #[arg(long)]
    pub always_guess: bool,
    /// run: the same model in a type of fewer bits, which guesses a token ahead (`potluck-node requantize` makes one)
    #[arg(long, value_name = "FILE")]
    pub shadow: Option<PathBuf>,
    /// run: every how many tokens the shadow takes over the model's token and its KV cache: T1, T4KV16, KV8 or unaligned
    #[arg(long, value_name = "HOW", default_value = "T1", value_parser = parse_alignment)]
    pub align: Alignment,
}

impl Default for GuessArguments {
    /// The options of an empty command line.
    fn default() -> Self {
        let align = Alignment { token: NonZeroU32::new(1), kv: None };
        Self { predictor: PredictorKind::None, always_guess: false, shadow: None, align }
    }
}

fn parse_alignment(text: &str) -> Result<Alignment, NoAlignment> {
    text.parse()
}

impl From<GuessArguments> for GuessOptions {
    fn from(arguments: GuessArguments) -> Self {
        let GuessArguments { predictor, always_guess: always, shadow, align } = arguments;
        let shadow = shadow.map(|file| ShadowOptions { file, alignment: align });
        let predictor = if shadow.is_some() { PredictorKind::Shadow } else { predictor };
        Self { predictor, always, shadow }
    }
}
