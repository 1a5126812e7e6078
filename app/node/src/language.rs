//! The text side of a model: tokenizer and chat template of `potluck-model`.

use std::sync::Arc;

use potluck_gguf::Metadata;
use potluck_model::{
    ChatTemplate, Detokenizer, LocalTime, Message as TemplateMessage, RenderOptions, SpecialText, StopTokens,
    TemplateError, Tokenizer, TokenizerError,
};
use potluck_plan::Candidates;
use potluck_protocol::{Message, Role, Sampling};
use potluck_swarm::{Language, TextStream};
use thiserror::Error;

/// Most messages of a conversation. Each costs the template steps, and an empty one costs its sender almost nothing.
pub const MAX_MESSAGES: usize = 4_096;
/// Most bytes of text in a conversation, about half a million tokens of English. Tokenizing them takes a slow tab about a
/// second, in which the room's other answers wait.
pub const MAX_TEXT_BYTES: usize = 2 << 20;

/// Most tokens of a tag and the space after it: one a byte.
const OPENING_TOKENS: usize = 16;

/// Why a prompt is refused before it is rendered, as a sentence for its sender.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PromptError {
    /// Too many messages.
    #[error("The conversation has {0} messages, and at most {MAX_MESSAGES} are read: start a new one.")]
    TooManyMessages(usize),
    /// Too much text: more than the context holds, or than this host reads at once.
    #[error(
        "The conversation has {bytes} bytes of text, and at most {max} are read: start a new one or shorten the message."
    )]
    TooLong {
        /// Bytes of text.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The template refuses the messages, or fails.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Why a model's text side cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LanguageError {
    /// The vocabulary is not valid.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Not even the ChatML template can be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Tokenizer, chat template and stop tokens of a model.
pub struct ModelLanguage {
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    stop: StopTokens,
    /// What every prompt says is now: that it does not change keeps what the model has read of a conversation.
    now: LocalTime,
    /// Most bytes of text in a prompt.
    max_bytes: usize,
}

impl ModelLanguage {
    /// Reads them from a file's metadata, for prompts of at most `context` tokens that are dated `now`. Also returns sentences for
    /// people about what was assumed or replaced.
    ///
    /// # Errors
    /// The vocabulary cannot be read.
    pub fn read(metadata: &Metadata, context: u32, now: LocalTime) -> Result<(Self, Vec<String>), LanguageError> {
        let tokenizer = Tokenizer::from_metadata(metadata)?;
        let mut remarks: Vec<String> = tokenizer.warnings().iter().map(ToString::to_string).collect();
        let template = match ChatTemplate::from_metadata(metadata, &tokenizer) {
            Ok(template) => template,
            Err(error) => {
                remarks.push(format!("{error} ChatML is used instead."));
                ChatTemplate::chatml()?
            }
        };
        let stop = StopTokens::from_metadata(metadata, &tokenizer)?;
        // A longer text certainly has more tokens than the context.
        let max_bytes = (context as usize).saturating_mul(tokenizer.longest_piece()).min(MAX_TEXT_BYTES);
        Ok((Self { tokenizer: Arc::new(tokenizer), template, stop, now, max_bytes }, remarks))
    }

    /// Refuses what is too large before any work is done on it.
    fn check(&self, messages: usize, bytes: usize) -> Result<(), PromptError> {
        if messages > MAX_MESSAGES {
            return Err(PromptError::TooManyMessages(messages));
        }
        if bytes > self.max_bytes {
            return Err(PromptError::TooLong { bytes, max: self.max_bytes });
        }
        Ok(())
    }

    fn encode(&self, messages: &[Message]) -> Result<Vec<u32>, PromptError> {
        self.check(messages.len(), messages.iter().map(|message| message.content.len()).sum())?;
        let messages: Vec<TemplateMessage> =
            messages.iter().map(|message| TemplateMessage::new(role(message.role), message.content.clone())).collect();
        let options = RenderOptions { now: Some(self.now), ..RenderOptions::default() };
        Ok(self.template.encode(&self.tokenizer, &messages, &options)?)
    }
}

impl Language for ModelLanguage {
    /// Continues a conversation that ends with a message of the assistant: the message follows the start of its answer.
    fn render(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        self.encode(messages).map_err(|error| error.to_string())
    }

    fn opened_reasoning(&self, prompt: &[u32]) -> String {
        let end = &prompt[prompt.len().saturating_sub(OPENING_TOKENS)..];
        let end: Vec<u8> = end.iter().flat_map(|token| self.piece(*token)).collect();
        potluck_model::opened_reasoning(&String::from_utf8_lossy(&end)).to_owned()
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        self.check(1, text.len()).map_err(|error| error.to_string())?;
        Ok(self.tokenizer.encode_prompt(text, SpecialText::Literal))
    }

    fn piece(&self, token: u32) -> Vec<u8> {
        self.tokenizer.piece(token).to_vec()
    }

    fn decoder(&self) -> Box<dyn TextStream> {
        Box::new(Stream { tokenizer: self.tokenizer.clone(), detokenizer: self.tokenizer.detokenizer() })
    }

    fn is_end(&self, token: u32) -> bool {
        self.stop.contains(token)
    }

    fn choose(&self, candidates: &Candidates, sampling: &Sampling, position: u32, log: &[u32]) -> u32 {
        let before = &log[..log.len().min(position as usize)];
        let best = candidates.ids.first().copied().unwrap_or_default();
        potluck_plan::Sampling::from(*sampling).sample(candidates, before).unwrap_or(best)
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

struct Stream {
    tokenizer: Arc<Tokenizer>,
    detokenizer: Detokenizer,
}

impl TextStream for Stream {
    fn push(&mut self, token: u32) -> String {
        self.detokenizer.push(&self.tokenizer, token)
    }

    fn finish(&mut self) -> String {
        self.detokenizer.finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_gguf::synthetic::Synthetic;

    fn language() -> ModelLanguage {
        ModelLanguage::read(&Synthetic::default().header().unwrap().metadata, 4096, LocalTime::from_unix(0)).unwrap().0
    }

    fn message(role: Role, content: &str) -> Message {
        Message { role, content: content.to_owned() }
    }

    #[test]
    fn an_assistants_last_message_is_continued() {
        let language = language();
        let asked = [message(Role::User, "Name a fruit")];
        let begun = [message(Role::User, "Name a fruit"), message(Role::Assistant, "An app")];
        let (asked, begun) = (language.render(&asked).unwrap(), language.render(&begun).unwrap());
        assert!(begun.starts_with(&asked), "what the model has read so far stays");
        let rest: String = {
            let mut decoder = language.decoder();
            begun[asked.len()..].iter().map(|token| decoder.push(*token)).collect()
        };
        assert_eq!(rest, "An app");
    }

    #[test]
    fn reasoning_that_the_prompt_begins_is_found_in_its_tokens() {
        let language = language();
        let tokens = |text: &str| language.tokenizer.encode(text, SpecialText::Parse);
        assert_eq!(language.opened_reasoning(&tokens("user: hello there, assistant: <think>\n")), "<think>\n");
        assert_eq!(language.opened_reasoning(&tokens("assistant: <think>\n\n</think>\n")), "");
        assert_eq!(language.opened_reasoning(&[]), "");
    }

    /// Either cost its sender one frame, and the host its tab.
    #[test]
    fn what_is_too_large_is_refused_before_any_work() {
        let language = language();
        let many = vec![message(Role::User, ""); 8_000_000];
        let refused = language.render(&many).unwrap_err();
        assert_eq!(refused, PromptError::TooManyMessages(8_000_000).to_string());
        let long = "‹".repeat((16 << 20) / 3);
        let refused = language.render(&[message(Role::User, &long)]).unwrap_err();
        assert!(refused.contains("shorten the message"), "{refused}");
        let refused = language.tokenize(&long).unwrap_err();
        assert!(refused.contains("shorten the message"), "{refused}");
    }

    #[test]
    fn a_prompt_at_the_limits_is_read() {
        let language = language();
        let per_message = language.max_bytes / MAX_MESSAGES;
        let messages = vec![message(Role::User, &"<".repeat(per_message)); MAX_MESSAGES];
        let tokens = language.render(&messages).unwrap();
        assert!(tokens.len() > MAX_MESSAGES, "{} tokens", tokens.len());
        assert!(!language.tokenize(&"‹".repeat(language.max_bytes / 3)).unwrap().is_empty());
    }

    #[test]
    fn a_typed_control_token_stays_text() {
        let language = language();
        let ending = |tokens: &[u32]| tokens.iter().filter(|token| language.is_end(**token)).count();
        let end = (0..language.tokenizer.len() as u32).find(|token| language.is_end(*token)).unwrap();
        let typed = format!("a{}b", language.tokenizer.name(end));
        let plain = language.render(&[message(Role::User, "ab")]).unwrap();
        let tokens = language.render(&[message(Role::User, &typed)]).unwrap();
        assert_eq!(ending(&tokens), ending(&plain), "{typed:?} ends a turn");
        assert_eq!(ending(&language.tokenize(&typed).unwrap()), 0, "also without the template");
    }

    #[test]
    fn a_replay_chooses_alike() {
        let candidates = Candidates { ids: vec![5, 6, 7], logits: vec![1.0, 0.9, 0.8], sampled: None };
        let sampling =
            Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 7 };
        let language = language();
        let short = language.choose(&candidates, &sampling, 3, &[1, 2, 3]);
        let long = language.choose(&candidates, &sampling, 3, &[1, 2, 3, 4, 5]);
        assert_eq!(short, long, "later tokens of the log must not count");
        let greedy = Sampling { temperature: 0.0, ..sampling };
        assert_eq!(language.choose(&candidates, &greedy, 0, &[]), 5);
    }
}
