//! An incremental parser: input arrives in pieces of any size and is scanned once.

use crate::cursor::{Cursor, OpenArray, Stop, too_large};
use crate::error::GgufError;
use crate::foreign::{ForeignFile, LOOKED_AT};
use crate::header::{self, DirectoryEntry, Header, MAGIC, MAX_DIMS};
use crate::value::value_type;
use crate::{Array, Metadata, Progress, TensorType, Value};

/// Maximum size of a string or array in bytes.
pub const MAX_VALUE_BYTES: u64 = 64 << 20;
/// Maximum length of a key or tensor name in bytes.
pub const MAX_NAME_BYTES: u64 = 65_535;
/// Maximum length of a header in bytes.
pub const MAX_HEADER_BYTES: u64 = 512 << 20;
/// Minimum size of a metadata pair: an empty key, a type and one byte.
const MIN_PAIR_BYTES: u64 = 8 + 4 + 1;
/// Minimum size of a directory entry: a one-letter name, a dimension, a type and an offset.
const MIN_ENTRY_BYTES: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// Reads a header from bytes that arrive in pieces.
///
/// Memory use stays within a small multiple of the bytes pushed, whatever counts the header claims.
///
/// ```
/// # use potluck_gguf::{GgufWriter, HeaderParser, Progress, Value};
/// # let mut writer = GgufWriter::new();
/// # writer.set("general.architecture", Value::from("llama"));
/// # let file = writer.to_bytes(|_| Vec::new())?;
/// let mut parser = HeaderParser::new();
/// for piece in file.chunks(7) {
///     if let Progress::Done(header) = parser.push(piece)? {
///         assert_eq!(header.metadata.str("general.architecture")?, "llama");
///         break;
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct HeaderParser {
    buffer: Vec<u8>,
    /// Consumed bytes at the front of `buffer`.
    used: usize,
    /// Bytes of the file before `buffer`.
    before: u64,
    length: Option<u64>,
    stage: Stage,
    version: u32,
    pairs_left: u64,
    tensors_left: u64,
    metadata: Metadata,
    directory: Vec<DirectoryEntry>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Preamble,
    Pairs,
    /// Inside an array: the open arrays, outermost first.
    Array {
        key: String,
        started_at: u64,
        open: Vec<OpenArray>,
    },
    Directory,
    Done,
}

impl HeaderParser {
    /// A parser for a file of unknown length.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parser for a file of `length` bytes: checks every size in the header against it.
    pub fn with_length(length: u64) -> Self {
        Self { length: Some(length), ..Self::default() }
    }

