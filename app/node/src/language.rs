//! The text side of a model: tokenizer and chat template of `potluck-model`.

mod forms;
mod tools;

use std::sync::{Arc, OnceLock};

use potluck_forms::GrammarError;
use potluck_gguf::Metadata;
#[cfg(not(target_arch = "wasm32"))]
use potluck_grammar::Vocabulary;
use potluck_model::{
    ChannelParser, Channels, ChatTemplate, Infill, LocalTime, PLAIN_CALL_OPENING, RenderOptions, SpecialText,
    StopStrings, StopTokens, Streamed, TemplateChoice, TemplateError, TemplateFault, TemplateOrigin, Tokenizer,
    TokenizerError, ToolSupport,
};
use potluck_plan::{Candidates, Channel, ChannelText};
use potluck_protocol::{PromptRequest, Role, Sampling, ToolChoice};
use potluck_swarm::{Grammar, Language, Refusal, TextStream};
use potluck_text::texts;
use thiserror::Error;
use tools::Form;

#[cfg(target_arch = "wasm32")]
use crate::web::forms::Vocabulary;

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
    /// A call is demanded, and it is not clear how one begins.
    #[error("{}", texts().api.no_tools())]
    NoCall,
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
    /// What the template makes of functions and their calls.
    support: ToolSupport,
    /// By which markers it separates reasoning, answer and tool calls.
    channels: Arc<Channels>,
    stop: StopTokens,
    /// The tokens around texts between which it writes.
    infill: Option<Infill>,
    /// Its tokens as grammars see them, once one was needed.
    vocabulary: OnceLock<Result<Vocabulary, GrammarError>>,
    /// The time that every prompt states. It does not change, so that the KV cache of a conversation stays valid.
    now: LocalTime,
    /// Most bytes of text in a prompt.
    max_bytes: usize,
}

/// What a person may want to know of a model's tokenizer and chat template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageFacts {
    /// Tokens of the vocabulary.
    pub tokens: usize,
    /// The chat template is the file's own.
    pub own_template: bool,
    /// It tells the model which functions are offered.
    pub offers_functions: bool,
    /// The vocabulary has tokens around texts between which to write.
    pub infill: bool,
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
        let (channels, support) = (Channels::new(&tokenizer, &template), template.tool_support());
        let stop = StopTokens::from_metadata(metadata, &tokenizer)?;
        let max_bytes = Self::most_bytes(&tokenizer, context);
        let infill = Infill::from_metadata(metadata, &tokenizer)?;
        let vocabulary = OnceLock::new();
        Ok((
            Self {
                tokenizer: Arc::new(tokenizer),
                template,
                support,
                channels,
                stop,
                infill,
                vocabulary,
                now,
                max_bytes,
            },
            remarks,
        ))
    }

    /// What there is to know about them.
    #[must_use]
    pub fn facts(&self) -> LanguageFacts {
        LanguageFacts {
            tokens: self.tokenizer.len(),
            own_template: matches!(self.template.choice().origin, TemplateOrigin::File | TemplateOrigin::Named(_)),
            offers_functions: self.support.offers,
            infill: self.infill.is_some(),
        }
    }

    /// What turns text into tokens and back.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
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

    fn encode(&self, question: &PromptRequest) -> Result<Vec<u32>, PromptError> {
        let PromptRequest { messages, tools, .. } = question;
        self.check(messages.len(), question.bytes())?;
        let opening = self.opening(question)?;
        let has_results = messages.iter().any(|message| message.role == Role::Tool);
        let has_calls = has_results || messages.iter().any(|message| !message.tool_calls.is_empty());
        let is_plain = !tools.functions.is_empty() && !self.support.offers;
        let forms: &[Form] = match (has_calls, has_results) {
            (true, _) if is_plain => &[Form::Tagged],
            (true, true) if !self.support.calls => &[Form::Tagged],
            // Many templates want a result after a call, and Llama's take one call at a time.
            (true, true) => &[Form::Calls, Form::ShortIds, Form::Tagged],
            (true, false) => &[Form::Calls, Form::Text],
            (false, _) => &[Form::Calls],
        };
        let options = self.options(question);
        let encode = |form: Form| {
            let mut messages = tools::in_template(messages, form);
            if is_plain {
                messages = tools::with_plain_offer(messages, &tools.functions);
            }
            self.template.encode(&self.tokenizer, &self.channels, &messages, &options)
        };
        let is_refused = |encoded: &Result<Vec<u32>, TemplateError>| {
            matches!(encoded, Err(TemplateError::Refused(_) | TemplateError::Invalid(_)))
        };
        let mut encoded = encode(forms[0]);
        for form in &forms[1..] {
            if is_refused(&encoded) {
                encoded = encode(*form);
            }
        }
        Ok([encoded?, opening].concat())
    }

    /// What the template is given beside the messages.
    fn options(&self, question: &PromptRequest) -> RenderOptions {
        let tools = if self.support.offers { question.tools.functions.clone() } else { Vec::new() };
        RenderOptions { now: Some(self.now), tools, ..RenderOptions::default() }.with_effort(question.reasoning)
    }

    /// The tokens of a call's beginning, where the answer must be one: the model goes on with them.
    fn opening(&self, question: &PromptRequest) -> Result<Vec<u32>, PromptError> {
        let name = match &question.tools.choice {
            ToolChoice::Free => return Ok(Vec::new()),
            ToolChoice::Any => "",
            ToolChoice::Function(name) => name,
        };
        // An answer that has begun goes on as it is.
        let is_begun = question.messages.last().is_some_and(|last| last.role == Role::Assistant);
        if question.tools.functions.is_empty() || is_begun {
            return Err(PromptError::NoCall);
        }
        let opening = match self.support.offers {
            true => self.template.call_opening(&self.options(question)).ok_or(PromptError::NoCall)?,
            false => PLAIN_CALL_OPENING.to_owned(),
        };
        // The name is the asker's: no token of a marker can be in it.
        let quote = if !name.is_empty() && opening.ends_with('"') { "\"" } else { "" };
        let opening = self.tokenizer.encode(&opening, SpecialText::Parse);
        let name = self.tokenizer.encode(&format!("{name}{quote}"), SpecialText::Literal);
        Ok([opening, name].concat())
    }
}

