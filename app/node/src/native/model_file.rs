//! A model's files, read in place.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use potluck_engine::EngineError;
use potluck_gguf::{GgufError, HeaderParser, Metadata, Model, Progress, first_split_count, join};
use potluck_model::{FileRange, LocalTime, ModelError, ModelSpec, UnitMap};
use potluck_plan::WeightUnit;
use thiserror::Error;

use crate::open::split_names;
use crate::{LanguageError, ModelLanguage};

/// Why a model's file cannot be used, in one sentence.
#[derive(Debug, Error)]
pub enum ModelFileError {
    /// It cannot be opened or read.
    #[error("{0}")]
    File(String),
    /// It is not a GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The model cannot run here.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A shadow that does not fit.
    #[error("{shadow} is no shadow of {base}: {why}. Make one with `cargo lab requantize`.")]
    NoShadow {
        /// The shadow's file.
        shadow: String,
        /// The base's file.
        base: String,
        /// What differs.
        why: &'static str,
    },
    /// The GPU failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Reads tokenizer and chat template, for conversations of any length that are dated now. Also returns sentences about what was
/// assumed or replaced.
///
/// # Errors
/// The vocabulary cannot be read.
pub fn read_language(metadata: &Metadata) -> Result<(ModelLanguage, Vec<String>), LanguageError> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ModelLanguage::read(metadata, u32::MAX, LocalTime::from_unix(since_1970.as_secs()))
}

/// Bytes of the first read of a header.
const FIRST_READ: u64 = 64 << 10;

/// A model on this machine's disk, with the others of its split.
pub struct ModelFile {
    /// The name of its first file.
    pub name: String,
    /// The header.
    pub model: Model,
    files: Vec<(PathBuf, File)>,
}

impl ModelFile {
    /// Its tokenizer and chat template, for conversations of any length that are dated now.
    ///
    /// # Errors
    /// The vocabulary cannot be read.
    pub fn language(&self) -> Result<ModelLanguage, LanguageError> {
        Ok(read_language(&self.model.metadata)?.0)
    }

    /// Opens a model and reads its header.
    ///
    /// # Errors
    /// A file is missing, cannot be read, is too short, or is no model.
    pub fn open(path: &Path) -> Result<Self, ModelFileError> {
        let mut files = Vec::new();
        let mut headers = Vec::new();
        for name in split_names(&path.to_string_lossy()) {
            let path = PathBuf::from(name);
            let failed =
                |error: std::io::Error| ModelFileError::File(format!("{} cannot be read: {error}.", path.display()));
            let mut file = File::open(&path).map_err(failed)?;
            let length = file.metadata().map_err(failed)?.len();
            let mut parser = HeaderParser::with_length(length);
            let mut wanted = FIRST_READ;
            let header = loop {
                let mut bytes = Vec::new();
                file.by_ref().take(wanted).read_to_end(&mut bytes).map_err(failed)?;
                match parser.push(&bytes)? {
                    Progress::Done(header) => break *header,
                    Progress::NeedMore { .. } if bytes.is_empty() => {
                        return Err(ModelFileError::File(format!("{} ends in its header.", path.display())));
                    }
                    Progress::NeedMore { at_least } => wanted = at_least.max(FIRST_READ),
                }
            };
            header.check_length(length)?;
            if headers.is_empty() {
                first_split_count(&header)?;
            }
            headers.push(header);
            files.push((path, file));
        }
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self { name, model: join(headers)?, files })
    }

    /// What the engine needs to know of it.
    ///
    /// # Errors
    /// It cannot run here.
    pub fn spec(&self) -> Result<(ModelSpec, UnitMap), ModelFileError> {
        Ok(ModelSpec::from_gguf(&self.model)?)
    }

    /// Reads a range.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, range: FileRange) -> Result<Vec<u8>, ModelFileError> {
        let (path, mut file) = match self.files.get(usize::from(range.file)) {
            Some((path, file)) => (path, file),
            None => return Err(ModelFileError::File(format!("{} has no file number {}.", self.name, range.file))),
        };
        let mut bytes = vec![0; range.len as usize];
        let read = file.seek(SeekFrom::Start(range.offset)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|error| ModelFileError::File(format!("{} cannot be read: {error}.", path.display())))?;
        Ok(bytes)
    }

    /// Reads a tensor of a weight unit.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tensor(&self, units: &UnitMap, unit: WeightUnit, index: usize) -> Result<Vec<u8>, ModelFileError> {
        let tensor = units.tensors(unit).get(index);
        tensor.map_or_else(|| Ok(Vec::new()), |tensor| self.read(tensor.range))
    }
}
