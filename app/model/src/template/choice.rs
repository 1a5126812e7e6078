//! Chooses the form of a model's prompts when it is opened, so that what a person writes is in every prompt.
//!
//! A short conversation of marks is rendered through the file's template. A template that loses a mark gets the texts as lists of
//! parts, which is what some templates read; one that still loses it is not used. Files without a usable template get the turns
//! that their vocabulary has tokens for, and all others a plain form.

use potluck_gguf::{Array, Metadata, Value as GgufValue};

use super::{ChatTemplate, Content, LocalTime, Message, RenderOptions, TemplateError};
use crate::{TokenKind, Tokenizer};

const KEY: &str = "tokenizer.chat_template";
const NAMES: &str = "tokenizer.chat_templates";
/// The one that Transformers takes of several.
const DEFAULT: &str = "default";

const SYSTEM: &str = "Marksystem";
const FIRST: &str = "Markquestion";
const ANSWER: &str = "Markanswer";
const SECOND: &str = "Markfurther";

/// What the prompts of a plain form end turns with, so that a model that goes on with the next question is stopped there.
const PLAIN_STOPS: [&str; 4] = ["\n\nUser:", "\nUser:", "\n\nAssistant:", "\nAssistant:"];
const PLAIN: &str = "{% for message in messages %}\
    {% if message.role == 'system' %}{{ message.content | trim }}\n\n\
    {% elif message.role == 'assistant' %}Assistant:\n{{ message.content | trim }}\n\n\
    {% else %}User:\n{{ message.content | trim }}\n\n{% endif %}\
    {% endfor %}{% if add_generation_prompt %}Assistant:\n{% endif %}";

/// Most templates of a file that are tried: each may run until it is stopped. Published files have up to three.
const MAX_CANDIDATES: usize = 8;

/// Which template a model's prompts are written with, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateChoice {
    /// Where it comes from.
    pub origin: TemplateOrigin,
    /// What is wrong with the file's own template, if another one is used.
    pub fault: Option<TemplateFault>,
}

/// Where a template comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateOrigin {
    /// The file's template.
    File,
    /// One of several templates of the file, by its name or its place.
    Named(String),
    /// The turns of a family of models, for which the vocabulary has tokens.
    Turns(TurnFamily),
    /// Turns in words, with stop strings: for models that were not trained on conversations.
    Plain,
}

/// Why a file's template is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFault {
    /// There is none.
    Missing,
    /// It writes nothing, or only white space.
    Blank,
    /// The key holds something else than text.
    NotText,
    /// What a person writes is not in the prompt.
    QuestionLost,
    /// It cannot be read, or refuses a plain question.
    Failed(TemplateError),
}

/// Families of turns for files without a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnFamily {
    /// `<|im_start|>`.
    ChatMl,
    /// `<|start_header_id|>`.
    Llama3,
    /// `<start_of_turn>`.
    Gemma,
    /// `[INST]`.
    Mistral,
    /// `<|user|>`.
    Phi,
}

impl TurnFamily {
    const ALL: [Self; 5] = [Self::ChatMl, Self::Llama3, Self::Gemma, Self::Mistral, Self::Phi];

