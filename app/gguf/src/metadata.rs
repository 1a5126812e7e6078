//! Metadata with typed getters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Array, GgufError, Value};

/// All metadata of a file, by key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    values: BTreeMap<String, Value>,
}

impl Metadata {
    /// No metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Sets a key and returns its previous value.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.values.insert(key.into(), value)
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.values.remove(key)
    }

    /// Whether the key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// All pairs, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a key, or [`GgufError::MissingKey`].
    ///
    /// # Errors
    /// [`GgufError::MissingKey`].
    pub fn require(&self, key: &str) -> Result<&Value, GgufError> {
        self.get(key).ok_or_else(|| GgufError::MissingKey { key: key.to_string() })
    }

    /// A whole number of any stored type, or an array that repeats one.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn u64(&self, key: &str) -> Result<u64, GgufError> {
        self.typed(key, "a whole number", Value::as_u64)
    }

    /// A [`Self::u64`] that fits 32 bits.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.typed(key, "a whole number below 4294967296", |value| value.as_u64()?.try_into().ok())
    }

    /// A number of any stored type as a float.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.typed(key, "a number", Value::as_f32)
    }

    /// A boolean, also stored as 0 or 1.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        self.typed(key, "a bool", Value::as_bool)
    }

    /// A string.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.typed(key, "a string", |value| if let Value::String(v) = value { Some(v.as_str()) } else { None })
    }

    /// An array of strings.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn strings(&self, key: &str) -> Result<&[String], GgufError> {
        self.typed(key, "an array of strings", |value| match value {
            Value::Array(Array::String(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of numbers as floats.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn f32s(&self, key: &str) -> Result<Cow<'_, [f32]>, GgufError> {
        self.typed(key, "an array of float32", |value| match value {
            Value::Array(array) => array.to_f32s(),
            _ => None,
        })
    }

    /// An array of integers of any stored width that fit 32 bits.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn u32s(&self, key: &str) -> Result<Vec<u32>, GgufError> {
        self.typed(key, "an array of whole numbers", |value| match value {
            Value::Array(array) => array.to_u64s()?.into_iter().map(|v| v.try_into().ok()).collect(),
            _ => None,
        })
    }

    /// An array of integers of any stored width.
    ///
    /// # Errors
    /// The key is missing, or its value has another type.
    pub fn i64s(&self, key: &str) -> Result<Vec<i64>, GgufError> {
        self.typed(key, "an array of whole numbers", |value| match value {
            Value::Array(array) => array.to_i64s(),
            _ => None,
        })
    }

    /// One number per block for `count` blocks: a scalar applies to all blocks, an array has one element per block.
    ///
    /// # Errors
    /// The key is missing, or does not provide a number for each block.
    pub fn u32_per_block(&self, key: &str, count: usize) -> Result<Vec<u32>, GgufError> {
        match self.require(key)? {
            Value::Array(_) => {
                let values = self.u32s(key)?;
                if values.len() < count {
                    return Err(self.wrong_type(key, "an array with a number for each block"));
                }
                Ok(values[..count].to_vec())
            }
            _ => Ok(vec![self.u32(key)?; count]),
        }
    }

    /// Makes a typed getter optional: `None` if the key is absent, as in `metadata.optional(key, Metadata::u32)?`.
    ///
    /// # Errors
    /// Whatever the getter returns for a key that exists.
    pub fn optional<'a, T>(
        &'a self,
        key: &str,
        getter: impl FnOnce(&'a Self, &str) -> Result<T, GgufError>,
    ) -> Result<Option<T>, GgufError> {
        if self.contains(key) { getter(self, key).map(Some) } else { Ok(None) }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, GgufError> {
        read(self.require(key)?).ok_or_else(|| self.wrong_type(key, expected))
    }

    fn wrong_type(&self, key: &str, expected: &'static str) -> GgufError {
        let found = self.get(key).map_or_else(|| "missing".to_string(), Value::describe);
        GgufError::WrongType { key: key.to_string(), expected, found }
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        Self { values: pairs.into_iter().collect() }
    }
}
