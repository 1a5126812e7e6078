//! How answers are generated: in every conversation, or in one.

use potluck_panel::{ReasoningEffort, Sampling};
use serde::{Deserialize, Serialize};

/// Most bytes of instructions that come from a file.
const LONGEST_INSTRUCTIONS: usize = 256 << 10;

/// What a question takes along besides the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerSettings {
    /// The system message at the start of a conversation; none if it is blank.
    pub instructions: String,
    /// Maximum tokens per answer.
    pub max_tokens: u32,
    /// How answers are sampled, but for the seed.
    pub sampling: Sampling,
    /// How much models are to reason; `None` as each does by itself.
    pub reasoning: Option<ReasoningEffort>,
    /// Each question is answered twice, side by side.
    pub twice: bool,
    /// A fixed seed; `None` for a new one each time.
    pub seed: Option<u64>,
}

/// In what a conversation's settings differ from those of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only in the instructions.
    Instructions,
    /// Only in how answers are sampled, how long they are, or how much is reasoned.
    Sampling,
    /// In both.
    Both,
}

impl Default for AnswerSettings {
    fn default() -> Self {
        Self {
            instructions: String::new(),
            max_tokens: 1024,
            sampling: Sampling::default(),
            reasoning: None,
            twice: false,
            seed: None,
        }
    }
}

impl AnswerSettings {
    /// The sampling parameters of a prompt; `fresh` is the seed unless one is fixed.
    #[must_use]
    pub fn sampling(&self, fresh: u64) -> Sampling {
        Sampling { seed: self.seed.unwrap_or(fresh), ..self.sampling }.within_limits()
    }

    /// In what they differ from others.
    #[must_use]
    pub fn difference(&self, others: &Self) -> Option<Difference> {
        let has_others_instructions = self.instructions.trim() == others.instructions.trim();
        let is_sampled_alike = *self == Self { instructions: self.instructions.clone(), ..others.clone() };
        match (has_others_instructions, is_sampled_alike) {
            (true, true) => None,
            (false, true) => Some(Difference::Instructions),
            (true, false) => Some(Difference::Sampling),
            (false, false) => Some(Difference::Both),
        }
    }

    /// Everything but the instructions as it is by default.
    #[must_use]
    pub fn with_usual_sampling(self) -> Self {
        Self { instructions: self.instructions, ..Self::default() }
    }

    /// Settings from a file, within the limits of the page's fields.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        self.instructions.truncate(self.instructions.floor_char_boundary(LONGEST_INSTRUCTIONS));
        Self { max_tokens: self.max_tokens.max(1), sampling: self.sampling.within_limits(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_seed_wins_and_values_stay_sane() {
        let sampling = Sampling { temperature: 90.0, ..Sampling::default() };
        let settings = AnswerSettings { seed: Some(5), sampling, ..AnswerSettings::default() };
        let sampling = settings.sampling(9);
        assert_eq!(sampling.seed, 5);
        assert!(sampling.temperature <= 5.0);
        assert_eq!(AnswerSettings::default().sampling(9).seed, 9);
    }

    #[test]
    fn it_is_told_in_what_settings_differ() {
        let usual = AnswerSettings::default();
        let brief = AnswerSettings { instructions: "Be brief.".into(), ..usual.clone() };
        assert_eq!(usual.difference(&usual), None);
        assert_eq!(AnswerSettings { instructions: " \n".into(), ..usual.clone() }.difference(&usual), None, "none");
        assert_eq!(brief.difference(&usual), Some(Difference::Instructions));
        assert_eq!(AnswerSettings { seed: Some(1), ..usual.clone() }.difference(&usual), Some(Difference::Sampling));
        assert_eq!(AnswerSettings { max_tokens: 7, ..brief.clone() }.difference(&usual), Some(Difference::Both));
        assert_eq!(AnswerSettings { max_tokens: 7, ..brief.clone() }.with_usual_sampling(), brief);
    }

    #[test]
    fn settings_from_a_file_have_limits() {
        let sampling = Sampling { temperature: 1e9, ..Sampling::default() };
        let long = "ä".repeat(LONGEST_INSTRUCTIONS);
        let read = AnswerSettings { instructions: long, max_tokens: 0, sampling, ..AnswerSettings::default() };
        let read = read.within_limits();
        assert_eq!((read.instructions.len(), read.max_tokens), (LONGEST_INSTRUCTIONS, 1));
        assert!(read.sampling.temperature <= 5.0);
    }
}
