//! A question on the command line.

use potluck_panel::{Message, PromptRequest, ReasoningEffort, RequestId, Role};

use crate::sampling::SamplingArguments;

/// A question, and how it is answered.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Question")]
pub struct AnswerOptions {
    /// Ask this, print the answer and end
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Maximum tokens of the answer
    #[arg(long, value_name = "N", default_value_t = 256, requires = "prompt")]
    pub max_tokens: u32,
    /// How it is sampled.
    #[command(flatten)]
    pub sampling: SamplingArguments,
    /// How much the model is to reason, if its chat template supports that: off, low, medium, high
    #[arg(long, value_name = "HOW", value_parser = effort, requires = "prompt")]
    pub reasoning: Option<ReasoningEffort>,
    /// Continue the prompt as it is, without the chat template
    #[arg(long, requires = "prompt")]
    pub raw: bool,
}

fn effort(name: &str) -> Result<ReasoningEffort, String> {
    let names = ReasoningEffort::ALL.map(|(name, _)| name).join(", ");
    ReasoningEffort::named(name).ok_or_else(|| format!("one of {names}"))
}

impl AnswerOptions {
    /// The question, if there is one.
    pub fn question(&self) -> Option<PromptRequest> {
        let content = self.prompt.clone()?;
        Some(PromptRequest {
            request: RequestId(1),
            conversation: "terminal".to_owned(),
            messages: vec![Message::new(Role::User, content)],
            raw: self.raw,
            max_tokens: self.max_tokens,
            sampling: self.sampling.0,
            reasoning: self.reasoning,
        })
    }
}
