//! The golden files.

use potluck_gguf::synthetic::Synthetic;
use serde::Deserialize;

/// `e2e/golden/data/NAME.json.gz`.
#[derive(Clone, Debug, Deserialize)]
pub struct Golden {
    /// Name of the model.
    pub name: String,
    /// The synthetic model's description.
    pub model: Synthetic,
    /// Ignore positions whose margin is below this.
    pub tolerance: f32,
    /// The prompts and their reference results.
    pub prompts: Vec<Prompt>,
}

/// One prompt, teacher-forced.
#[derive(Clone, Debug, Deserialize)]
pub struct Prompt {
    /// Tokens.
    pub ids: Vec<u32>,
    /// The reference's best token after each token.
    pub argmax: Vec<u32>,
    /// The reference's margin between the best and second token.
    pub margin: Vec<f32>,
    /// The reference's eight best tokens at each position.
    pub top: Vec<Vec<u32>>,
    /// Their logits.
    pub logits: Vec<Vec<f32>>,
}
