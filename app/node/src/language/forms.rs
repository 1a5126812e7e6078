//! The form that an answer must have, as rules for its tokens.

use std::collections::BTreeSet;
use std::sync::Arc;

use potluck_forms::{Begun, CallRules, Function, GrammarError, Part, Rules, Strictness};
#[cfg(not(target_arch = "wasm32"))]
use potluck_grammar::{Matcher, Vocabulary};
use potluck_model::{CallForm, ChannelParser, SpecialText, TokenKind, Tokenizer};
use potluck_plan::{AllowedTokens, Channel};
use potluck_protocol::{AnswerForm, PromptRequest, ToolChoice};
use potluck_swarm::Grammar;
use serde_json::Value;

use super::ModelLanguage;
#[cfg(target_arch = "wasm32")]
use crate::web::forms::{Matcher, Vocabulary};

/// Any JSON object.
const OBJECT: &str = r#"{"type": "object"}"#;

impl ModelLanguage {
    /// What holds an answer to its form; `None`: it is free, or nobody can say what calls of this model look like.
    pub(super) fn form(
        &self,
        question: &PromptRequest,
        prompt: &[u32],
        vocabulary: u32,
    ) -> Result<Option<Box<dyn Grammar>>, GrammarError> {
        let Some((rules, begins)) = self.rules(question)? else { return Ok(None) };
        let tokens = self.vocabulary(vocabulary)?;
        let fresh = match tokens.matcher(&rules) {
            // As without a grammar: nobody has asked for one.
            Err(_) if question.logits.form == (AnswerForm::Calls { strict: false }) => return Ok(None),
            fresh => fresh?,
        };
        let parser = self.parser_within(question);
        let parser = parser.unwrap_or_else(|| self.channels_of(question).parser(&self.tokenizer, prompt));
        let is_held = match begins {
            Begins::AtOnce => true,
            Begins::WithAnswer => parser.channel() == Some(Channel::Answer),
            Begins::WithToken(_) => false,
        };
        let (at, tokenizer) = (State { parser, matcher: fresh, is_held }, self.tokenizer.clone());
        Ok(Some(Box::new(FormGrammar { tokenizer, vocabulary, begins, fresh: at.clone(), at })))
    }

    /// The tokens as grammars see them, made once.
    fn vocabulary(&self, count: u32) -> Result<&Vocabulary, GrammarError> {
        let known = match self.vocabulary.get() {
            Some(known) => known,
            None => match self.read_vocabulary(count) {
                // It may be there next time.
                Err(error @ GrammarError::NotLoaded(_)) => return Err(error),
                read => self.vocabulary.get_or_init(|| read),
            },
        };
        known.as_ref().map_err(Clone::clone)
    }

    /// What is asked for, and where it begins.
    fn rules(&self, question: &PromptRequest) -> Result<Option<(Rules, Begins)>, GrammarError> {
        let (form, choice) = (&question.logits.form, &question.tools.choice);
        let with_answer = |rules| Ok(Some((rules, Begins::WithAnswer)));
        let schema = match form {
            AnswerForm::Free => return Ok(None),
            AnswerForm::Regex(text) => return with_answer(Rules::Regex(text.clone())),
            AnswerForm::Lark(text) => return with_answer(Rules::Lark(text.clone())),
            AnswerForm::Calls { .. } => None,
            AnswerForm::Json => Some(OBJECT.to_owned()),
            AnswerForm::Schema(text) => Some(text.clone()),
        };
        let strictness =
            if *form == (AnswerForm::Calls { strict: false }) { Strictness::Lenient } else { Strictness::Strict };
        let is_demanded = *choice != ToolChoice::Free;
        let calls = self.calls(question, strictness)?;
        match (schema, calls) {
            (Some(schema), Some(calls)) if !is_demanded => with_answer(Rules::SchemaOrCalls(schema, calls)),
            (Some(schema), None) if !is_demanded => with_answer(Rules::Schema(schema)),
            (_, Some(calls)) if is_demanded => Ok(Some((Rules::Calls(calls), Begins::AtOnce))),
            (None, Some(calls)) => match calls.opening.first() {
                // Behind a token that nothing else begins with, the rest of the call must follow.
                Some(Part::Token(first)) => {
                    let begins = Begins::WithToken(*first);
                    Ok(Some((Rules::Calls(CallRules { begun: Begun::Token, ..calls }), begins)))
                }
                _ => Ok(None),
            },
            (_, None) if strictness == Strictness::Strict && is_demanded => {
                Err(GrammarError::Unusable("this model writes calls in a form without JSON".to_owned()))
            }
            (_, _) => Ok(None),
        }
    }

