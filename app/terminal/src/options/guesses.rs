//! Who guesses which experts come next, where they load on demand.

use potluck_node::compute::{GuessOptions, ShadowOptions, ShadowSource};
use potluck_predict::{Alignment, NoAlignment, PredictorKind};
use potluck_swarm::HintOptions;

use crate::values::{parse_predictor, parse_shadow};

/// Who guesses which experts come next.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Experts on demand")]
pub struct GuessArguments {
    /// Who guesses which experts come next, where they load on demand: none, frequent or router
    #[arg(long, value_name = "WHO", default_value_t, value_parser = parse_predictor, conflicts_with = "shadow")]
    pub predictor: PredictorKind,
    /// The same model in a type of fewer bits, which guesses a token ahead, on this device: a file, or `own`: made from the
    /// model itself, in a part of the memory that is lent, of far fewer bits or as `own:q4_0`
    #[arg(long, value_name = "FILE", value_parser = parse_shadow)]
    pub shadow: Option<ShadowSource>,
    /// Every how many tokens the shadow takes over the model's token and its KV cache: T1, T4KV16, KV8 or unaligned
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
