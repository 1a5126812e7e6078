//! Tokenizer and chat template of the served model, where this program has them.

use std::sync::{Arc, LazyLock};

use potluck_model::{SpecialText, TokenKind, Tokenizer};
use potluck_panel::PromptRequest;
use potluck_swarm::Language;

use crate::error::ApiError;

/// Bytes of a text, at most: tokenizing them takes about a second.
const MAX_TEXT: usize = 2 << 20;

/// Tokenizer and chat template of the served model. In a room its host has them; a program that serves a file has them as well.
#[derive(Clone)]
pub struct TextSide(Arc<LazyLock<Result<Words, String>, ReadWords>>);

/// A model's tokenizer, and what renders conversations for it.
pub type Words = (Arc<Tokenizer>, Arc<dyn Language>);
type ReadWords = Box<dyn FnOnce() -> Result<Words, String> + Send>;

impl TextSide {
    /// Those that this reads, once they are needed. It fails with a sentence.
    #[must_use]
    pub fn read_by(read: impl FnOnce() -> Result<Words, String> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(read))))
    }

    fn words(&self) -> Result<&Words, ApiError> {
        LazyLock::force(&self.0).as_ref().map_err(|sentence| ApiError::Failed(sentence.clone()))
    }

    /// The tokens of a text, with the token that begins texts or without, and with control tokens recognised in it or not.
    pub(crate) fn tokens(&self, text: &str, with_begin: bool, special: SpecialText) -> Result<Vec<u32>, ApiError> {
        if text.len() > MAX_TEXT {
            return Err(ApiError::invalid("content", format!("expected at most {MAX_TEXT} bytes")));
        }
        let (tokenizer, _) = self.words()?;
        Ok(if with_begin { tokenizer.encode_prompt(text, special) } else { tokenizer.encode(text, special) })
    }

    /// The bytes of a token; a control token has its name.
    pub(crate) fn piece(&self, token: u32) -> Result<Vec<u8>, ApiError> {
        let (tokenizer, _) = self.words()?;
        Ok(match tokenizer.kind(token) {
            Some(TokenKind::Control | TokenKind::UserDefined) => tokenizer.name(token).into_bytes(),
            _ => tokenizer.piece(token).to_vec(),
        })
    }

    /// The text of tokens.
    pub(crate) fn text(&self, tokens: &[u32]) -> Result<String, ApiError> {
        let size = self.words()?.0.len();
        if let Some(unknown) = tokens.iter().find(|token| **token as usize >= size) {
            return Err(ApiError::invalid("tokens", format!("the model has {size} tokens, and no {unknown}")));
        }
        let pieces = tokens.iter().map(|token| self.piece(*token)).collect::<Result<Vec<_>, _>>()?;
        Ok(String::from_utf8_lossy(&pieces.concat()).into_owned())
    }

    /// The tokens of a conversation, through the chat template.
    pub(crate) fn rendered(&self, prompt: &PromptRequest) -> Result<Vec<u32>, ApiError> {
        self.words()?.1.render(prompt).map_err(ApiError::of_refused)
    }
}
