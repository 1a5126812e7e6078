//! A model: a single file, or all files of a split.

use std::collections::HashMap;

use crate::{GgufError, Header, Metadata, TensorInfo};

/// Number of a file in the split, from 0.
pub const SPLIT_NO_KEY: &str = "split.no";
/// Number of files in the split.
pub const SPLIT_COUNT_KEY: &str = "split.count";
/// Number of tensors in all files of the split.
pub const SPLIT_TENSORS_KEY: &str = "split.tensors.count";

/// A model: metadata and all tensors, each with the index of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The first file's metadata; the other files only describe the split.
    pub metadata: Metadata,
    /// All tensors, file by file.
    pub tensors: Vec<TensorInfo>,
    names: HashMap<String, usize>,
}

impl Model {
    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.names.get(name).map(|&index| &self.tensors[index])
    }

    /// Bytes of all tensors.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add)
    }
}

/// Number of files that the model of this header has: 1 unless it is split.
///
/// # Errors
/// The key has another type.
pub fn split_count(header: &Header) -> Result<u32, GgufError> {
    Ok(header.metadata.optional(SPLIT_COUNT_KEY, Metadata::u32)?.unwrap_or(1).max(1))
}

/// [`split_count`] of a header that must be that of the first file.
///
/// # Errors
/// The key has another type, or it is another file of the split.
pub fn first_split_count(header: &Header) -> Result<u32, GgufError> {
    let count = split_count(header)?;
    check_number(header, count, 0)?;
    Ok(count)
}

/// Combines the headers of a model's files, given in order, into one model.
///
/// # Errors
/// The headers do not belong together: a file of the split is missing, duplicated or out of order, or two files contain
/// the same tensor.
pub fn join(headers: impl IntoIterator<Item = Header>) -> Result<Model, GgufError> {
    let mut headers = headers.into_iter();
    let Some(first) = headers.next() else {
        return Err(GgufError::BadSplit { count: 1, expected: 1, found: "no file at all".to_string() });
    };
    let count = split_count(&first)?;
    let promised = first.metadata.optional(SPLIT_TENSORS_KEY, Metadata::u64)?;
    if u16::try_from(count).is_err() {
        let what = format!("the metadata key \"{SPLIT_COUNT_KEY}\"");
        return Err(GgufError::TooLarge { what, value: count.into(), limit: u16::MAX.into() });
    }
    check_number(&first, count, 0)?;
    let mut model = Model { metadata: first.metadata, tensors: Vec::new(), names: HashMap::new() };
    add(&mut model, first.tensors, 0)?;
    let mut number = 1;
    for header in headers {
        check_number(&header, count, number)?;
        // The cast cannot truncate: `check_number` keeps the number below the count, which fits 16 bits.
        add(&mut model, header.tensors, number as u16)?;
        number += 1;
    }
    if number < count {
        return Err(GgufError::BadSplit { count, expected: number + 1, found: "it was not given".to_string() });
    }
    let found = model.tensors.len() as u64;
    match promised {
        Some(expected) if count > 1 && expected != found => Err(GgufError::SplitTensorCount { expected, found }),
        _ => Ok(model),
    }
}

fn add(model: &mut Model, tensors: Vec<TensorInfo>, file: u16) -> Result<(), GgufError> {
    for tensor in tensors {
        if model.names.insert(tensor.name.clone(), model.tensors.len()).is_some() {
            return Err(GgufError::DuplicateTensor { name: tensor.name });
        }
        model.tensors.push(TensorInfo { file, ..tensor });
    }
    Ok(())
}

fn check_number(header: &Header, count: u32, number: u32) -> Result<(), GgufError> {
    let bad = |found: String| GgufError::BadSplit { count, expected: number + 1, found };
    if number >= count {
        return Err(bad("one file too many was given".to_string()));
    }
    let own_count = split_count(header)?;
    if own_count != count {
        return Err(bad(format!("a file of a split into {own_count} was given")));
    }
    if count == 1 {
        return Ok(());
    }
    let own = header.metadata.u32(SPLIT_NO_KEY)?;
    if own != number {
        return Err(bad(format!("number {} was given", u64::from(own) + 1)));
    }
    Ok(())
}
