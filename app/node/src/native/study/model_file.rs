//! A model's files, read in place.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use potluck_gguf::{HeaderParser, Model, Progress, join, split_count};
use potluck_model::{FileRange, ModelSpec, UnitMap};
use potluck_plan::WeightUnit;

use super::StudyError;
use crate::open::split_names;

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
    /// Opens a model and reads its header.
    ///
    /// # Errors
    /// A file is missing, cannot be read, is too short, or is no model.
    pub fn open(path: &Path) -> Result<Self, StudyError> {
        let mut files = Vec::new();
        let mut headers = Vec::new();
        for name in split_names(&path.to_string_lossy()) {
            let path = PathBuf::from(name);
            let failed =
                |error: std::io::Error| StudyError::File(format!("{} cannot be read: {error}.", path.display()));
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
                        return Err(StudyError::File(format!("{} ends in its header.", path.display())));
                    }
                    Progress::NeedMore { at_least } => wanted = at_least.max(FIRST_READ),
                }
            };
            header.check_length(length)?;
            split_count(&header)?;
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
    pub fn spec(&self) -> Result<(ModelSpec, UnitMap), StudyError> {
        Ok(ModelSpec::from_gguf(&self.model)?)
    }

    /// Reads a range.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, range: FileRange) -> Result<Vec<u8>, StudyError> {
        let (path, mut file) = match self.files.get(usize::from(range.file)) {
            Some((path, file)) => (path, file),
            None => return Err(StudyError::File(format!("{} has no file number {}.", self.name, range.file))),
        };
        let mut bytes = vec![0; range.len as usize];
        let read = file.seek(SeekFrom::Start(range.offset)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|error| StudyError::File(format!("{} cannot be read: {error}.", path.display())))?;
        Ok(bytes)
    }

    /// Reads a tensor of a weight unit.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tensor(&self, units: &UnitMap, unit: WeightUnit, index: usize) -> Result<Vec<u8>, StudyError> {
        let tensor = units.tensors(unit).get(index);
        tensor.map_or_else(|| Ok(Vec::new()), |tensor| self.read(tensor.range))
    }
}
