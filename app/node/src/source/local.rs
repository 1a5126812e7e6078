//! Reads a model from files on this device.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use potluck_model::FileRange;

use super::{FetchPolicy, Source, SourceError};
use crate::platform::LocalFile;

/// A model in files on this device.
pub struct LocalSource {
    files: Vec<Rc<dyn LocalFile>>,
}

impl LocalSource {
    /// The files of a model, in order.
    pub fn new(files: Vec<Rc<dyn LocalFile>>) -> Self {
        Self { files }
    }
}

impl Source for LocalSource {
    fn file_len(&self, file: u16) -> Option<u64> {
        self.files.get(usize::from(file)).map(|file| file.len())
    }

    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>> {
        Box::pin(async move {
            let file = self.files.get(usize::from(range.file)).ok_or(SourceError::NoSuchFile(range.file))?;
            let end = range.offset.saturating_add(range.len);
            if end > file.len() {
                return Err(SourceError::TooShort { len: file.len(), wanted: end });
            }
            file.read(range.offset, range.len).await.map_err(SourceError::File)
        })
    }

    fn fetch_policy(&self) -> FetchPolicy {
        FetchPolicy { max_bytes: 8 << 20, parallel: 2, cache: false }
    }
}
