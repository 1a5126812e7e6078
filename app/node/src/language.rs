//! The text side of a model: tokenizer and chat template of `potluck-model`.

use std::sync::Arc;

use potluck_gguf::Metadata;
use potluck_model::{
    ChannelParser, Channels, ChatTemplate, LocalTime, Message as TemplateMessage, RenderOptions, SpecialText,
    StopStrings, StopTokens, Streamed, TemplateChoice, TemplateError, TemplateFault, TemplateOrigin, Tokenizer,
    TokenizerError, ToolCall,
};
use potluck_plan::{Candidates, Channel, ChannelText};
use potluck_protocol::{Message, PromptRequest, Role, Sampling};
use potluck_swarm::{Language, Refusal, TextStream};
use potluck_text::texts;
use thiserror::Error;

/// Most messages of a conversation. Each costs the template steps, and an empty one costs its sender almost nothing.
pub const MAX_MESSAGES: usize = 4_096;
/// Most bytes of text in a conversation, about half a million tokens of English. Tokenizing them takes a slow tab about a
/// second, in which the room's other answers wait.
pub const MAX_TEXT_BYTES: usize = 2 << 20;

/// Why a prompt is refused before it is rendered, as a sentence for its sender.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PromptError {
    /// Too many messages.
    #[error("The conversation has {0} messages, and at most {MAX_MESSAGES} are read: start a new one.")]
    TooManyMessages(usize),
    /// Too much text: more than the context holds, or than this host reads at once.
    #[error("{}", too_much_text(.bytes, .max))]
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

fn too_much_text(bytes: &usize, max: &usize) -> Refusal {
    Refusal::TooMuchText { bytes: *bytes, max: *max }
}

/// Why a model's text side cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LanguageError {
    /// The vocabulary is not valid.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Not even a built-in template can be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Tokenizer, chat template and stop tokens of a model.
pub struct ModelLanguage {
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    /// By which markers it separates reasoning, answer and tool calls.
    channels: Arc<Channels>,
    stop: StopTokens,
    /// The time that every prompt states. It does not change, so that the KV cache of a conversation stays valid.
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
        let template = ChatTemplate::from_metadata(metadata, &tokenizer)?;
        remarks.extend(template_remark(template.choice()));
        let channels = Channels::new(&tokenizer, &template);
        let stop = StopTokens::from_metadata(metadata, &tokenizer)?;
        let max_bytes = Self::most_bytes(&tokenizer, context);
        Ok((Self { tokenizer: Arc::new(tokenizer), template, channels, stop, now, max_bytes }, remarks))
    }

    /// Most bytes of a text that can fit a context of this many tokens: a longer text certainly has more tokens.
    fn most_bytes(tokenizer: &Tokenizer, context: u32) -> usize {
        (context as usize).saturating_mul(tokenizer.longest_piece()).min(MAX_TEXT_BYTES)
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

    fn encode(&self, PromptRequest { messages, reasoning, .. }: &PromptRequest) -> Result<Vec<u32>, PromptError> {
        let bytes = messages.iter().fold(0usize, |sum, message| sum.saturating_add(message.bytes()));
        self.check(messages.len(), bytes)?;
        let options = RenderOptions { now: Some(self.now), ..RenderOptions::default() }.with_effort(*reasoning);
        let encode =
            |messages: Vec<TemplateMessage>| self.template.encode(&self.tokenizer, &self.channels, &messages, &options);
        // The last message is the question, or an answer that goes on with what its model wrote.
        let last = messages.len().saturating_sub(1);
        let form = |index| if index < last { Calls::AsCalls } else { Calls::AsText };
        let with_calls: Vec<TemplateMessage> =
            messages.iter().enumerate().map(|(index, message)| in_template(message, form(index))).collect();
        let has_calls = with_calls.iter().any(|message| !message.tool_calls.is_empty());
        let encoded = encode(with_calls);
        // Many templates want a result after a call, and nobody has called anything here.
        if has_calls && matches!(encoded, Err(TemplateError::Refused(_) | TemplateError::Invalid(_))) {
            return Ok(encode(messages.iter().map(|message| in_template(message, Calls::AsText)).collect())?);
        }
        Ok(encoded?)
    }
}

/// How a template gets the functions that a model called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// By name and arguments, if their form is known.
    AsCalls,
    /// As a part of what the model said.
    AsText,
}

/// A message as templates see it.
fn in_template(Message { role, content, reasoning, tool_calls }: &Message, calls: Calls) -> TemplateMessage {
    let mut message = TemplateMessage::new(role_name(*role), content.clone());
    message.reasoning = Some(reasoning.clone()).filter(|reasoning| !reasoning.is_empty());
    if calls == Calls::AsCalls {
        message.tool_calls = ToolCall::read(tool_calls);
    }
    if message.tool_calls.is_empty() && !tool_calls.is_empty() {
        let gap = if content.is_empty() { "" } else { "\n\n" };
        message.content = format!("{content}{gap}{tool_calls}");
    }
    message
}

