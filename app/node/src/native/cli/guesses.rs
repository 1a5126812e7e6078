//! Options of guesses, where experts come on demand.

use std::path::PathBuf;

use potluck_engine::Eviction;
use potluck_gguf::TensorType;
use potluck_predict::{Alignment, NoAlignment, PredictorKind};
use potluck_swarm::HintOptions;

use crate::compute::{GuessOptions, ShadowOptions, ShadowSource};
use crate::native::study::{StudyError, parse_type};

/// Who guesses which experts come next.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct GuessArguments {
    /// host, run: who guesses which experts come next, where they load on demand: none, frequent or router
    #[arg(long, value_name = "WHO", default_value_t)]
    pub predictor: PredictorKind,
    /// Load guesses, and send hints, whether they pay or not
    #[arg(long)]
    pub always_guess: bool,
    /// host, run: the same model in a type of fewer bits, which guesses a token ahead, on this device: a file
    /// (`potluck-node requantize` makes one), or `own`: made from the model itself, in a part of the memory that is lent, of far
    /// fewer bits or as `own:q4_0`
    #[arg(long, value_name = "FILE", value_parser = parse_shadow)]
    pub shadow: Option<ShadowFrom>,
    /// host, run: every how many tokens the shadow takes over the model's token and its KV cache: T1, T4KV16, KV8 or unaligned
    #[arg(long, value_name = "HOW", default_value = "T1", value_parser = parse_alignment)]
    pub align: Alignment,
    /// Which expert makes room where they load on demand: lru (the one used longest ago) or lfu (the one used least often)
    #[arg(long, value_name = "WHICH", default_value = "lru", value_parser = parse_eviction)]
    pub eviction: Eviction,
    /// For tests: the shadow is gone after so many tokens of answers
    #[arg(long, hide = true, value_name = "N")]
    pub shadow_tokens: Option<u32>,
    /// For measurements: who guesses what holders that load on demand will be asked for: none, frequent or recorded
    #[arg(long, hide = true, value_name = "WHO", default_value_t = PredictorKind::Frequent)]
    pub hints: PredictorKind,
    /// For measurements, with `recorded`: percent of the experts that are guessed right when the same prompt is asked again, by
    /// round from the second on; 0 guesses nothing
    #[arg(long, hide = true, value_name = "PERCENT,…", value_delimiter = ',', value_parser = parse_recall)]
    pub recalls: Vec<f64>,
    /// For measurements: blocks to look ahead
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub lead: Option<u16>,
}

/// What a shadow is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowFrom {
    /// A file.
    File(PathBuf),
    /// The model that it guesses for, in this type.
    Own(Option<TensorType>),
}

fn parse_shadow(text: &str) -> Result<ShadowFrom, StudyError> {
    Ok(match text.split_once(':') {
        None if text == "own" => ShadowFrom::Own(None),
        Some(("own", kind)) => ShadowFrom::Own(Some(parse_type(kind)?)),
        _ => ShadowFrom::File(text.into()),
    })
}

impl GuessArguments {
    /// The percentage with which a recorded text is known in a round; none if nobody guesses.
    pub(super) fn recall(&self, round: u32) -> Option<f64> {
        let index = (round as usize).checked_sub(1)?.min(self.recalls.len().saturating_sub(1));
        self.recalls.get(index).map(|recall| (recall * 1e4).round() / 100.0).filter(|percent| *percent > 0.0)
    }

    /// Blocks to look ahead where others are told what they will be asked for.
    pub(super) fn lead(&self) -> u16 {
        self.lead.unwrap_or(HintOptions::LEAD)
    }
}

impl Default for GuessArguments {
    /// The options of an empty command line.
    fn default() -> Self {
        Self {
            predictor: PredictorKind::None,
            always_guess: false,
            shadow: None,
            align: Alignment::each_token(),
            eviction: Eviction::default(),
            shadow_tokens: None,
            hints: PredictorKind::Frequent,
            recalls: Vec::new(),
            lead: None,
        }
    }
}

fn parse_alignment(text: &str) -> Result<Alignment, NoAlignment> {
    text.parse()
}

fn parse_eviction(text: &str) -> Result<Eviction, String> {
    match text {
        "lru" => Ok(Eviction::Lru),
        "lfu" => Ok(Eviction::Lfu),
        _ => Err("expected lru or lfu".to_owned()),
    }
}

fn parse_recall(text: &str) -> Result<f64, String> {
    let percent = text.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(|percent: f64| percent / 100.0).ok_or_else(|| "expected percent, such as 86,95.7".to_owned())
}

impl From<&GuessArguments> for HintOptions {
    fn from(arguments: &GuessArguments) -> Self {
        // As for a device's own experts: beside a recorded text a shadow computes and is not believed.
        let shadow = arguments.shadow.is_some();
        let is_believed = shadow && arguments.hints == PredictorKind::Frequent;
        Self {
            predictor: if is_believed { PredictorKind::Shadow } else { arguments.hints },
            shadow,
            recalls: arguments.recalls.clone(),
            always: arguments.always_guess,
            lead: arguments.lead(),
        }
    }
}

impl From<GuessArguments> for GuessOptions {
    fn from(arguments: GuessArguments) -> Self {
        let GuessArguments {
            predictor,
            always_guess: always,
            shadow,
            align,
            shadow_tokens: tokens,
            recalls,
            lead,
            eviction,
            ..
        } = arguments;
        let shadow = shadow.map(|shadow| {
            let source = match shadow {
                ShadowFrom::File(file) => ShadowSource::File(file),
                ShadowFrom::Own(kind) => ShadowSource::Own(kind),
            };
            ShadowOptions { source, alignment: align, tokens }
        });
        // A shadow beside a recorded text shows what its computing costs at a known recall.
        let is_believed = shadow.is_some() && predictor != PredictorKind::Recorded;
        let predictor = if is_believed { PredictorKind::Shadow } else { predictor };
        Self { predictor, always, recalls, lead, eviction, shadow }
    }
}
