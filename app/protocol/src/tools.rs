//! The functions that a question offers to the model.

use serde::{Deserialize, Serialize};

/// Functions that the model may call; whoever asks carries the calls out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOffer {
    /// Each as JSON text in the form that chat templates read: `{"type": "function", "function": {"name": …, "description": …,
    /// "parameters": …}}`.
    pub functions: Vec<String>,
    /// Whether the answer must be a call.
    pub choice: ToolChoice,
}

/// Whether an answer must be a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Free,
    /// It begins with a call.
    Any,
    /// It begins with a call of the function of this name.
    Function(String),
}

impl ToolOffer {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let named = if let ToolChoice::Function(name) = &self.choice { name.len() } else { 0 };
        self.functions.iter().fold(named, |sum, function| sum.saturating_add(function.len()))
    }
}
