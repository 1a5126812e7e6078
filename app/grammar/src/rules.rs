//! What an answer must be, as rules of a grammar.

use std::fmt::Write;

use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::Value;

use crate::GrammarError;
use crate::limits::{MAX_RULES, MAX_VALUES, MAX_VALUES_IN_ALL};

/// White space between the parts of JSON: a space, or a line break with some indentation. More would let small models write nothing else.
const WHITE_SPACE: &str = r" |\n[ \t]{0,24}";
/// How the parts of calls are divided, as templates write them: in one line.
const IN_CALLS: [&str; 2] = [", ?", ": ?"];

/// What an answer must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Rules {
    /// JSON that fits this schema, itself JSON.
    Schema(String),
    /// The same, or calls.
    SchemaOrCalls(String, CallRules),
    /// Calls only.
    Calls(CallRules),
    /// A text that this regular expression matches from beginning to end.
    Regex(String),
    /// A text of this grammar, in the form of Lark that llguidance reads.
    Lark(String),
}

/// What is made of the parts of a schema that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// The schema is refused.
    Strict,
    /// They do not count.
    Lenient,
}

/// How calls of functions are written.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRules {
    /// What stands in front of a function's name.
    pub opening: Vec<Part>,
    /// What stands between its name and its arguments, which are JSON.
    pub between: Vec<Part>,
    /// What stands behind its arguments.
    pub closing: Vec<Part>,
    /// The functions.
    pub functions: Vec<Function>,
    /// What is written of the first call.
    pub begun: Begun,
    /// More calls may follow the first one.
    pub repeats: bool,
    /// What is made of unknown parts of schemas.
    pub strictness: Strictness,
}

/// What is written of the first call when the answer begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nothing.
    Nothing,
    /// Its first part, a token.
    Token,
    /// All that stands in front of the function's name.
    Opening,
    /// Also the name, of the first function, and these letters behind it.
    Name(String),
}

/// A part of how calls are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A text.
    Text(String),
    /// A token that is no text.
    Token(u32),
}

/// A function that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The schema of its arguments, itself JSON.
    pub parameters: String,
}

/// Calls behind the first one, at most.
const MORE_CALLS: usize = 15;

impl Rules {
    /// As llguidance reads them.
    pub(crate) fn grammar(&self) -> Result<TopLevelGrammar, GrammarError> {
        let bytes = self.bytes();
        if bytes > MAX_RULES {
            return Err(GrammarError::TooLong(bytes));
        }
        let mut left = MAX_VALUES_IN_ALL;
        Ok(match self {
            Self::Schema(text) => {
                TopLevelGrammar::from_json_schema(schema(text, Strictness::Strict, Place::Answer, &mut left)?)
            }
            Self::Regex(text) => TopLevelGrammar::from_regex(text),
            Self::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
            Self::Calls(calls) => TopLevelGrammar::from_lark(calls.lark("start: first\n".to_owned(), &mut left)?),
            Self::SchemaOrCalls(text, calls) => {
                let schema = schema(text, Strictness::Strict, Place::Answer, &mut left)?;
                TopLevelGrammar::from_lark(
                    calls.lark(format!("start: answer | first\nanswer: %json {schema}\n"), &mut left)?,
                )
            }
        })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Schema(text) | Self::Regex(text) | Self::Lark(text) => text.len(),
            Self::Calls(calls) => calls.bytes(),
            Self::SchemaOrCalls(text, calls) => text.len().saturating_add(calls.bytes()),
        }
    }
}

impl CallRules {
    fn bytes(&self) -> usize {
        self.functions.iter().map(|function| function.name.len() + function.parameters.len()).sum()
    }

    /// With the rule `first`, for the first call and those behind it.
    fn lark(&self, mut rules: String, left: &mut usize) -> Result<String, GrammarError> {
        let more = if self.repeats { format!("more: (\"\\n\"? call){{0,{MORE_CALLS}}}\n") } else { String::new() };
        let rest =
            |first: &str| format!("{first} {}{}", lark_of(&self.closing), if self.repeats { " more" } else { "" });
        let first = match &self.begun {
            Begun::Nothing => rest(&format!("{} body", lark_of(&self.opening))),
            Begun::Token => rest(&format!("{} body", lark_of(self.opening.get(1..).unwrap_or_default()))),
            Begun::Opening => rest("body"),
            Begun::Name(written) => {
                let between = without(&self.between, written)
                    .ok_or_else(|| GrammarError::unusable("a call that was begun is of another form"))?;
                rest(&format!("{} arguments_0", lark_of(&between)))
            }
        };
        let bodies: Vec<String> = (0..self.functions.len()).map(|index| format!("body_{index}")).collect();
        // Writing to a string does not fail.
        _ = write!(
            rules,
            "first: {first}\ncall: {} body {}\n{more}body: {}\n",
            lark_of(&self.opening),
            lark_of(&self.closing),
            bodies.join(" | ")
        );
        for (index, function) in self.functions.iter().enumerate() {
            let name = Part::Text(function.name.clone());
            let schema = schema(&function.parameters, self.strictness, Place::Call, left)?;
            let before = lark_of([&[name], &self.between[..]].concat().as_slice());
            _ = write!(rules, "body_{index}: {before} arguments_{index}\narguments_{index}: %json {schema}\n");
        }
        Ok(rules)
    }
}

/// Parts in a row, as Lark has them.
fn lark_of(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => Value::from(text.as_str()).to_string(),
        Part::Token(id) => format!("<[{id}]>"),
    };
    let is_some = |part: &&Part| !matches!(part, Part::Text(text) if text.is_empty());
    parts.iter().filter(is_some).map(part).collect::<Vec<_>>().join(" ")
}

/// Parts without the text that they begin with.
fn without(parts: &[Part], text: &str) -> Option<Vec<Part>> {
    match parts {
        _ if text.is_empty() => Some(parts.to_vec()),
        [Part::Text(first), rest @ ..] => {
            let left = Part::Text(first.strip_prefix(text)?.to_owned());
            Some([&[left], rest].concat())
        }
        _ => None,
    }
}

/// Values of a JSON value, itself included.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

/// Where JSON is written.
#[derive(Clone, Copy)]
enum Place {
    Answer,
    Call,
}

/// A schema with how JSON of it is written. `left`: values that schemas may still have.
fn schema(text: &str, strictness: Strictness, place: Place, left: &mut usize) -> Result<Value, GrammarError> {
    let mut schema: Value = serde_json::from_str(text).map_err(|_| GrammarError::NoSchema)?;
    if !schema.is_object() {
        return Err(GrammarError::NoSchema);
    }
    let values = values(&schema);
    *left = left.checked_sub(values).filter(|_| values <= MAX_VALUES).ok_or(GrammarError::TooManyValues)?;
    let is_lenient = strictness == Strictness::Lenient;
    let usual = JsonCompileOptions { coerce_one_of: true, lenient: is_lenient, ..JsonCompileOptions::default() };
    let options = match place {
        Place::Answer => JsonCompileOptions { whitespace_pattern: Some(WHITE_SPACE.to_owned()), ..usual },
        Place::Call => {
            let [item_separator, key_separator] = IN_CALLS.map(str::to_owned);
            JsonCompileOptions { whitespace_flexible: false, item_separator, key_separator, ..usual }
        }
    };
    // Whatever the schema itself says of this.
    options.apply_to(&mut schema);
    Ok(schema)
}

#[cfg(test)]
mod tests;