impl Language for ModelLanguage {
    /// Continues a conversation that ends with a message of the assistant: the message follows the start of its answer.
    fn render(&self, question: &PromptRequest) -> Result<Vec<u32>, String> {
        self.encode(question).map_err(|error| error.to_string())
    }

    fn fits(&self, question: &PromptRequest, context: u32) -> Result<(), String> {
        let bytes = question.messages.iter().fold(0usize, |sum, message| sum.saturating_add(message.bytes()));
        let max = Self::most_bytes(&self.tokenizer, context).min(self.max_bytes);
        let fits = if bytes > max { Err(PromptError::TooLong { bytes, max }) } else { Ok(()) };
        fits.and_then(|()| self.check(question.messages.len(), bytes)).map_err(|error| error.to_string())
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        self.check(1, text.len()).map_err(|error| error.to_string())?;
        Ok(self.tokenizer.encode_prompt(text, SpecialText::Literal))
    }

    fn piece(&self, token: u32) -> Vec<u8> {
        self.tokenizer.piece(token).to_vec()
    }

    fn decoder(&self, question: &PromptRequest, prompt: &[u32]) -> Box<dyn TextStream> {
        let begun = question.messages.last().filter(|last| question.raw || last.role == Role::Assistant);
        // A text that is continued as it is has no channels: markers in it are the text's.
        let channels = if question.raw { Arc::default() } else { self.channels.clone() };
        let parser = match begun {
            // In a prompt, the functions that it called are at its end.
            Some(begun) if !begun.content.is_empty() || !begun.tool_calls.is_empty() => {
                channels.parser_within(&self.tokenizer, Channel::Answer)
            }
            Some(begun) if !begun.reasoning.is_empty() => channels.parser_within(&self.tokenizer, Channel::Reasoning),
            _ => channels.parser(&self.tokenizer, prompt),
        };
        // A text that is continued as it is has no turns.
        let stops = if question.raw { &[] } else { self.template.stop_strings() };
        let stops = StopStrings::new(stops.iter().cloned());
        Box::new(Stream { tokenizer: self.tokenizer.clone(), parser, stops, ended: false })
    }

    fn is_end(&self, token: u32) -> bool {
        self.stop.contains(token)
    }

    fn choose(&self, candidates: &Candidates, sampling: &Sampling, position: u32, log: &[u32]) -> u32 {
        let before = &log[..log.len().min(position as usize)];
        let best = candidates.ids.first().copied().unwrap_or_default();
        sampling.sample(candidates, before).unwrap_or(best)
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// What a person should know about the template of a file: nothing if it is the file's own.
fn template_remark(choice: &TemplateChoice) -> Option<String> {
    let texts = &texts().template;
    let fault = match choice.fault.as_ref()? {
        TemplateFault::Missing => texts.missing().to_owned(),
        TemplateFault::Blank => texts.blank().to_owned(),
        TemplateFault::NotText => texts.not_text().to_owned(),
        TemplateFault::QuestionLost => texts.question_lost().to_owned(),
        TemplateFault::Failed(TemplateError::Invalid(reason)) => texts.unreadable(reason),
        TemplateFault::Failed(TemplateError::Refused(reason)) => texts.refuses(reason),
        TemplateFault::Failed(TemplateError::Runaway) => texts.runaway().to_owned(),
    };
    let instead = match &choice.origin {
        TemplateOrigin::File => return None,
        TemplateOrigin::Named(name) => texts.named(name),
        TemplateOrigin::Turns(family) => texts.turns(family.token()),
        TemplateOrigin::Plain => texts.plain().to_owned(),
    };
    Some(format!("{fault} {instead}"))
}

struct Stream {
    tokenizer: Arc<Tokenizer>,
    parser: ChannelParser,
    stops: StopStrings,
    ended: bool,
}

impl TextStream for Stream {
    fn push(&mut self, token: u32) -> Vec<ChannelText> {
        let texts = self.parser.push(&self.tokenizer, token);
        self.watched(texts)
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn finish(&mut self) -> Vec<ChannelText> {
        let texts = self.parser.finish();
        let mut texts = self.watched(texts);
        let rest = self.stops.finish();
        if !self.ended && !rest.is_empty() {
            texts.push(ChannelText { channel: Channel::Answer, text: rest });
        }
        texts
    }
}

impl Stream {
    /// Texts up to a stop string of the answer.
    fn watched(&mut self, mut texts: Vec<ChannelText>) -> Vec<ChannelText> {
        for text in texts.iter_mut().filter(|text| text.channel == Channel::Answer) {
            let streamed = if self.ended { Streamed::default() } else { self.stops.push(&text.text) };
            self.ended |= streamed.stopped;
            text.text = streamed.text;
        }
        texts.retain(|text| !text.text.is_empty());
        texts
    }
}

#[cfg(test)]
mod tests;