    /// The token that begins a turn, by which people know the family.
    pub const fn token(self) -> &'static str {
        self.tokens()[0]
    }

    /// Control tokens that the vocabulary must have.
    const fn tokens(self) -> [&'static str; 2] {
        match self {
            Self::ChatMl => ["<|im_start|>", "<|im_end|>"],
            Self::Llama3 => ["<|start_header_id|>", "<|eot_id|>"],
            Self::Gemma => ["<start_of_turn>", "<end_of_turn>"],
            Self::Mistral => ["[INST]", "[/INST]"],
            Self::Phi => ["<|user|>", "<|assistant|>"],
        }
    }

    const fn source(self) -> &'static str {
        match self {
            Self::ChatMl => super::CHATML,
            Self::Llama3 => {
                "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n\
                {{ message.content | trim }}<|eot_id|>{% endfor %}\
                {% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
            }
            Self::Gemma => {
                "{{ bos_token }}{% for message in messages %}\
                {% if message.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}\
                <start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n\
                {{ message.content | trim }}<end_of_turn>\n{% endfor %}\
                {% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
            }
            Self::Mistral => {
                "{{ bos_token }}{% for message in messages %}\
                {% if message.role == 'system' %}{{ raise_exception('no system role') }}\
                {% elif message.role == 'assistant' %} {{ message.content | trim }}{{ eos_token }}\
                {% else %}[INST] {{ message.content | trim }} [/INST]{% endif %}{% endfor %}"
            }
            Self::Phi => {
                "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>\n\
                {{ message.content | trim }}{{ turn_end }}\n{% endfor %}\
                {% if add_generation_prompt %}<|assistant|>\n{% endif %}"
            }
        }
    }

    /// The family for which the vocabulary has tokens.
    fn of(tokenizer: &Tokenizer) -> Option<Self> {
        let is_control = |name: &str| tokenizer.special_id(name).is_some_and(|id| is_control(tokenizer, id));
        Self::ALL.into_iter().find(|family| family.tokens().into_iter().all(is_control))
    }
}

fn is_control(tokenizer: &Tokenizer, id: u32) -> bool {
    tokenizer.kind(id) == Some(TokenKind::Control)
}

/// The template of a file, or what serves instead.
pub(super) fn choose(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<ChatTemplate, TemplateError> {
    let text = |id: Option<u32>| id.map_or_else(String::new, |id| tokenizer.name(id));
    let (bos, eos) = (text(tokenizer.bos()), text(tokenizer.eos()));
    let mut fault = None;
    for (origin, source) in candidates(metadata).into_iter().take(MAX_CANDIDATES) {
        let found = source.and_then(|source| usable(source, &bos, &eos));
        match found {
            Ok(mut template) => {
                let is_own = origin == TemplateOrigin::File;
                template.choice = TemplateChoice { origin, fault: fault.filter(|_| !is_own) };
                return Ok(template);
            }
            Err(found) => {
                let is_runaway = found == TemplateFault::Failed(TemplateError::Runaway);
                fault = fault.or(Some(found));
                // Others of such a file would take as long.
                if is_runaway {
                    break;
                }
            }
        }
    }
    let fault = Some(fault.unwrap_or(TemplateFault::Missing));
    let mut template = match TurnFamily::of(tokenizer) {
        Some(family) => {
            // Zephyr ends its turns with the end of the text.
            let end = if tokenizer.special_id("<|end|>").is_some() { "<|end|>" } else { "{{ eos_token }}" };
            let mut template = ChatTemplate::new(&family.source().replace("{{ turn_end }}", end), bos, eos)?;
            template.choice.origin = TemplateOrigin::Turns(family);
            template
        }
        None => plain()?,
    };
    template.choice.fault = fault;
    template.find_form().or(Err(TemplateError::Runaway))?;
    Ok(template)
}

/// Turns in words.
pub(super) fn plain() -> Result<ChatTemplate, TemplateError> {
    let mut template = ChatTemplate::new(PLAIN, String::new(), String::new())?;
    template.choice.origin = TemplateOrigin::Plain;
    template.stops = PLAIN_STOPS.map(str::to_owned).to_vec();
    Ok(template)
}

type Candidate<'a> = (TemplateOrigin, Result<&'a str, TemplateFault>);

