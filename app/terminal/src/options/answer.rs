//! A question on the command line.

use potluck_panel::{LogitOptions, Message, PromptRequest, ReasoningEffort, RequestId, Role, ToolOffer};

use crate::sampling::SamplingArguments;

/// A question, and how it is answered.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Question")]
pub struct AnswerOptions {
    /// Ask this question, print the answer and exit
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Maximum length of the answer, in tokens
    #[arg(long, value_name = "N", default_value_t = 256, requires = "prompt")]
    pub max_tokens: u32,
    /// How it is sampled.
    #[command(flatten)]
    pub sampling: SamplingArguments,
    /// How much the model reasons before it answers, if its chat template supports that: off, low, medium or high
    #[arg(long, value_name = "HOW", value_parser = effort, requires = "prompt")]
    pub reasoning: Option<ReasoningEffort>,
    /// Complete the prompt as plain text, without the model's chat template
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
            tools: ToolOffer::default(),
            logits: LogitOptions::default(),
        })
    }
}
