//! Text to tokens and back, as the coordinator needs it. `potluck-node` implements it with `potluck-model`.

use potluck_plan::{Candidates, ChannelText};
use potluck_protocol::{PromptRequest, Sampling};

/// The language side of a model.
pub trait Language: Send + Sync {
    /// The prompt's tokens, through the chat template.
    ///
    /// # Errors
    /// One sentence: there are too many messages or too much text, or the template refuses them.
    fn render(&self, question: &PromptRequest) -> Result<Vec<u32>, String>;

    /// Refuses, without rendering it, a question that certainly does not fit a context of this many tokens.
    ///
    /// # Errors
    /// One sentence, with how long it is and how long it may be.
    fn fits(&self, _question: &PromptRequest, _context: u32) -> Result<(), String> {
        Ok(())
    }

    /// Tokens of plain text, control tokens not recognised, with the beginning-of-text token where the model wants one.
    ///
    /// # Errors
    /// One sentence: the text is too long.
    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String>;

    /// The bytes a token stands for; a special token has its name. Two token sequences with the same bytes are the
    /// same text to the model, split differently.
    fn piece(&self, token: u32) -> Vec<u8>;

    /// A fresh decoder for the answer to a question whose prompt has these tokens. A text that is continued, a raw one or an answer
    /// that has begun, goes on with its leading space.
    fn decoder(&self, question: &PromptRequest, prompt: &[u32]) -> Box<dyn TextStream>;

    /// The token ends an answer.
    fn is_end(&self, token: u32) -> bool;

    /// Samples the token at `position` from the candidates. Pure, so that a replay samples the same token.
    fn choose(&self, candidates: &Candidates, sampling: &Sampling, position: u32, log: &[u32]) -> u32;
}

/// Turns tokens into the texts of their channels without ever splitting a character.
pub trait TextStream: Send {
    /// The texts that are complete after this token; often none.
    fn push(&mut self, token: u32) -> Vec<ChannelText>;

    /// True once a stop string has come: what follows is not part of the answer.
    fn ended(&self) -> bool {
        false
    }

    /// What is left at the end.
    fn finish(&mut self) -> Vec<ChannelText>;
}
