//! Chat templates: render a conversation as the text the model was trained on.
//!
//! The template comes from the model's file and is untrusted. It runs in an engine without I/O, and its steps, its memory, the
//! depth of its nesting, and the lengths of its source and of what it writes are bounded.

mod choice;
mod jinja;
mod message;
mod reasoning;
mod time;
mod tools;

use potluck_gguf::Metadata;
use potluck_plan::ReasoningEffort;
use thiserror::Error as ThisError;

use crate::Tokenizer;
use crate::channels::{Channels, Seams};
pub use choice::{TemplateChoice, TemplateFault, TemplateOrigin, TurnFamily};
use jinja::{Fault, Limits, Template, Value};
use message::{Content, Shield};
pub use message::{Message, ToolCall};
pub use time::LocalTime;
pub use tools::{CallForm, PLAIN_CALL_OPENING, ToolSupport, plain_call, plain_offer, plain_result};

/// ChatML, which most instruction-tuned models understand.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
    {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Longest template accepted, in bytes. The longest known ones have 30 kB.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// Bytes that a template may write besides the messages.
const MAX_OWN_BYTES: usize = 1 << 20;
/// How often it may write the messages: those that sort or repeat them write them twice.
const MAX_REPEATS: usize = 2;
/// Steps of a rendering, with all that is tried where a template refuses something. A message takes some hundreds.
const STEPS: u64 = 5_000_000;
/// And for each pair of messages: for each of them some templates look at all others. Gemma 4's takes three.
const STEPS_PER_PAIR: u64 = 7;
/// Bytes of all values that a rendering makes, also of those that are gone: a list that grows by one item is made anew each time.
const MEMORY: usize = 128 << 20;
/// And for each byte of the messages: templates strip, split and join them.
const MEMORY_PER_BYTE: usize = 64;
/// And for each message, of three thousand at most: lists of them are made anew, too.
const MEMORY_PER_MESSAGE: usize = 128 << 10;
const MESSAGES: usize = 3_000;

/// What a rendering depends on besides the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// The functions that the model may call, each as JSON text in OpenAI's form (`{"type": "function", "function": …}`).
    pub tools: Vec<String>,
    /// Append the start of the assistant's answer.
    pub add_generation_prompt: bool,
    /// Whether the model is to reason, for templates that support it (`enable_thinking` of Qwen3, `thinking` of DeepSeek and
    /// Granite, and others); `None` leaves it to the template.
    pub thinking: Option<bool>,
    /// How much it is to reason, for templates that support it (`reasoning_effort` of gpt-oss).
    pub effort: Option<ReasoningEffort>,
    /// The time that `strftime_now` returns. If absent, the template omits it or uses a fixed date of its own.
    pub now: Option<LocalTime>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { tools: Vec::new(), add_generation_prompt: true, thinking: None, effort: None, now: None }
    }
}

impl RenderOptions {
    /// The same with this effort of reasoning.
    #[must_use]
    pub fn with_effort(self, effort: Option<ReasoningEffort>) -> Self {
        Self { thinking: effort.map(|effort| effort != ReasoningEffort::Off), effort, ..self }
    }
}

/// Why a conversation could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum TemplateError {
    /// The template is not Jinja, or uses an unsupported feature.
    #[error("The model's chat template cannot be used ({0}); choose another file of the model.")]
    Invalid(String),
    /// The template itself rejects this conversation.
    #[error("The model's chat template refuses this conversation: {0}")]
    Refused(String),
    /// The template ran too long or wrote too much.
    #[error("The model's chat template ran too long or wrote too much, and was stopped.")]
    Runaway,
}

/// A compiled chat template.
///
/// ```
/// use potluck_model::{ChatTemplate, Message, RenderOptions};
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
///     String::new(),
///     String::new(),
/// )?;
/// let messages = [Message::new("system", "Be brief."), Message::new("user", "Why is the sky blue?")];
/// let prompt = template.render(&messages, &RenderOptions::default())?;
/// assert_eq!(prompt, "<system> Be brief.\n<user> Why is the sky blue?\n<assistant>");
///
/// // The file's author wrote it: it may not run for ever.
/// let endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}";
/// let endless = ChatTemplate::new(endless, String::new(), String::new())?;
/// assert!(endless.render(&messages, &RenderOptions::default()).is_err());
/// # Ok::<(), potluck_model::TemplateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    template: Template,
    source: String,
    bos: String,
    eos: String,
    choice: TemplateChoice,
    content: Content,
    /// System messages go into the first question, because the template would leave them out.
    folds_system: bool,
    stops: Vec<String>,
}