    /// Pushes the next bytes of the file. Discards bytes beyond the header; do not push again after [`Progress::Done`]
    /// or an error.
    ///
    /// # Errors
    /// The first fault of the header.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Progress, GgufError> {
        if matches!(self.stage, Stage::Done) {
            return Err(GgufError::AlreadyDone);
        }
        self.buffer.drain(..self.used);
        self.before += self.used as u64;
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
        loop {
            let available = (self.buffer.len() - self.used) as u64;
            match self.step() {
                Ok(None) => {}
                Ok(Some(header)) => {
                    self.stage = Stage::Done;
                    self.buffer = Vec::new();
                    self.used = 0;
                    return Ok(Progress::Done(Box::new(header)));
                }
                Err(Stop::Bad(error)) => return Err(error),
                Err(Stop::Need(needed)) => {
                    let end = self.position().saturating_add(needed);
                    if let Some(length) = self.length.filter(|&length| end > length) {
                        return Err(GgufError::Truncated { what: "the header".to_string(), needed: end, length });
                    }
                    if end > MAX_HEADER_BYTES {
                        return Err(too_large("the length of the header", end, MAX_HEADER_BYTES));
                    }
                    return Ok(Progress::NeedMore { at_least: needed - available });
                }
            }
        }
    }

    /// The pairs parsed so far. After [`Progress::Done`] they are in the header.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Number of bytes parsed.
    pub fn position(&self) -> u64 {
        self.before + self.used as u64
    }

    /// Parses one item: a preamble, a pair, some elements or a directory entry. Consumes nothing if the item is
    /// incomplete.
    fn step(&mut self) -> Result<Option<Header>, Stop> {
        match &mut self.stage {
            Stage::Preamble => self.preamble()?,
            Stage::Pairs if self.pairs_left == 0 => self.stage = Stage::Directory,
            Stage::Pairs => self.pair()?,
            Stage::Array { .. } => self.elements()?,
            Stage::Directory if self.tensors_left == 0 => {
                let metadata = std::mem::take(&mut self.metadata);
                let directory = std::mem::take(&mut self.directory);
                let header = header::assemble(self.version, metadata, directory, self.position())?;
                if let Some(length) = self.length {
                    header.check_length(length)?;
                }
                return Ok(Some(header));
            }
            Stage::Directory => self.entry()?,
            Stage::Done => return Err(Stop::Bad(GgufError::AlreadyDone)),
        }
        Ok(None)
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.buffer[self.used..])
    }

    /// Maximum size of a value at the cursor: the rest of the file, capped by the bound for values.
    fn room(&self, at: usize) -> u64 {
        let rest = self.length.map_or(u64::MAX, |length| length.saturating_sub(self.position() + at as u64));
        rest.min(MAX_VALUE_BYTES)
    }

    fn preamble(&mut self) -> Result<(), Stop> {
        let mut cursor = self.cursor();
        if self.length == Some(0) {
            return Err(GgufError::Empty.into());
        }
        let found: [u8; 4] = cursor.array()?;
        if found != MAGIC {
            // More than this is looked at only where it is known to come, so that pieces of any size give the same error.
            let looked_at = self.length.map_or(4, |length| length.min(LOOKED_AT));
            let is = ForeignFile::identify(self.cursor().take(looked_at)?);
            return Err(GgufError::NotGguf { found, is }.into());
        }
        let version = cursor.u32()?;
        match version {
            2 | 3 => {}
            _ if matches!(version.swap_bytes(), 1..=3) => return Err(GgufError::BigEndian.into()),
            _ => return Err(GgufError::UnsupportedVersion { version }.into()),
        }
        let tensors = cursor.u64()?;
        let pairs = cursor.u64()?;
        let used = cursor.at;
        let room = self.length.unwrap_or(u64::MAX).min(MAX_HEADER_BYTES);
        for (what, count, size) in [
            ("the number of tensors", tensors, MIN_ENTRY_BYTES),
            ("the number of metadata pairs", pairs, MIN_PAIR_BYTES),
        ] {
            if count > room / size {
                return Err(too_large(what, count, room / size).into());
            }
        }
        (self.version, self.tensors_left, self.pairs_left) = (version, tensors, pairs);
        self.used += used;
        self.stage = Stage::Pairs;
        Ok(())
    }

    fn pair(&mut self) -> Result<(), Stop> {
        let mut cursor = self.cursor();
        let key = cursor.name("a metadata key")?;
        if self.metadata.contains(&key) {
            return Err(GgufError::DuplicateKey { key }.into());
        }
        let value = match cursor.u32()? {
            value_type::U8 => Value::U8(cursor.array::<1>()?[0]),
            value_type::I8 => Value::I8(i8::from_le_bytes(cursor.array()?)),
            value_type::U16 => Value::U16(u16::from_le_bytes(cursor.array()?)),
            value_type::I16 => Value::I16(i16::from_le_bytes(cursor.array()?)),
            value_type::U32 => Value::U32(cursor.u32()?),
            value_type::I32 => Value::I32(i32::from_le_bytes(cursor.array()?)),
            value_type::F32 => Value::F32(f32::from_le_bytes(cursor.array()?)),
            value_type::BOOL => Value::Bool(cursor.array::<1>()?[0] != 0),
            value_type::STRING => Value::String(cursor.text(&key, self.room(cursor.at))?),
            value_type::U64 => Value::U64(cursor.u64()?),
            value_type::I64 => Value::I64(i64::from_le_bytes(cursor.array()?)),
            value_type::F64 => Value::F64(f64::from_le_bytes(cursor.array()?)),
            value_type::ARRAY => {
                let open = cursor.array_head(&key, self.room(cursor.at))?;
                self.used += cursor.at;
                self.stage = Stage::Array { key, started_at: self.position(), open: vec![open] };
                return Ok(());
            }
            id => return Err(GgufError::UnknownValueType { key, id }.into()),
        };
        self.used += cursor.at;
        self.pairs_left -= 1;
        self.metadata.insert(key, value);
        Ok(())
    }

    /// Reads elements of the innermost open array, or closes it.
    fn elements(&mut self) -> Result<(), Stop> {
        let position = self.position();
        let rest = self.length.map_or(u64::MAX, |length| length.saturating_sub(position));
        let Stage::Array { key, started_at, open } = &mut self.stage else {
            return Ok(());
        };
        let depth = open.len();
        let Some(top) = open.last_mut() else {
            return Ok(());
        };
        if top.left == 0 {
            if let Some(done) = open.pop() {
                if let Some(OpenArray { values: Array::Array(parent), .. }) = open.last_mut() {
                    parent.push(done.values);
                } else {
                    let key = std::mem::take(key);
                    self.metadata.insert(key, Value::Array(done.values));
                    self.pairs_left -= 1;
                    self.stage = Stage::Pairs;
                }
            }
            return Ok(());
        }
        let room = MAX_VALUE_BYTES.saturating_sub(position - *started_at).min(rest);
        let mut cursor = Cursor::new(&self.buffer[self.used..]);
        let count = match &mut top.values {
            Array::String(values) => {
                values.push(cursor.text(key, room)?);
                1
            }
            Array::Array(_) => {
                if depth == Array::MAX_DEPTH {
                    let what = format!("the nesting of the metadata key \"{key}\"");
                    return Err(too_large(&what, depth as u64 + 1, Array::MAX_DEPTH as u64).into());
                }
                let inner = cursor.array_head(key, room)?;
                top.left -= 1;
                self.used += cursor.at;
                open.push(inner);
                return Ok(());
            }
            Array::U8(values) => cursor.numbers(values, top.left, u8::from_le_bytes)?,
            Array::I8(values) => cursor.numbers(values, top.left, i8::from_le_bytes)?,
            Array::U16(values) => cursor.numbers(values, top.left, u16::from_le_bytes)?,
            Array::I16(values) => cursor.numbers(values, top.left, i16::from_le_bytes)?,
            Array::U32(values) => cursor.numbers(values, top.left, u32::from_le_bytes)?,
            Array::I32(values) => cursor.numbers(values, top.left, i32::from_le_bytes)?,
            Array::F32(values) => cursor.numbers(values, top.left, f32::from_le_bytes)?,
            Array::Bool(values) => cursor.numbers(values, top.left, |byte: [u8; 1]| byte[0] != 0)?,
            Array::U64(values) => cursor.numbers(values, top.left, u64::from_le_bytes)?,
            Array::I64(values) => cursor.numbers(values, top.left, i64::from_le_bytes)?,
            Array::F64(values) => cursor.numbers(values, top.left, f64::from_le_bytes)?,
        };
        top.left -= count;
        self.used += cursor.at;
        Ok(())
    }

    fn entry(&mut self) -> Result<(), Stop> {
        let mut cursor = self.cursor();
        let name = cursor.name("a tensor's name")?;
        let count = cursor.u32()?;
        if count as usize > MAX_DIMS {
            return Err(too_large(
                &format!("the number of dimensions of the tensor \"{name}\""),
                count.into(),
                MAX_DIMS as u64,
            )
            .into());
        }
        let dims = (0..count).map(|_| cursor.u64()).collect::<Result<Vec<_>, _>>()?;
        let id = cursor.u32()?;
        let kind = TensorType::from_id(id).ok_or_else(|| GgufError::UnknownTensorType { name: name.clone(), id })?;
        let offset = cursor.u64()?;
        self.used += cursor.at;
        self.tensors_left -= 1;
        self.directory.push(DirectoryEntry { name, kind, dims, offset });
        Ok(())
    }
}
