//! Writes GGUF files: first the directory, then the tensors' bytes, streamed in directory order.

use std::io::{self, Write};

use thiserror::Error;

use crate::header::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT, DirectoryEntry, Header, MAGIC, TensorInfo, assemble, tensor_bytes,
};
use crate::{Array, GgufError, Metadata, TensorType, Value};

/// The format version written.
const VERSION: u32 = 3;

/// Why a file could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The requested file would be invalid.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Writing the bytes failed.
    #[error("The model could not be written: {0}.")]
    Io(#[from] io::Error),
}

/// A file to write: metadata and a tensor directory, in data order.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufWriter {
    metadata: Metadata,
    alignment: u64,
    tensors: Vec<DirectoryEntry>,
    data_bytes: u64,
}

impl Default for GgufWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl GgufWriter {
    /// An empty file, aligned to 32 bytes.
    pub fn new() -> Self {
        Self { metadata: Metadata::new(), alignment: DEFAULT_ALIGNMENT, tensors: Vec::new(), data_bytes: 0 }
    }

    /// An empty file with this alignment, which is also stored as `general.alignment`.
    ///
    /// # Errors
    /// The alignment is not a power of two, or is too large.
    pub fn with_alignment(alignment: u32) -> Result<Self, GgufError> {
        let mut writer = Self::new();
        writer.metadata.insert(ALIGNMENT_KEY, Value::U32(alignment));
        writer.alignment = crate::header::alignment_of(&writer.metadata)?;
        Ok(writer)
    }

    /// Sets a metadata key. Ignores the alignment key, which only [`GgufWriter::with_alignment`] sets.
    pub fn set(&mut self, key: impl Into<String>, value: Value) -> &mut Self {
        let key = key.into();
        if key != ALIGNMENT_KEY {
            self.metadata.insert(key, value);
        }
        self
    }

    /// Appends a tensor. `dims[0]` is the row length.
    ///
    /// # Errors
    /// The shape is impossible for this type.
    pub fn tensor(&mut self, name: impl Into<String>, kind: TensorType, dims: &[u64]) -> Result<&mut Self, GgufError> {
        let name = name.into();
        let bytes = tensor_bytes(&name, kind, dims)?;
        let too_large = || GgufError::BadShape {
            name: name.clone(),
            kind,
            dims: dims.to_vec(),
            why: "the file would be larger than any file",
        };
        let offset = self.data_bytes.checked_next_multiple_of(self.alignment).ok_or_else(too_large)?;
        self.data_bytes = offset.checked_add(bytes).ok_or_else(too_large)?;
        self.tensors.push(DirectoryEntry { name, kind, dims: dims.to_vec(), offset });
        Ok(self)
    }

    /// The header as a parser will read it, with every tensor's location.
    ///
    /// # Errors
    /// A duplicate name, or sizes that overflow.
    pub fn layout(&self) -> Result<Header, GgufError> {
        let header_bytes = self.header_bytes().len() as u64;
        assemble(VERSION, self.metadata.clone(), self.tensors.clone(), header_bytes)
    }

    /// The bytes of the header, without the padding before the data.
    fn header_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in self.metadata.iter() {
            put_text(&mut out, key);
            out.extend(value.type_id().to_le_bytes());
            put_value(&mut out, value);
        }
        for entry in &self.tensors {
            put_text(&mut out, &entry.name);
            // The cast cannot truncate: adding a tensor checks that its shape has at most four dimensions.
            out.extend((entry.dims.len() as u32).to_le_bytes());
            for dim in &entry.dims {
                out.extend(dim.to_le_bytes());
            }
            out.extend(entry.kind.id().to_le_bytes());
            out.extend(entry.offset.to_le_bytes());
        }
        out
    }

    /// Writes the file to `out`. Calls `data` for each tensor in order; it must write exactly the tensor's bytes.
    ///
    /// # Errors
    /// No valid layout, a failed write, or a wrong number of bytes from `data`.
    pub fn write_to<W: Write>(
        &self,
        out: W,
        mut data: impl FnMut(&TensorInfo, &mut dyn Write) -> Result<(), WriteError>,
    ) -> Result<Header, WriteError> {
        let header = self.layout()?;
        let mut out = Counted { out, written: 0 };
        out.write_all(&self.header_bytes())?;
        for tensor in &header.tensors {
            out.pad_to(tensor.offset)?;
            data(tensor, &mut out)?;
            if out.written != tensor.end() {
                let message = format!(
                    "the tensor \"{}\" has {} bytes, but {} were given",
                    tensor.name,
                    tensor.bytes,
                    out.written.saturating_sub(tensor.offset)
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message).into());
            }
        }
        if header.tensors.is_empty() {
            out.pad_to(header.data_offset)?;
        }
        out.flush()?;
        Ok(header)
    }

    /// Builds the file in memory; `data` returns each tensor's bytes.
    ///
    /// # Errors
    /// No valid layout, or a wrong number of bytes from `data`.
    pub fn to_bytes(&self, mut data: impl FnMut(&TensorInfo) -> Vec<u8>) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::new();
        self.write_to(&mut out, |tensor, out| Ok(out.write_all(&data(tensor))?))?;
        Ok(out)
    }
}

/// Counts the bytes written, to pad the data and to detect wrong lengths.
struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Counted<W> {
    fn pad_to(&mut self, offset: u64) -> io::Result<()> {
        let missing = offset.saturating_sub(self.written);
        // The alignment is at most 1 MiB, so the padding is too.
        self.write_all(&vec![0; missing as usize])
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(v) => out.push(*v),
        Value::I8(v) => out.extend(v.to_le_bytes()),
        Value::U16(v) => out.extend(v.to_le_bytes()),
        Value::I16(v) => out.extend(v.to_le_bytes()),
        Value::U32(v) => out.extend(v.to_le_bytes()),
        Value::I32(v) => out.extend(v.to_le_bytes()),
        Value::F32(v) => out.extend(v.to_le_bytes()),
        Value::Bool(v) => out.push((*v).into()),
        Value::String(v) => put_text(out, v),
        Value::Array(array) => put_array(out, array),
        Value::U64(v) => out.extend(v.to_le_bytes()),
        Value::I64(v) => out.extend(v.to_le_bytes()),
        Value::F64(v) => out.extend(v.to_le_bytes()),
    }
}

fn put_array(out: &mut Vec<u8>, array: &Array) {
    out.extend(array.element_type_id().to_le_bytes());
    out.extend((array.len() as u64).to_le_bytes());
    match array {
        Array::U8(v) => out.extend(v),
        Array::I8(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::U16(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::I16(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::U32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::I32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::F32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::Bool(v) => out.extend(v.iter().map(|&v| u8::from(v))),
        Array::String(v) => v.iter().for_each(|text| put_text(out, text)),
        Array::Array(v) => v.iter().for_each(|inner| put_array(out, inner)),
        Array::U64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::I64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::F64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
    }
}
