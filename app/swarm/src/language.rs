//! Text to tokens and back, as the coordinator needs it. `potluck-node` implements it with `potluck-model`.

use potluck_plan::{AllowedTokens, Candidates, ChannelText};
use potluck_protocol::{PromptRequest, Sampling};

/// Why a question is not taken whose answer must have a form, by a host that knows none.
const NO_FORMS: &str = "This room's host cannot hold an answer to a form. Ask without one.";

/// Why nothing is written between two texts.
const NO_INFILL: &str = "This room's host cannot write between two texts. Leave the suffix out.";

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

    /// Tokens after which the model writes what belongs between these texts.
    ///
    /// # Errors
    /// One sentence: the model was not trained for that, or the texts are too long.
    fn infill(&self, _before: &str, _after: &str) -> Result<Vec<u32>, String> {
        Err(NO_INFILL.to_owned())
    }

    /// The bytes a token stands for; a special token has its name. Two token sequences with the same bytes are the
    /// same text to the model, split differently.
    fn piece(&self, token: u32) -> Vec<u8>;

    /// A fresh decoder for the answer to a question whose prompt has these tokens. A text that is continued, a raw one or an answer
    /// that has begun, goes on with its leading space.
    fn decoder(&self, question: &PromptRequest, prompt: &[u32]) -> Box<dyn TextStream>;

    /// What holds the answer to a question to its form; `None`: its form is free. The prompt has these tokens, and the model chooses among
    /// this many.
    ///
    /// # Errors
    /// One sentence: what cannot be read of the form, or is too large.
    fn grammar(
        &self,
        question: &PromptRequest,
        _prompt: &[u32],
        _vocabulary: u32,
    ) -> Result<Option<Box<dyn Grammar>>, String> {
        if question.logits.form.is_free() { Ok(None) } else { Err(NO_FORMS.to_owned()) }
    }

    /// The token ends an answer.
    fn is_end(&self, token: u32) -> bool;

    /// Samples the token at `position` from the candidates. Pure, so that a replay samples the same token.
    fn choose(&self, candidates: &Candidates, sampling: &Sampling, position: u32, log: &[u32]) -> u32;
}

/// Holds an answer to a form: says which tokens may come next. It depends on nothing but the tokens that it was given.
pub trait Grammar: Send {
    /// Which tokens may come next, then which may come after each of these drafts: one more than there are drafts. The first draft that may
    /// not come is taken away, with those behind it. Nothing changes.
    ///
    /// # Errors
    /// One sentence: it takes too long to find out, or nothing may come.
    fn allowed(&mut self, drafts: &mut Vec<u32>) -> Result<Vec<AllowedTokens>, String>;

    /// The answer goes on with this token.
    ///
    /// # Errors
    /// One sentence: it does not fit the form.
    fn push(&mut self, token: u32) -> Result<(), String>;

    /// The answer has its form, and nothing can follow.
    fn is_complete(&self) -> bool;

    /// The answer begins again.
    fn begin_again(&mut self);
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
