//! Who guesses which experts come next, where they load on demand.

use potluck_node::compute::{GuessOptions, ShadowOptions, ShadowSource};
use potluck_predict::{Alignment, NoAlignment, PredictorKind};
use potluck_swarm::HintOptions;

use crate::values::{parse_predictor, parse_shadow};

/// Who guesses which experts come next.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Experts on demand")]
pub struct GuessArguments {
    /// If experts are loaded on demand, how to guess which come next, so that they load in time: none, frequent (those that often
    /// followed the last token's) or router (the next block's router, asked early)
    #[arg(long, value_name = "WHO", default_value_t, value_parser = parse_predictor, conflicts_with = "shadow")]
    pub predictor: PredictorKind,
    /// Guess the next experts with a shadow model instead: the same model with fewer bits per weight. Name its GGUF file, which needs
    /// memory besides --budget, or make it from the model with `own`, within --budget. `own:q4_0` also chooses its weight type
    #[arg(long, value_name = "FILE", value_parser = parse_shadow)]
    pub shadow: Option<ShadowSource>,
    /// How often the shadow model follows the model: with T4 it takes the model's token every 4 tokens, with KV8 its KV cache every 8
    /// tokens, with T4KV8 both, and with `unaligned` neither
    #[arg(long, value_name = "HOW", default_value = "T1", requires = "shadow", value_parser = parse_alignment)]
    pub align: Alignment,
}

impl GuessArguments {
    /// Who guesses the experts that this device loads.
    pub fn guesses(&self) -> GuessOptions {
        let guesses = GuessOptions { predictor: self.predictor, ..GuessOptions::default() };
        match self.shadow.clone() {
            Some(source) => guesses.with_shadow(ShadowOptions { source, alignment: self.align, tokens: None }),
            None => guesses,
        }
    }

    /// Who guesses what other devices will be asked for.
    pub fn hints(&self) -> HintOptions {
        match self.shadow {
            Some(_) => HintOptions::default().with_shadow(),
            None => HintOptions::default(),
        }
    }
}

fn parse_alignment(text: &str) -> Result<Alignment, NoAlignment> {
    text.parse()
}
