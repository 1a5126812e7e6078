//! The header of a GGUF file, and the checks that apply to every header.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{GgufError, Metadata, TensorType};

/// The four bytes a file starts with.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// Data alignment if the metadata specifies none.
pub const DEFAULT_ALIGNMENT: u64 = 32;
/// Largest accepted alignment.
pub const MAX_ALIGNMENT: u64 = 1 << 20;
/// Largest number of tensor dimensions.
pub const MAX_DIMS: usize = 4;
/// Metadata key of the alignment.
pub const ALIGNMENT_KEY: &str = "general.alignment";

/// A tensor's name, type, shape and location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorInfo {
    /// Name, for example `blk.0.attn_q.weight`.
    pub name: String,
    /// How its values are stored.
    pub kind: TensorType,
    /// Dimensions in GGUF order: `dims[0]` is the length of a contiguous row. One to four, none zero.
    pub dims: Vec<u64>,
    /// File index: 0 for a single file, otherwise the position in the split.
    pub file: u16,
    /// First byte, counted from the start of its file.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl TensorInfo {
    /// Row length (`dims[0]`).
    pub fn cols(&self) -> u64 {
        self.dims[0]
    }

    /// Rows per matrix (`dims[1]`, 1 for a vector).
    pub fn rows(&self) -> u64 {
        self.dims.get(1).copied().unwrap_or(1)
    }

    /// Number of stacked matrices (`dims[2] * dims[3]`), such as the experts of a block.
    pub fn matrices(&self) -> u64 {
        self.dims.iter().skip(2).product()
    }

    /// Number of values.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Offset just past the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// The header of one file.
///
/// ```
/// use potluck_gguf::{GgufWriter, TensorType, parse};
///
/// let mut writer = GgufWriter::new();
/// writer.set("general.architecture", "llama".into());
/// writer.tensor("token_embd.weight", TensorType::Q8_0, &[64, 100])?;
/// let file = writer.to_bytes(|tensor| vec![0; tensor.bytes as usize])?;
///
/// let header = parse(&file)?;
/// assert_eq!(header.metadata.str("general.architecture")?, "llama");
/// let table = header.tensor("token_embd.weight").unwrap();
/// // Two blocks of 32 values in a row; a block has 32 bytes and a half float.
/// assert_eq!((table.rows(), table.bytes), (100, 100 * 2 * 34));
/// assert_eq!(table.offset % header.alignment, 0);
/// assert!(header.check_length(table.end() - 1).is_err(), "the file would be truncated");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format version, 2 or 3.
    pub version: u32,
    /// Tensor offsets are multiples of this.
    pub alignment: u64,
    /// All metadata.
    pub metadata: Metadata,
    /// All tensors, in directory order.
    pub tensors: Vec<TensorInfo>,
    /// Start of the data section: the header's length rounded up to the alignment.
    pub data_offset: u64,
}

impl Header {
    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Length the file needs to contain all tensors.
    pub fn required_length(&self) -> u64 {
        self.tensors.iter().map(TensorInfo::end).max().unwrap_or(0)
    }

    /// Checks that every tensor lies within a file of `length` bytes.
    ///
    /// # Errors
    /// [`GgufError::Truncated`] with the first tensor that ends beyond the file.
    pub fn check_length(&self, length: u64) -> Result<(), GgufError> {
        match self.tensors.iter().find(|tensor| tensor.end() > length) {
            None => Ok(()),
            Some(tensor) => Err(GgufError::Truncated {
                what: format!("the tensor \"{}\" ({})", tensor.name, tensor.kind),
                needed: tensor.end(),
                length,
            }),
        }
    }
}

/// An entry of the tensor directory, read before the start of the data is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DirectoryEntry {
    pub name: String,
    pub kind: TensorType,
    pub dims: Vec<u64>,
    /// Counted from the start of the data section.
    pub offset: u64,
}

/// The alignment specified by the metadata.
pub(crate) fn alignment_of(metadata: &Metadata) -> Result<u64, GgufError> {
    let alignment = metadata.optional(ALIGNMENT_KEY, Metadata::u64)?.unwrap_or(DEFAULT_ALIGNMENT);
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(GgufError::BadAlignment { alignment });
    }
    Ok(alignment)
}

/// Size of a tensor of this shape in bytes. Rejects missing, excess, zero and overflowing dimensions and partial
/// blocks.
pub(crate) fn tensor_bytes(name: &str, kind: TensorType, dims: &[u64]) -> Result<u64, GgufError> {
    let bad = |why| GgufError::BadShape { name: name.to_string(), kind, dims: dims.to_vec(), why };
    let (&cols, outer) = dims.split_first().ok_or_else(|| bad("it has no dimensions"))?;
    if dims.len() > MAX_DIMS {
        return Err(bad("it has more than four dimensions"));
    }
    if dims.contains(&0) {
        return Err(bad("a dimension is zero"));
    }
    if !cols.is_multiple_of(kind.block_elements()) {
        return Err(bad("a row is not a whole number of blocks"));
    }
    let overflow = || bad("it is larger than any file");
    dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim)).ok_or_else(overflow)?;
    let row = kind.row_bytes(cols).ok_or_else(overflow)?;
    outer.iter().try_fold(row, |bytes, &dim| bytes.checked_mul(dim)).ok_or_else(overflow)
}

/// Assembles a header: locates the data section and validates the directory as a whole.
pub(crate) fn assemble(
    version: u32,
    metadata: Metadata,
    directory: Vec<DirectoryEntry>,
    header_bytes: u64,
) -> Result<Header, GgufError> {
    let alignment = alignment_of(&metadata)?;
    let data_offset = header_bytes.next_multiple_of(alignment);
    let mut names = HashSet::with_capacity(directory.len());
    for entry in &directory {
        if !names.insert(entry.name.as_str()) {
            return Err(GgufError::DuplicateTensor { name: entry.name.clone() });
        }
    }
    drop(names);
    let mut tensors: Vec<TensorInfo> = Vec::with_capacity(directory.len());
    // Tensors follow each other without gaps, as llama.cpp demands since 2025.
    let mut expected = 0;
    for DirectoryEntry { name, kind, dims, offset } in directory {
        let bytes = tensor_bytes(&name, kind, &dims)?;
        let end = data_offset.checked_add(offset).and_then(|absolute| absolute.checked_add(bytes));
        if !offset.is_multiple_of(alignment) || end.is_none() {
            return Err(GgufError::BadOffset { name, offset, alignment });
        }
        if offset != expected {
            let before = tensors.last().map(|before| (before.name.clone(), before.kind));
            return Err(GgufError::Misplaced { name, offset, expected, before });
        }
        expected = (offset + bytes).checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
        tensors.push(TensorInfo { name, kind, dims, file: 0, offset: data_offset + offset, bytes });
    }
    Ok(Header { version, alignment, metadata, tensors, data_offset })
}
