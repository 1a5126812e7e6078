//! What an answer must be.

use serde::{Deserialize, Serialize};

/// What an answer must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strictness {
    /// The schema is refused.
    Strict,
    /// They do not count.
    Lenient,
}

/// How calls of functions are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// A text.
    Text(String),
    /// A token that is no text.
    Token(u32),
}

/// A function that may be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The schema of its arguments, itself JSON.
    pub parameters: String,
}

impl Rules {
    /// Bytes of schemas and rules.
    #[must_use]
    pub fn bytes(&self) -> usize {
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
}
