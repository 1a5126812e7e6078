//! The metadata of one architecture, with range checks.

use std::cell::RefCell;
use std::collections::BTreeSet;

use potluck_gguf::{Array, Metadata, Value};

use crate::{Architecture, ModelError};

/// Metadata whose keys carry the architecture's prefix.
pub(crate) struct Keys<'a> {
    pub(crate) metadata: &'a Metadata,
    pub(crate) architecture: Architecture,
    /// Every key that was asked for.
    pub(crate) read: RefCell<BTreeSet<String>>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(metadata: &'a Metadata, architecture: Architecture) -> Self {
        Self { metadata, architecture, read: RefCell::default() }
    }

    /// The full name of a key, which counts as read from now on.
    pub(crate) fn key(&self, key: &str) -> String {
        let key = format!("{}.{key}", self.architecture.name());
        self.read.borrow_mut().insert(key.clone());
        key
    }

    pub(crate) fn u32(&self, key: &str) -> Result<u32, ModelError> {
        Ok(self.metadata.u32(&self.key(key))?)
    }

    pub(crate) fn optional_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.metadata.optional(&self.key(key), Metadata::u32)?)
    }

    pub(crate) fn optional_f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.metadata.optional(&self.key(key), Metadata::f32)?)
    }

    pub(crate) fn optional_bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        Ok(self.metadata.optional(&self.key(key), Metadata::bool)?)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.metadata.contains(&self.key(key))
    }

    /// A number that is not zero; files write 0 for "not set".
    pub(crate) fn nonzero_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.optional_u32(key)?.filter(|&value| value != 0))
    }

    /// A finite number that is not zero; files write 0 for "not set".
    pub(crate) fn nonzero_f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        match self.optional_f32(key)?.filter(|&value| value != 0.0) {
            Some(value) if !value.is_finite() => Err(self.bad(key, value, "it must be a number")),
            value => Ok(value),
        }
    }

    /// A number under either of two names, which must not differ if both are there. Zero means "not set".
    pub(crate) fn nonzero_f32_of(&self, key: &str, alias: &str) -> Result<Option<f32>, ModelError> {
        match (self.nonzero_f32(key)?, self.nonzero_f32(alias)?) {
            (Some(value), Some(other)) if value != other => {
                Err(self.bad(alias, other, format!("\"{key}\" is {value}")))
            }
            (value, other) => Ok(value.or(other)),
        }
    }

    /// Whether llama.cpp itself saved the file (`llama_model_save_to_file`, `llama-finetune`). It then has llama.cpp's defaults for
    /// keys that the architecture does not read, such as two of these caps together.
    pub(crate) fn saved_by_llama_cpp(&self) -> bool {
        let is = |key: &str, cap: f32| {
            let key = format!("{}.{key}", self.architecture.name());
            self.metadata.get(&key).and_then(Value::as_f32) == Some(cap)
        };
        let other = is("final_logit_softcapping", 30.0) || is("router_logit_softcapping", 30.0);
        is("attn_logit_softcapping", 50.0) && other
    }

    /// One flag per block: an array of flags, or a number `n` for "all but every `n`-th"; `default` if the key is absent.
    pub(crate) fn pattern(&self, key: &str, blocks: usize, default: u32) -> Result<Vec<bool>, ModelError> {
        let every = |n: u32| (0..blocks as u32).map(|block| n == 0 || block % n < n - 1).collect();
        match self.metadata.get(&self.key(key)) {
            None => Ok(every(default)),
            Some(Value::Array(Array::Bool(flags))) if flags.len() >= blocks => Ok(flags[..blocks].to_vec()),
            Some(Value::Array(_)) => {
                let flags = self.metadata.u32_per_block(&self.key(key), blocks)?;
                Ok(flags.into_iter().map(|flag| flag != 0).collect())
            }
            Some(_) => Ok(every(self.u32(key)?)),
        }
    }

    pub(crate) fn optional_str(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        Ok(self.metadata.optional(&self.key(key), Metadata::str)?)
    }

    pub(crate) fn bad(&self, key: &str, value: impl ToString, expected: impl ToString) -> ModelError {
        ModelError::BadValue { key: self.key(key), value: value.to_string(), expected: expected.to_string() }
    }

    /// A width or count, from 1 to `max`.
    pub(crate) fn size(&self, key: &str, max: u32) -> Result<u32, ModelError> {
        self.checked_size(key, self.u32(key)?, max)
    }

    /// One size per block, from a number or an array.
    pub(crate) fn sizes(&self, key: &str, blocks: u32, max: u32) -> Result<Vec<u32>, ModelError> {
        let values = self.metadata.u32_per_block(&self.key(key), blocks as usize)?;
        values.into_iter().map(|value| self.checked_size(key, value, max)).collect()
    }

    pub(crate) fn checked_size(&self, key: &str, value: u32, max: u32) -> Result<u32, ModelError> {
        if (1..=max).contains(&value) {
            Ok(value)
        } else {
            Err(self.bad(key, value, format!("it must be from 1 to {max}")))
        }
    }

    pub(crate) fn positive(&self, key: &str, value: f32) -> Result<f32, ModelError> {
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(self.bad(key, value, "it must be a number above zero"))
        }
    }
}
