//! The metadata of one architecture, with range checks.

use potluck_gguf::Metadata;

use crate::{Architecture, ModelError};

/// Metadata whose keys carry the architecture's prefix.
pub(crate) struct Keys<'a> {
    pub(crate) metadata: &'a Metadata,
    pub(crate) architecture: Architecture,
}

impl<'a> Keys<'a> {
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture.name())
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
