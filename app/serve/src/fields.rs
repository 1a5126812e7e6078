//! The fields of a request. Unknown ones are ignored, and `null` is the same as nothing.

use serde_json::{Map, Value};

use crate::error::ApiError;

/// The fields of a JSON object.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Those of the body of a request.
    pub fn of(body: &'a Value) -> Result<Self, ApiError> {
        body.as_object().map(Self).ok_or_else(|| ApiError::NotJson("expected an object".to_owned()))
    }

    /// A field, unless it is absent or null.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, ApiError> {
        let read = |value| read(value).ok_or_else(|| ApiError::invalid(name, format!("expected {expected}")));
        self.get(name).map(read).transpose()
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.read(name, Value::as_bool, "true or false")
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.read(name, Value::as_str, "a string")
    }

    /// A number from 0 to `most`.
    pub fn number(&self, name: &str, most: f32) -> Result<Option<f32>, ApiError> {
        let read =
            |value: &Value| value.as_f64().map(|number| number as f32).filter(|number| (0.0..=most).contains(number));
        self.read(name, read, &format!("a number from 0 to {most}"))
    }

    /// An integer. Some programs write it with a point.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 1e18).then_some(number as i64);
        // What is larger than an i64 keeps its bits: a seed may be.
        let read = |value: &Value| {
            value
                .as_i64()
                .or_else(|| value.as_u64().map(|number| number as i64))
                .or_else(|| value.as_f64().and_then(whole))
        };
        self.read(name, read, "an integer")
    }

    /// An array of strings, or one string.
    pub fn texts(&self, name: &str) -> Result<Vec<String>, ApiError> {
        let read = |value: &Value| match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(texts) => texts.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        Ok(self.read(name, read, "a string or an array of strings")?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_nothing_and_a_wrong_type_is_named() {
        let body = json!({ "stream": null, "n": 2.0, "seed": u64::MAX, "top_p": 0.5, "stop": ["a", "b"], "temperature": "hot" });
        let fields = Fields::of(&body).unwrap();
        assert_eq!(fields.boolean("stream"), Ok(None));
        assert_eq!(fields.integer("n"), Ok(Some(2)), "with a point");
        assert_eq!(fields.integer("seed"), Ok(Some(-1)));
        assert_eq!(fields.number("top_p", 1.0), Ok(Some(0.5)));
        assert_eq!(fields.texts("stop").unwrap(), ["a", "b"]);
        for error in [fields.number("temperature", 5.0).unwrap_err(), fields.integer("top_p").unwrap_err()] {
            assert!(matches!(error, ApiError::Invalid { .. }), "{error}");
        }
        assert!(fields.number("n", 1.0).unwrap_err().to_string().starts_with("n: expected a number from 0 to 1"));
        assert!(matches!(Fields::of(&json!([1])), Err(ApiError::NotJson(_))));
    }
}
