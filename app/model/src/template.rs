//! Chat templates: a conversation as the text the model was trained on.
//!
//! The template comes from the model's file and is not trusted: it runs in an engine without I/O, with fuel (a bound on
//! steps), a bound on its own length and one on what it writes. One gap remains: the engine does not bound the length
//! of a variable, so a hostile template can exhaust memory by doubling a string. That ends only the worker it runs in.

mod python;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use potluck_gguf::{GgufError, Metadata};
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

use crate::Tokenizer;
pub use python::LocalTime;

/// Used where a file has no template: ChatML, which most instruction models understand.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
    {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Longest template that is compiled, in bytes. The longest known ones have 30 kB.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// Longest text a template may write, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// Steps a template may run. A message takes about fifty.
const FUEL: u64 = 5_000_000;
/// Depth of loops and macros inside each other (a macro counts about ten); small, because a page's stack is.
const RECURSION: usize = 200;
const NAME: &str = "chat";

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Its text.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }
}

/// What a rendering depends on besides the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// End with the start of the assistant's answer.
    pub add_generation_prompt: bool,
    /// `enable_thinking`, for templates that know it (Qwen3); `None` leaves it to the template.
    pub thinking: Option<bool>,
    /// What `strftime_now` tells. Without it the template does without (or uses its own fixed date).
    pub now: Option<LocalTime>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { add_generation_prompt: true, thinking: None, now: None }
    }
}

/// Why a conversation could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum TemplateError {
    /// `tokenizer.chat_template` is no text.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// The template is not Jinja, or uses something that is not supported.
    #[error("The model's chat template cannot be used ({0}); choose \"no template\", or another file of the model.")]
    Invalid(String),
    /// The template itself says that this conversation is not possible.
    #[error("The model's chat template refuses this conversation: {0}")]
    Refused(String),
    /// It ran too long or wrote too much.
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
    /// The file's template cannot be compiled; [`Self::chatml`] may do instead.
    pub fn from_metadata(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self, TemplateError> {
        let source = metadata.optional("tokenizer.chat_template", Metadata::str)?;
        let text = |id: Option<u32>| id.map_or_else(String::new, |id| tokenizer.name(id));
        let (bos, eos) = (text(tokenizer.bos()), text(tokenizer.eos()));
        Self::new(source.unwrap_or(CHATML), bos, eos)
    }

    /// ChatML, for a file without a usable template.
    ///
    /// # Errors
    /// None in practice; the type is that of [`Self::from_metadata`].
    pub fn chatml() -> Result<Self, TemplateError> {
        Self::new(CHATML, String::new(), String::new())
    }

    /// Compiles a template. `bos` and `eos` are the texts of these tokens.
    ///
    /// # Errors
    /// The template is too long or not Jinja.
    pub fn new(source: &str, bos: String, eos: String) -> Result<Self, TemplateError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::Invalid(format!("it has {} bytes", source.len())));
        }
        let invalid = |error: Error| TemplateError::Invalid(describe(&error));
        let mut environment = Environment::new();
        // What Hugging Face Transformers sets up for chat templates.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(invalid)?);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION);
        python::install(&mut environment);
        environment.add_template_owned(NAME, source.to_string()).map_err(invalid)?;
        Ok(Self { environment, bos, eos })
    }

    /// The token ids of a conversation: what [`Self::render`] writes, except that the names of control tokens inside a
    /// message stay text, so that nobody can end a turn or speak as somebody else by typing them.
    ///
    /// Where an answer is asked for and the last message is the assistant's, that answer is continued: its text stands
    /// after the generation prompt, and its turn stays open.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, TemplateError> {
        let shielded: Vec<Message> = messages
            .iter()
            .map(|message| Message { role: message.role.clone(), content: tokenizer.shield(&message.content) })
            .collect();
        let text = match &shielded[..] {
            [before @ .., last] if last.role == "assistant" && options.add_generation_prompt => {
                self.render(before, options)? + &last.content
            }
            all => self.render(all, options)?,
        };
        Ok(tokenizer.encode_shielded(&text))
    }

    /// The text of a conversation. A system message that the template refuses is put in front of the first question.
    ///
    /// # Errors
    /// The template refuses the conversation, fails, or runs away.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String, TemplateError> {
        let rendered = self.render_as_is(messages, options);
        match (messages, &rendered) {
            ([system, question, rest @ ..], Err(TemplateError::Refused(_)))
                if system.role == "system" && question.role == "user" =>
            {
                let content = format!("{}\n\n{}", system.content.trim(), question.content);
                let mut folded = vec![Message::new("user", content)];
                folded.extend_from_slice(rest);
                // If that is refused too, the first refusal says more.
                self.render_as_is(&folded, options).or(rendered)
            }
            _ => rendered,
        }
    }

    fn render_as_is(&self, messages: &[Message], options: &RenderOptions) -> Result<String, TemplateError> {
        // A refusal is kept aside, because an error from a function loses its type on the way out.
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
        let thinking = options.thinking.map_or(Value::UNDEFINED, Value::from);
        let message = |message: &Message| {
            Value::from_pairs([("role", message.role.as_str()), ("content", message.content.as_str())])
        };
        let messages: Vec<Value> = messages.iter().map(message).collect();
        let values = context! {
            messages => messages,
            add_generation_prompt => options.add_generation_prompt,
            enable_thinking => thinking,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        let mut text = Bounded::default();
        let template = environment.get_template(NAME).map_err(|error| TemplateError::Invalid(describe(&error)))?;
        let rendered = template.render_captured_to(values, &mut text);
        let refused = refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        match rendered {
            // The engine writes whole strings, so the bytes are text.
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

/// An error in one line, with the innermost reason.
fn describe(error: &Error) -> String {
    let place = error.line().map_or_else(String::new, |line| format!(", line {line}"));
    match error.detail() {
        Some(detail) => format!("{}: {detail}{place}", error.kind()),
        None => format!("{}{place}", error.kind()),
    }
}

/// Memory that refuses to grow beyond [`MAX_TEXT_BYTES`].
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_TEXT_BYTES {
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
