//! What a model's text is for, and how much it is to think.

use serde::{Deserialize, Serialize};

/// What a piece of an answer is for, as the model marked it (OpenAI's harmony format names these channels).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Channel {
    /// What the model thinks before it answers.
    Reasoning,
    /// What it says.
    #[default]
    Answer,
    /// A call of a function: its name and arguments, in the model's own form.
    ToolCall,
}

/// Text of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelText {
    /// What it is for.
    pub channel: Channel,
    /// The text, without markers.
    pub text: String,
}

/// How much a model is to think before it answers, where its chat template knows that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Not at all, or as little as possible.
    Off,
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

impl ReasoningEffort {
    /// All, by name.
    pub const ALL: [(&str, Self); 4] =
        [("off", Self::Off), ("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, effort)| effort)
    }
}
