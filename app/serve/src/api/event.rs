//! What a stream sends.

use serde_json::Value;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// JSON, with the event's name where the API has names.
    Json(Option<&'static str>, Value),
    /// The answer is complete, as OpenAI's APIs say it.
    Done,
}

impl Event {
    /// An event without a name.
    pub fn unnamed(json: Value) -> Self {
        Self::Json(None, json)
    }

    /// An event whose JSON repeats its name as its type.
    pub fn named(name: &'static str, mut json: Value) -> Self {
        json["type"] = Value::from(name);
        Self::Json(Some(name), json)
    }

    /// Its JSON.
    #[cfg(test)]
    pub fn json(&self) -> &Value {
        match self {
            Self::Json(_, json) => json,
            Self::Done => &Value::Null,
        }
    }

    /// Its type, which must be its name as well.
    #[cfg(test)]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Json(Some(name), json) if json["type"] == *name => name,
            other => panic!("an event that has a name of its own: {other:?}"),
        }
    }
}
