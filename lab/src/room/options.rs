//! Options with which only measurements change something.

use std::path::PathBuf;
use std::str::FromStr;

use potluck_engine::Tier;
use potluck_predict::PredictorKind;
use potluck_swarm::HintOptions;
use potluck_terminal::Setup;

/// How often the prompt is asked, and when.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Rounds")]
pub struct RoundOptions {
    /// How many times the prompt is asked, each in a new conversation; prints a line of JSON for each
    #[arg(long, value_name = "N", default_value_t = 1, requires = "prompt")]
    pub rounds: u32,
    /// From how many conversations at once, several numbers one after the other
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", requires = "prompt")]
    pub conversations: Vec<u32>,
    /// Prompts of about so many tokens besides, each answered by one token or by so many
    #[arg(long, value_name = "N[/TOKENS],…", value_delimiter = ',', requires = "prompt")]
    pub prompt_tokens: Vec<Lengths>,
    /// Wait until this many devices hold experts for others
    #[arg(long, value_name = "N", default_value_t = 0, requires = "prompt")]
    pub holders: usize,
    /// Wait until this many devices are in the room
    #[arg(long, value_name = "N", default_value_t = 1, requires = "prompt")]
    pub members: usize,
    /// A file that is made before the last round
    #[arg(long, value_name = "FILE", requires = "prompt")]
    pub last_round: Option<PathBuf>,
}

/// Tokens of a prompt and of its answer: `128/64`, or `128` for an answer of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Of the prompt.
    pub prompt: u32,
    /// Of the answer.
    pub answer: u32,
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (prompt, answer) = text.split_once('/').unwrap_or((text, "1"));
        let count = |text: &str| text.parse().ok().filter(|count| *count > 0);
        let lengths = count(prompt).zip(count(answer)).map(|(prompt, answer)| Self { prompt, answer });
        lengths.ok_or_else(|| format!("\"{text}\" is not a number of tokens like 128 or 128/64."))
    }
}

/// Who guesses what holders that load on demand will be asked for.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Guesses")]
pub struct HintArguments {
    /// Who guesses what holders that load on demand will be asked for: none, frequent or recorded
    #[arg(long, value_name = "WHO", default_value_t = PredictorKind::Frequent)]
    pub hints: PredictorKind,
}

impl HintArguments {
    /// Beside a recorded text a shadow computes and is not believed.
    pub fn apply(&self, setup: &mut Setup) {
        let hints = &mut setup.node.hints;
        if !hints.shadow || self.hints != PredictorKind::Frequent {
            hints.predictor = self.hints;
        }
    }
}

/// What a recorded text is known with, and how far ahead guesses look.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Guesses")]
pub struct RecallOptions {
    /// Percent of the experts that are guessed right when the same prompt is asked again, by round from the second on; 0 guesses
    /// nothing. On one device the recorded text is believed then, in a room with --hints recorded
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', value_parser = parse_recall)]
    pub recalls: Vec<f64>,
    /// Blocks to look ahead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub lead: Option<u16>,
    /// Load guesses, and send hints, whether they pay or not
    #[arg(long)]
    pub always_guess: bool,
}

impl RecallOptions {
    /// Guesses of the experts that this device loads. A shadow beside a recorded text shows what its computing costs at a known
    /// recall.
    pub fn apply_to_own(&self, setup: &mut Setup) {
        let guesses = &mut setup.node.guesses;
        if !self.recalls.is_empty() {
            guesses.predictor = PredictorKind::Recorded;
        }
        guesses.recalls.clone_from(&self.recalls);
        (guesses.lead, guesses.always) = (self.lead, self.always_guess);
    }

    /// Guesses of what other devices will be asked for, and of a stage's own experts.
    pub fn apply_to_hints(&self, setup: &mut Setup) {
        let hints = &mut setup.node.hints;
        hints.recalls.clone_from(&self.recalls);
        (hints.lead, hints.always) = (self.lead(), self.always_guess);
        let guesses = &mut setup.node.guesses;
        guesses.recalls.clone_from(&self.recalls);
        (guesses.lead, guesses.always) = (self.lead, self.always_guess);
    }

    /// The percentage with which a recorded text is known in a round; none if nobody guesses.
    pub fn of_round(&self, round: u32) -> Option<f64> {
        let index = (round as usize).checked_sub(1)?.min(self.recalls.len().saturating_sub(1));
        self.recalls.get(index).map(|recall| (recall * 1e4).round() / 100.0).filter(|percent| *percent > 0.0)
    }

    /// Blocks to look ahead where others are told what they will be asked for.
    pub fn lead(&self) -> u16 {
        self.lead.unwrap_or(HintOptions::LEAD)
    }
}

fn parse_recall(text: &str) -> Result<f64, String> {
    let percent = text.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(|percent: f64| percent / 100.0).ok_or_else(|| "expected percent, such as 86,95.7".to_owned())
}

/// Another tier than the device's own.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct TierOption {
    /// Treat the device as this tier, whatever it reports: software or full
    #[arg(long, value_name = "TIER", value_parser = parse_tier, help_heading = "Another device")]
    pub tier: Option<Tier>,
}

fn parse_tier(text: &str) -> Result<Tier, String> {
    match text {
        "software" => Ok(Tier::Software),
        "full" => Ok(Tier::Full),
        _ => Err("expected software or full".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_a_prompt_and_perhaps_an_answer() {
        let lengths = |prompt, answer| Ok(Lengths { prompt, answer });
        assert_eq!("16".parse::<Lengths>(), lengths(16, 1));
        assert_eq!("128/256".parse::<Lengths>(), lengths(128, 256));
        for wrong in ["", "0", "16/", "/16", "16/0", "a", "1/2/3"] {
            assert!(wrong.parse::<Lengths>().is_err(), "{wrong} is no length");
        }
    }

    #[test]
    fn the_last_recall_counts_for_all_further_rounds() {
        let recall = RecallOptions { recalls: vec![0.0, 0.957], ..RecallOptions::default() };
        let of_rounds: Vec<Option<f64>> = (0..4).map(|round| recall.of_round(round)).collect();
        assert_eq!(of_rounds, [None, None, Some(95.7), Some(95.7)], "the first round records");
    }
}