impl Language for ModelLanguage {
    /// Continues a conversation that ends with a message of the assistant: the message follows the start of its answer.
    fn render(&self, question: &PromptRequest) -> Result<Vec<u32>, String> {
        self.encode(question).map_err(|error| error.to_string())
    }

    fn fits(&self, question: &PromptRequest, context: u32) -> Result<(), String> {
        let bytes = question.bytes();
        let max = Self::most_bytes(&self.tokenizer, context).min(self.max_bytes);
        let fits = if bytes > max { Err(PromptError::TooLong { bytes, max }) } else { Ok(()) };
        fits.and_then(|()| self.check(question.messages.len(), bytes)).map_err(|error| error.to_string())
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        self.check(1, text.len()).map_err(|error| error.to_string())?;
        Ok(self.tokenizer.encode_prompt(text, SpecialText::Literal))
    }

    fn infill(&self, before: &str, after: &str) -> Result<Vec<u32>, String> {
        self.check(2, before.len() + after.len()).map_err(|error| error.to_string())?;
        let infill = self.infill.ok_or_else(|| texts().api.no_infill().to_owned())?;
        Ok(infill.encode(&self.tokenizer, before, after))
    }

    fn piece(&self, token: u32) -> Vec<u8> {
        self.tokenizer.piece(token).to_vec()
    }

    fn decoder(&self, question: &PromptRequest, prompt: &[u32]) -> Box<dyn TextStream> {
        match self.parser_within(question) {
            Some(parser) => Box::new(self.stream(question, parser)),
            None => self.of_answer(question, prompt),
        }
    }

    fn grammar(
        &self,
        question: &PromptRequest,
        prompt: &[u32],
        vocabulary: u32,
    ) -> Result<Option<Box<dyn Grammar>>, String> {
        self.form(question, prompt, vocabulary).map_err(|error| error.to_string())
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

impl ModelLanguage {
    /// A text that is continued as it is has no channels: markers in it are the text's.
    fn channels_of(&self, question: &PromptRequest) -> Arc<Channels> {
        if question.raw { Arc::default() } else { self.channels.clone() }
    }

    /// A parser for an answer that goes on with what the question has of it.
    fn parser_within(&self, question: &PromptRequest) -> Option<ChannelParser> {
        let begun = question.messages.last().filter(|last| question.raw || last.role == Role::Assistant)?;
        let channels = self.channels_of(question);
        // In a prompt, the functions that it called are at its end.
        if !begun.content.is_empty() || !begun.tool_calls.is_empty() {
            Some(channels.parser_within(&self.tokenizer, Channel::Answer))
        } else {
            (!begun.reasoning.is_empty()).then(|| channels.parser_within(&self.tokenizer, Channel::Reasoning))
        }
    }

    /// A decoder for an answer, which may have begun with a call.
    fn of_answer(&self, question: &PromptRequest, prompt: &[u32]) -> Box<dyn TextStream> {
        let channels = self.channels_of(question);
        let opening = if question.raw { Vec::new() } else { self.opening(question).unwrap_or_default() };
        let before = prompt.strip_suffix(&opening[..]).unwrap_or(prompt);
        let mut stream = self.stream(question, channels.parser(&self.tokenizer, before));
        for token in &prompt[before.len()..] {
            let texts = stream.push(*token);
            stream.begun.extend(texts);
        }
        Box::new(stream)
    }

    fn stream(&self, question: &PromptRequest, parser: ChannelParser) -> Stream {
        // A text that is continued as it is has no turns.
        let stops = if question.raw { &[] } else { self.template.stop_strings() };
        let stops = StopStrings::new(stops.iter().cloned());
        Stream { tokenizer: self.tokenizer.clone(), parser, stops, begun: Vec::new(), ended: false }
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
    /// What the prompt has of the answer; it comes with the answer's first token.
    begun: Vec<ChannelText>,
    ended: bool,
}

impl TextStream for Stream {
    fn push(&mut self, token: u32) -> Vec<ChannelText> {
        let texts = self.parser.push(&self.tokenizer, token);
        [std::mem::take(&mut self.begun), self.watched(texts)].concat()
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn finish(&mut self) -> Vec<ChannelText> {
        let texts = self.parser.finish();
        let mut texts = [std::mem::take(&mut self.begun), self.watched(texts)].concat();
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
