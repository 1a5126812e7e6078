//! The text side of a model: tokenizer and chat template of `potluck-model`.

use std::sync::Arc;

use potluck_gguf::Metadata;
use potluck_model::{
    ChatTemplate, Detokenizer, Message as TemplateMessage, RenderOptions, Sampling as Rules, SpecialText, StopTokens,
    TemplateError, Tokenizer, TokenizerError,
};
use potluck_plan::Candidates;
use potluck_protocol::{Message, Role, Sampling};
use potluck_swarm::{Language, TextStream};
use thiserror::Error;

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
}

impl ModelLanguage {
    /// Reads them from a file's metadata. Also returns sentences for people about what was assumed or replaced.
    ///
    /// # Errors
    /// The vocabulary cannot be read.
    pub fn read(metadata: &Metadata) -> Result<(Self, Vec<String>), LanguageError> {
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
        Ok((Self { tokenizer: Arc::new(tokenizer), template, stop }, remarks))
    }
}

impl Language for ModelLanguage {
    /// Continues a conversation that ends with a message of the assistant: the message follows the start of its answer.
    fn render(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        let (messages, begun) = match messages.split_last() {
            Some((last, before)) if last.role == Role::Assistant => (before, last.content.as_str()),
            _ => (messages, ""),
        };
        let messages: Vec<TemplateMessage> =
            messages.iter().map(|message| TemplateMessage::new(role(message.role), message.content.clone())).collect();
        let text = self.template.render(&messages, &RenderOptions::default()).map_err(|error| error.to_string())?;
        Ok(self.tokenizer.encode_prompt(&(text + begun), SpecialText::Parse))
    }

    fn tokenize(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode_prompt(text, SpecialText::Parse)
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
        let rules = Rules {
            repetition_penalty: sampling.repetition_penalty,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            temperature: sampling.temperature,
            seed: sampling.seed,
            ..Rules::default()
        };
        let best = candidates.ids.first().copied().unwrap_or_default();
        rules.sample(candidates, before).unwrap_or(best)
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
        ModelLanguage::read(&Synthetic::default().header().unwrap().metadata).unwrap().0
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
    fn a_replay_chooses_alike() {
        let candidates = Candidates { ids: vec![5, 6, 7], logits: vec![1.0, 0.9, 0.8] };
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
