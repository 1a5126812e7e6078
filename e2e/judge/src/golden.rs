//! The golden files.

use potluck_gguf::synthetic::Synthetic;
use serde::Deserialize;

/// `e2e/golden/data/NAME.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Golden {
    /// Name of the model.
    pub name: String,
    /// How the model is made.
    pub model: Synthetic,
    /// Margins below this say nothing.
    pub tolerance: f32,
    /// What was asked and answered.
    pub prompts: Vec<Prompt>,
}

/// One prompt, teacher-forced.
#[derive(Clone, Debug, Deserialize)]
pub struct Prompt {
    /// Tokens.
    pub ids: Vec<u32>,
    /// The reference's best token after each of them.
    pub argmax: Vec<u32>,
    /// How far the reference's second is behind.
    pub margin: Vec<f32>,
    /// The reference's eight best tokens after each.
    pub top: Vec<Vec<u32>>,
    /// Their logits.
    pub logits: Vec<Vec<f32>>,
}
