//! Text to tokens and back, as the coordinator needs it. `potluck-node` implements it with `potluck-model`.

use potluck_plan::Candidates;
use potluck_protocol::{Message, Sampling};

/// The language side of a model.
pub trait Language: Send + Sync {
    /// The prompt's tokens, through the chat template.
    ///
    /// # Errors
    /// One sentence: there are too many messages or too much text, or the template refuses them.
    fn render(&self, messages: &[Message]) -> Result<Vec<u32>, String>;

    /// The end of a rendered prompt that belongs to its answer: the tag by which some templates begin the model's reasoning. Empty
    /// for other prompts.
    fn opened_reasoning(&self, prompt: &[u32]) -> String;

    /// Tokens of plain text, control tokens not recognised, with the beginning-of-text token where the model wants one.
    ///
    /// # Errors
    /// One sentence: the text is too long.
    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String>;

    /// The bytes a token stands for; a special token has its name. Two token sequences with the same bytes are the
    /// same text to the model, split differently.
    fn piece(&self, token: u32) -> Vec<u8>;

    /// A fresh decoder for a stream of tokens.
    fn decoder(&self) -> Box<dyn TextStream>;

    /// The token ends an answer.
    fn is_end(&self, token: u32) -> bool;

    /// Samples the token at `position` from the candidates. Pure, so that a replay samples the same token.
    fn choose(&self, candidates: &Candidates, sampling: &Sampling, position: u32, log: &[u32]) -> u32;
}

/// Turns tokens into text without ever splitting a character.
pub trait TextStream: Send {
    /// Text that is complete after this token; may be empty.
    fn push(&mut self, token: u32) -> String;

    /// What is left at the end.
    fn finish(&mut self) -> String;
}
