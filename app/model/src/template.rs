//! Chat templates: render a conversation as the text the model was trained on.
//!
//! The template comes from the model's file and is untrusted. It runs in an engine without I/O, and its steps (fuel),
//! source length and output length are bounded. One gap remains: the engine does not bound the length of a variable, so
//! a hostile template can exhaust memory by doubling a string. That only ends the worker it runs in.

mod message;
mod python;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use potluck_gguf::{GgufError, Metadata};
use thiserror::Error as ThisError;

use crate::Tokenizer;
use message::Shield;
pub use message::{Message, ToolCall};
pub use python::LocalTime;

/// Fallback for files without a template: ChatML, which most instruction-tuned models understand.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
    {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Longest template accepted, in bytes. The longest known ones have 30 kB.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// Bytes that a template may write besides the messages.
const MAX_OWN_BYTES: usize = 1 << 20;
/// How often it may write the messages: those that sort or repeat them write them twice.
const MAX_REPEATS: usize = 2;
/// Step limit of a rendering. A message takes about fifty.
const FUEL: u64 = 5_000_000;
/// Nesting limit of loops and macros (a macro counts as about ten); low, because a page's stack is small.
const RECURSION: usize = 200;
const NAME: &str = "chat";

/// Begins reasoning.
const OPENING: &str = "<think>";

/// What a rendering depends on besides the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// The functions that the model may call, each as JSON text in OpenAI's form (`{"type": "function", "function": …}`).
    pub tools: Vec<String>,
    /// Append the start of the assistant's answer.
    pub add_generation_prompt: bool,
    /// `enable_thinking`, for templates that support it (Qwen3); `None` leaves it to the template.
    pub thinking: Option<bool>,
    /// The time that `strftime_now` returns. If absent, the template omits it or uses a fixed date of its own.
    pub now: Option<LocalTime>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { tools: Vec::new(), add_generation_prompt: true, thinking: None, now: None }
    }
}

/// Why a conversation could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum TemplateError {
    /// `tokenizer.chat_template` is not a string.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// The template is not Jinja, or uses an unsupported feature.
    #[error("The model's chat template cannot be used ({0}); choose \"no template\", or another file of the model.")]
    Invalid(String),
    /// The template itself rejects this conversation.
    #[error("The model's chat template refuses this conversation: {0}")]
    Refused(String),
    /// The template ran too long or wrote too much.
    #[error("The model's chat template ran too long or wrote too much, and was stopped.")]
    Runaway,
}