/// The templates of a file: the main one, then those with names, the default first.
fn candidates(metadata: &Metadata) -> Vec<Candidate<'_>> {
    let mut all: Vec<Candidate<'_>> = match metadata.get(KEY) {
        None => Vec::new(),
        Some(GgufValue::String(source)) => vec![(TemplateOrigin::File, Ok(source.as_str()))],
        Some(GgufValue::Array(Array::String(sources))) => {
            let place = |index: usize| TemplateOrigin::Named((index + 1).to_string());
            sources.iter().enumerate().map(|(index, source)| (place(index), Ok(source.as_str()))).collect()
        }
        Some(_) => vec![(TemplateOrigin::File, Err(TemplateFault::NotText))],
    };
    if all.is_empty() {
        all.push((TemplateOrigin::File, Err(TemplateFault::Missing)));
    }
    let listed = metadata.optional(NAMES, Metadata::strings).ok().flatten().unwrap_or_default();
    let prefix = |key: &str| key.strip_prefix(KEY)?.strip_prefix('.').map(str::to_owned);
    let keys = metadata.iter().filter_map(|(key, _)| prefix(key));
    let mut names: Vec<String> = [DEFAULT.to_owned()].into_iter().chain(listed.iter().cloned()).collect();
    names.extend(keys);
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    all.extend(names.into_iter().filter_map(|name| {
        let source = metadata.str(&format!("{KEY}.{name}")).ok()?;
        Some((TemplateOrigin::Named(name), Ok(source)))
    }));
    all
}

fn usable(source: &str, bos: &str, eos: &str) -> Result<ChatTemplate, TemplateFault> {
    if source.trim().is_empty() {
        return Err(TemplateFault::Blank);
    }
    let mut template = ChatTemplate::new(source, bos.to_owned(), eos.to_owned()).map_err(TemplateFault::Failed)?;
    template.find_form()?;
    Ok(template)
}

impl ChatTemplate {
    /// Finds the form of messages in which this template writes what a person says: texts, or else lists of parts; and whether it
    /// writes system messages.
    pub(super) fn find_form(&mut self) -> Result<(), TemplateFault> {
        let fault = match self.keeps_questions() {
            Ok(()) => None,
            Err(fault @ TemplateFault::Failed(TemplateError::Runaway)) => Some(fault),
            Err(fault) => {
                self.content = Content::Parts;
                self.keeps_questions().err().map(|_| fault)
            }
        };
        if let Some(fault) = fault {
            self.content = Content::Text;
            return Err(fault);
        }
        let rendered = self.render(&[Message::new("system", SYSTEM), Message::new("user", FIRST)], &options());
        self.folds_system = !rendered.is_ok_and(|text| in_order(&text, &[SYSTEM]) && in_order(&text, &[FIRST]));
        Ok(())
    }

    /// A question is in its prompt, and so are both questions of a conversation, unless the template refuses a second one.
    fn keeps_questions(&self) -> Result<(), TemplateFault> {
        let rendered = self.render(&[Message::new("user", FIRST)], &options()).map_err(TemplateFault::Failed)?;
        if rendered.trim().is_empty() {
            return Err(TemplateFault::Blank);
        }
        if !in_order(&rendered, &[FIRST]) {
            return Err(TemplateFault::QuestionLost);
        }
        let turns = [("user", FIRST), ("assistant", ANSWER), ("user", SECOND)];
        match self.render(&turns.map(|(role, mark)| Message::new(role, mark)), &options()) {
            Ok(text) if in_order(&text, &[FIRST, SECOND]) => Ok(()),
            Ok(_) => Err(TemplateFault::QuestionLost),
            Err(TemplateError::Refused(_)) => Ok(()),
            Err(error) => Err(TemplateFault::Failed(error)),
        }
    }
}

fn options() -> RenderOptions {
    RenderOptions { now: Some(LocalTime::from_unix(0)), ..RenderOptions::default() }
}

/// The text has all marks, each behind the one before.
fn in_order(text: &str, marks: &[&str]) -> bool {
    let mut rest = text;
    marks.iter().all(|mark| match rest.find(mark) {
        Some(at) => {
            rest = &rest[at + mark.len()..];
            true
        }
        None => false,
    })
}