impl ChatTemplate {
    /// The template of a file, if it writes what a person says; else what serves instead. [`Self::choice`] tells which and why.
    ///
    /// # Errors
    /// None in practice: the built-in templates compile.
    pub fn from_metadata(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self, TemplateError> {
        choice::choose(metadata, tokenizer)
    }

    /// ChatML, without a file.
    ///
    /// # Errors
    /// None in practice; the type matches [`Self::from_metadata`].
    pub fn chatml() -> Result<Self, TemplateError> {
        Self::new(CHATML, String::new(), String::new())
    }

    /// Which template this is, and why.
    pub fn choice(&self) -> &TemplateChoice {
        &self.choice
    }

    /// Texts at which an answer ends besides the model's stop tokens: empty but for the plain form.
    pub fn stop_strings(&self) -> &[String] {
        &self.stops
    }

    /// Compiles a template. `bos` and `eos` are the texts of the two tokens.
    ///
    /// # Errors
    /// The template is too long or not Jinja.
    pub fn new(source: &str, bos: String, eos: String) -> Result<Self, TemplateError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::Invalid(format!("it has {} bytes", source.len())));
        }
        let template = Template::new(source).map_err(error)?;
        let choice = TemplateChoice { origin: TemplateOrigin::File, fault: None };
        let source = source.to_owned();
        let (content, folds_system, stops) = (Content::Text, false, Vec::new());
        Ok(Self { template, source, bos, eos, choice, content, folds_system, stops })
    }

    /// Its text.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The token ids of a conversation: encodes what [`Self::render`] writes, but keeps the names of control tokens
    /// inside messages as text, whatever the template does with them. So nobody can end a turn or speak as another role by
    /// typing such a name. There are two exceptions: the reasoning tags of an answer, where a model has them as control tokens,
    /// and words of letters in tools and calls, which templates compare with their own.
    ///
    /// If an answer is requested and the last message is the assistant's, the model continues that answer: its reasoning and
    /// its text follow the generation prompt, with the markers of `channels` around them, and its turn stays open. Reasoning
    /// that the generation prompt has begun already is not begun twice.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        channels: &Channels,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, TemplateError> {
        let shield = Shield(Some(tokenizer));
        let text = match messages {
            [before @ .., last] if last.is_begun_answer() && options.add_generation_prompt => {
                let prompt = self.render_shielded(before, options, shield)?;
                let Seams { reasoning, between, answer } = channels.seams(&prompt);
                let content = shield.answer(&last.content, false);
                match &last.reasoning {
                    Some(begun) if content.is_empty() => prompt + &reasoning + &shield.answer(begun, false),
                    Some(begun) => prompt + &reasoning + &shield.answer(begun, false) + &between + &content,
                    None if content.is_empty() => prompt,
                    None => prompt + &answer + &content,
                }
            }
            all => self.render_shielded(all, options, shield)?,
        };
        Ok(tokenizer.encode_shielded(&text))
    }

    /// Renders a conversation as text. If the template rejects a system message or leaves it out, it is put in front of the
    /// first question.
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
        let folded = match messages {
            [system, question, rest @ ..] if system.role == "system" && question.role == "user" => {
                let content = format!("{}\n\n{}", system.content.trim(), question.content);
                Some([&[Message::new("user", content)], rest].concat())
            }
            _ => None,
        };
        let given: usize = messages.iter().map(Message::bytes).chain(options.tools.iter().map(String::len)).sum();
        let memory = MEMORY + messages.len().min(MESSAGES) * MEMORY_PER_MESSAGE;
        let memory = memory.saturating_add(given.saturating_mul(MEMORY_PER_BYTE));
        let output = MAX_OWN_BYTES.saturating_add(given.saturating_mul(MAX_REPEATS));
        let pairs = (messages.len().min(MESSAGES) as u64).pow(2);
        let mut limits = Limits { steps: STEPS + STEPS_PER_PAIR * pairs, memory, output };
        match (folded, self.folds_system) {
            (Some(folded), true) => self.render_with_effort(&folded, options, shield, &mut limits),
            (Some(folded), false) => match self.render_with_effort(messages, options, shield, &mut limits) {
                // If the template rejects that too, the first error is more informative.
                Err(refused @ TemplateError::Refused(_)) => {
                    self.render_with_effort(&folded, options, shield, &mut limits).or(Err(refused))
                }
                rendered => rendered,
            },
            (None, _) => self.render_with_effort(messages, options, shield, &mut limits),
        }
    }

    /// With the first word for the effort that the template does not refuse.
    fn render_with_effort(
        &self,
        messages: &[Message],
        options: &RenderOptions,
        shield: Shield<'_>,
        limits: &mut Limits,
    ) -> Result<String, TemplateError> {
        let Some(effort) = options.effort else { return self.render_as_is(messages, options, None, shield, limits) };
        let mut render = |word: Option<&str>| self.render_as_is(messages, options, word, shield, limits);
        let is_refused = |rendered: &Result<String, TemplateError>| {
            matches!(rendered, Err(TemplateError::Refused(_) | TemplateError::Invalid(_)))
        };
        let (usual, others) = reasoning::words(effort);
        let rendered = render(Some(usual));
        if !is_refused(&rendered) {
            return rendered;
        }
        // It may be the word. If it is not, the first error is as good as the others.
        let mut others = others.iter().copied().map(Some).chain([None]).map(render);
        others.find(|rendered| !is_refused(rendered)).unwrap_or(rendered)
    }

    /// `effort` is the word for it.
    fn render_as_is(
        &self,
        messages: &[Message],
        options: &RenderOptions,
        effort: Option<&str>,
        shield: Shield<'_>,
        limits: &mut Limits,
    ) -> Result<String, TemplateError> {
        let messages = messages.iter().map(|message| message.value(shield, self.content)).collect::<Result<_, _>>();
        // Templates ask whether there are tools, and some whether the list is empty.
        let tools: Vec<Value> = options.tools.iter().map(|tool| shield.json(tool)).collect();
        let tools = if tools.is_empty() { Ok(Value::None) } else { Value::list(tools) };
        let mut values = vec![
            ("messages", Value::list(messages.map_err(error)?).map_err(error)?),
            ("tools", tools.map_err(error)?),
            // Transformers passes it always.
            ("documents", Value::None),
            ("add_generation_prompt", options.add_generation_prompt.into()),
            ("bos_token", self.bos.as_str().into()),
            ("eos_token", self.eos.as_str().into()),
        ];
        values.extend(reasoning::variables(options.thinking, effort));
        self.template.render(values, options.now, limits).map_err(error)
    }
}

fn error(fault: Fault) -> TemplateError {
    match fault {
        Fault::Error(reason) => TemplateError::Invalid(reason),
        Fault::Raised(reason) => TemplateError::Refused(reason),
        Fault::Runaway => TemplateError::Runaway,
    }
}