/// A compiled chat template.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// The template of a file, or ChatML if it has none.
    ///
    /// # Errors
    /// The file's template does not compile; [`Self::chatml`] may serve instead.
    pub fn from_metadata(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self, TemplateError> {
        let source = metadata.optional("tokenizer.chat_template", Metadata::str)?;
        let text = |id: Option<u32>| id.map_or_else(String::new, |id| tokenizer.name(id));
        let (bos, eos) = (text(tokenizer.bos()), text(tokenizer.eos()));
        Self::new(source.unwrap_or(CHATML), bos, eos)
    }

    /// ChatML, for a file without a usable template.
    ///
    /// # Errors
    /// None in practice; the type matches [`Self::from_metadata`].
    pub fn chatml() -> Result<Self, TemplateError> {
        Self::new(CHATML, String::new(), String::new())
    }

    /// Compiles a template. `bos` and `eos` are the texts of the two tokens.
    ///
    /// # Errors
    /// The template is too long or not Jinja.
    pub fn new(source: &str, bos: String, eos: String) -> Result<Self, TemplateError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::Invalid(format!("it has {} bytes", source.len())));
        }
        let invalid = |error: Error| TemplateError::Invalid(describe(&error));
        let mut environment = Environment::new();
        // The same settings as in Hugging Face Transformers.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(invalid)?);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION);
        python::install(&mut environment);
        environment.add_template_owned(NAME, python::without_generation_tags(source)).map_err(invalid)?;
        Ok(Self { environment, bos, eos })
    }

    /// The token ids of a conversation: encodes what [`Self::render`] writes, but keeps the names of control tokens
    /// inside messages as text, whatever the template does with them. So nobody can end a turn or speak as another role by
    /// typing such a name. There are two exceptions: the reasoning tags of an answer, where a model has them as control tokens,
    /// and words of letters in tools and calls, which templates compare with their own.
    ///
    /// If an answer is requested and the last message is the assistant's, the model continues that answer: its text
    /// follows the generation prompt, and its turn stays open. Reasoning that the generation prompt has begun already is not
    /// begun twice (see [`opened_reasoning`]).
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, TemplateError> {
        let shield = Shield(Some(tokenizer));
        let text = match messages {
            [before @ .., last] if last.is_begun_answer() && options.add_generation_prompt => {
                let prompt = self.render_shielded(before, options, shield)?;
                let rest = last.content.strip_prefix(opened_reasoning(&prompt)).unwrap_or(&last.content);
                prompt + &shield.answer(rest, true)
            }
            all => self.render_shielded(all, options, shield)?,
        };
        Ok(tokenizer.encode_shielded(&text))
    }

    /// Renders a conversation as text. If the template rejects a system message, it is put in front of the first
    /// question.
    ///
    /// # Errors
    /// The template rejects the conversation, fails, or exceeds a limit.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String, TemplateError> {
        self.render_shielded(messages, options, Shield(None))
    }

    fn render_shielded(
        &self,
        messages: &[Message],
        options: &RenderOptions,
        shield: Shield<'_>,
    ) -> Result<String, TemplateError> {
        let rendered = self.render_as_is(messages, options, shield);
        match (messages, &rendered) {
            ([system, question, rest @ ..], Err(TemplateError::Refused(_)))
                if system.role == "system" && question.role == "user" =>
            {
                let content = format!("{}\n\n{}", system.content.trim(), question.content);
                let mut folded = vec![Message::new("user", content)];
                folded.extend_from_slice(rest);
                // If the template rejects that too, the first error is more informative.
                self.render_as_is(&folded, options, shield).or(rendered)
            }
            _ => rendered,
        }
    }

    fn render_as_is(
        &self,
        messages: &[Message],
        options: &RenderOptions,
        shield: Shield<'_>,
    ) -> Result<String, TemplateError> {
        // Record the rejection here, because the engine drops the type of a function's error.
        let refusal = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&refusal);
        let mut environment = self.environment.clone();
        environment.add_function("raise_exception", move |reason: String| -> Result<Value, Error> {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
            Err(Error::new(ErrorKind::InvalidOperation, reason))
        });
        if let Some(now) = options.now {
            environment.add_function("strftime_now", move |format: String| now.format(&format));
        }
        let given: usize = messages.iter().map(Message::bytes).chain(options.tools.iter().map(String::len)).sum();
        let limit = MAX_OWN_BYTES.saturating_add(given.saturating_mul(MAX_REPEATS));
        let thinking = options.thinking.map_or(Value::UNDEFINED, Value::from);
        let messages: Vec<Value> = messages.iter().map(|message| message.value(shield)).collect();
        // Templates ask whether there are tools, and some whether the list is empty.
        let tools: Vec<Value> = options.tools.iter().map(|tool| shield.json(tool)).collect();
        let tools = if tools.is_empty() { Value::from(()) } else { Value::from(tools) };
        let values = context! {
            messages => messages,
            tools => tools,
            add_generation_prompt => options.add_generation_prompt,
            enable_thinking => thinking,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        let mut text = Bounded { bytes: Vec::new(), limit, full: false };
        let template = environment.get_template(NAME).map_err(|error| TemplateError::Invalid(describe(&error)))?;
        let rendered = template.render_captured_to(values, &mut text);
        let refused = refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        match rendered {
            // The engine writes complete strings, so the bytes are valid UTF-8.
            Ok(_) => Ok(String::from_utf8_lossy(&text.bytes).into_owned()),
            Err(_) if text.full => Err(TemplateError::Runaway),
            Err(error) if error.kind() == ErrorKind::OutOfFuel => Err(TemplateError::Runaway),
            Err(error) => Err(match refused {
                Some(reason) => TemplateError::Refused(reason),
                None => TemplateError::Invalid(describe(&error)),
            }),
        }
    }
}

/// The end of a prompt that belongs to its answer: the tag by which some templates begin the model's reasoning, with the space
/// after it. Empty for other prompts.
pub fn opened_reasoning(prompt: &str) -> &str {
    let written = prompt.trim_end();
    if written.ends_with(OPENING) { &prompt[written.len() - OPENING.len()..] } else { "" }
}

/// An error in one line, with the innermost cause.
fn describe(error: &Error) -> String {
    let place = error.line().map_or_else(String::new, |line| format!(", line {line}"));
    match error.detail() {
        Some(detail) => format!("{}: {detail}{place}", error.kind()),
        None => format!("{}{place}", error.kind()),
    }
}

/// A buffer that refuses to grow beyond its limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