    /// How this model calls the offered functions. `None`: there are none, or its calls are not JSON.
    fn calls(&self, question: &PromptRequest, strictness: Strictness) -> Result<Option<CallRules>, GrammarError> {
        let functions = question.tools.functions.iter().map(|text| function(text));
        let mut functions = functions.collect::<Option<Vec<Function>>>().ok_or(GrammarError::NoSchema)?;
        if functions.is_empty() || question.raw {
            return Ok(None);
        }
        let form = if self.support.offers {
            self.template.call_form(&self.options(question))
        } else {
            Some(CallForm::plain())
        };
        let Some(CallForm { opening, between, closing }) = form else { return Ok(None) };
        let begun = match &question.tools.choice {
            ToolChoice::Free => Begun::Nothing,
            ToolChoice::Any => Begun::Opening,
            ToolChoice::Function(name) => {
                functions.retain(|function| function.name == *name);
                // As the prompt ends.
                Begun::Name(if opening.ends_with('"') { "\"".to_owned() } else { String::new() })
            }
        };
        if functions.is_empty() {
            return Err(GrammarError::Unusable("the function that must be called is not offered".to_owned()));
        }
        let (opening, between) = (self.parts(&opening), self.parts(&between));
        let mut closing = self.parts(&closing);
        // The answer ends there.
        let is_end = |part: &Part| matches!(part, Part::Token(id) if self.stop.contains(*id));
        closing.truncate(closing.iter().position(is_end).unwrap_or(closing.len()));
        if let Some(Part::Text(last)) = closing.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let ends_with_tag = match closing.last() {
            Some(Part::Text(text)) => text.ends_with("</tool_call>"),
            Some(Part::Token(id)) => self.tokenizer.piece(*id) == b"</tool_call>",
            None => false,
        };
        Ok(Some(CallRules { opening, between, closing, functions, begun, repeats: ends_with_tag, strictness }))
    }

    /// A text of the template with its markers.
    fn parts(&self, text: &str) -> Vec<Part> {
        let (mut parts, mut rest) = (Vec::new(), text);
        for id in self.tokenizer.encode(text, SpecialText::Parse).into_iter().filter(|id| self.is_marker(*id)) {
            let name = self.tokenizer.name(id);
            if let Some((before, after)) = rest.split_once(&name) {
                parts.extend((!before.is_empty()).then(|| Part::Text(before.to_owned())));
                parts.push(Part::Token(id));
                rest = after;
            }
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.to_owned())));
        parts
    }

    /// A token that is there for what it does, and not for its text.
    fn is_marker(&self, id: u32) -> bool {
        match self.tokenizer.kind(id) {
            Some(TokenKind::Control) => true,
            Some(TokenKind::UserDefined) => self.tokenizer.name(id).starts_with(['<', '[']),
            _ => false,
        }
    }

    /// The tokens as grammars see them; markers of calls and channels are no text.
    fn read_vocabulary(&self, count: u32) -> Result<Vocabulary, GrammarError> {
        let form = self.template.call_form(&potluck_model::RenderOptions { now: Some(self.now), ..Default::default() });
        let texts = form.into_iter().flat_map(|form| [form.opening, form.between, form.closing]);
        let of_calls = texts.flat_map(|text| self.tokenizer.encode(&text, SpecialText::Parse));
        let markers: BTreeSet<u32> = of_calls.filter(|id| self.is_marker(*id)).chain(self.channels.markers()).collect();
        let bytes = |id: u32| match self.tokenizer.kind(id) {
            Some(TokenKind::Normal | TokenKind::Byte | TokenKind::UserDefined) if !markers.contains(&id) => {
                Some(self.tokenizer.piece(id))
            }
            _ => None,
        };
        let ends: Vec<u32> = (0..count).filter(|id| self.stop.contains(*id)).collect();
        Vocabulary::new((0..count).map(bytes), &ends)
    }
}

/// A function that is offered, as chat templates read it.
fn function(text: &str) -> Option<Function> {
    let read: Value = serde_json::from_str(text).ok()?;
    let function = read.get("function")?;
    let name = function.get("name")?.as_str()?.to_owned();
    let parameters = function.get("parameters").map_or_else(|| OBJECT.to_owned(), Value::to_string);
    Some(Function { name, parameters })
}

/// Where an answer's form begins.
#[derive(Clone, Copy, Debug)]
enum Begins {
    /// At its first token.
    AtOnce,
    /// Behind its reasoning.
    WithAnswer,
    /// Behind this token, if it is not of the reasoning.
    WithToken(u32),
}

/// Holds an answer to its form, from where that begins.
struct FormGrammar {
    tokenizer: Arc<Tokenizer>,
    /// Tokens that the model has.
    vocabulary: u32,
    begins: Begins,
    fresh: State,
    at: State,
}

#[derive(Clone)]
struct State {
    parser: ChannelParser,
    matcher: Matcher,
    is_held: bool,
}

impl State {
    /// The answer goes on with this token while its form has not begun.
    fn read(&mut self, tokenizer: &Tokenizer, begins: Begins, token: u32) {
        let before = self.parser.channel();
        self.parser.push(tokenizer, token);
        self.is_held = match begins {
            Begins::AtOnce => true,
            Begins::WithAnswer => self.parser.channel() == Some(Channel::Answer),
            Begins::WithToken(first) => token == first && before != Some(Channel::Reasoning),
        };
    }
}

impl Grammar for FormGrammar {
    fn allowed(&mut self, drafts: &mut Vec<u32>) -> Result<Vec<AllowedTokens>, String> {
        if self.at.is_held {
            return self.at.matcher.allowed_with(drafts).map_err(|error| error.to_string());
        }
        // No further than to where the form would begin.
        let mut state = self.at.clone();
        let free = drafts.iter().take_while(|draft| {
            state.read(&self.tokenizer, self.begins, **draft);
            !state.is_held
        });
        let count = free.count();
        drafts.truncate(count);
        let all = AllowedTokens::all(self.vocabulary).map_err(|error| error.to_string())?;
        Ok(vec![all; count + 1])
    }

    fn push(&mut self, token: u32) -> Result<(), String> {
        if self.at.is_held {
            return self.at.matcher.push(token).map_err(|error| error.to_string());
        }
        self.at.read(&self.tokenizer, self.begins, token);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.at.is_held && self.at.matcher.is_complete()
    }

    fn begin_again(&mut self) {
        self.at = self.fresh.clone();
    }
}
