//! Reads values from a buffer, or reports how many bytes it lacks.

use crate::parser::MAX_NAME_BYTES;
use crate::{Array, GgufError};

/// Why a step did not complete.
pub(crate) enum Stop {
    /// The step needs this many bytes, counted from its start.
    Need(u64),
    Bad(GgufError),
}

impl From<GgufError> for Stop {
    fn from(error: GgufError) -> Self {
        Stop::Bad(error)
    }
}

/// A partially read array.
#[derive(Debug)]
pub(crate) struct OpenArray {
    pub values: Array,
    /// Elements still to read.
    pub left: u64,
}

pub(crate) fn too_large(what: &str, value: u64, limit: u64) -> GgufError {
    GgufError::TooLarge { what: what.to_string(), value, limit }
}

/// Reads values from a byte buffer.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Bytes read so far.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Consumes the next `count` bytes.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let end = (self.at as u64).saturating_add(count);
        match self.bytes.get(self.at..usize::try_from(end).unwrap_or(usize::MAX)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(Stop::Need(end)),
        }
    }

    /// Consumes the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64)?);
        Ok(out)
    }

    /// Reads a 32-bit number.
    pub fn u32(&mut self) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads a 64-bit number.
    pub fn u64(&mut self) -> Result<u64, Stop> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a key or tensor name, which must be valid UTF-8.
    pub fn name(&mut self, what: &str) -> Result<String, Stop> {
        let length = self.u64()?;
        if length > MAX_NAME_BYTES {
            return Err(too_large(&format!("the length of {what}"), length, MAX_NAME_BYTES).into());
        }
        let bytes = self.take(length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(GgufError::NotText { what: what.to_string() }.into()),
        }
    }

    /// Reads a string value. Published vocabularies sometimes contain invalid UTF-8: it is replaced, not rejected.
    pub fn text(&mut self, key: &str, room: u64) -> Result<String, Stop> {
        let length = self.u64()?;
        if length > room {
            return Err(
                too_large(&format!("the length of a string of the metadata key \"{key}\""), length, room).into()
            );
        }
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// Reads an array's element type and length, bounded by `room`.
    pub fn array_head(&mut self, key: &str, room: u64) -> Result<OpenArray, Stop> {
        let id = self.u32()?;
        let values = Array::empty(id).ok_or_else(|| GgufError::UnknownValueType { key: key.to_string(), id })?;
        let left = self.u64()?;
        let limit = room / values.min_element_bytes();
        if left > limit {
            let what = format!("the number of elements of the metadata key \"{key}\"");
            return Err(too_large(&what, left, limit).into());
        }
        Ok(OpenArray { values, left })
    }

    /// Reads up to `left` numbers, at least one; returns the count.
    pub fn numbers<T, const N: usize>(
        &mut self,
        values: &mut Vec<T>,
        left: u64,
        read: impl Fn([u8; N]) -> T,
    ) -> Result<u64, Stop> {
        let at_hand = ((self.bytes.len() - self.at) / N) as u64;
        let count = left.min(at_hand);
        if count == 0 {
            return Err(Stop::Need(N as u64));
        }
        for _ in 0..count {
            values.push(read(self.array()?));
        }
        Ok(count)
    }
}
