//! Reads a model from files on this device.

use std::rc::Rc;

use futures::TryFutureExt;
use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;
use potluck_model::FileRange;

use super::error::SourceError;
use super::reading::{FetchPolicy, Source};
use crate::hashes::GroupHashes;
use crate::platform::LocalFile;

/// A model in files on this device.
pub struct LocalSource {
    files: Vec<Rc<dyn LocalFile>>,
    groups: Option<Rc<[u8]>>,
}

/// A list of group hashes, which peers read like a file.
struct GroupList(Rc<[u8]>);

impl LocalSource {
    /// The files of a model, in order.
    pub fn new(files: Vec<Rc<dyn LocalFile>>) -> Self {
        Self { files, groups: None }
    }

    /// A single file that others may read and check with these hashes.
    pub fn shared(file: Rc<dyn LocalFile>, groups: &GroupHashes) -> Self {
        Self { files: vec![file], groups: Some(groups.list().into()) }
    }
}

impl LocalSource {
    /// The file of a range that ends in it.
    fn file(&self, range: FileRange) -> Result<&Rc<dyn LocalFile>, SourceError> {
        let file = self.files.get(usize::from(range.file)).ok_or(SourceError::NoSuchFile(range.file))?;
        let wanted = range.offset.saturating_add(range.len);
        if wanted > file.len() { Err(SourceError::TooShort { len: file.len(), wanted }) } else { Ok(file) }
    }
}

impl Source for LocalSource {
    fn file_len(&self, file: u16) -> Option<u64> {
        self.files.get(usize::from(file)).map(|file| file.len())
    }

    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>> {
        match self.file(range) {
            Ok(file) => Box::pin(file.read(range.offset, range.len).map_err(SourceError::File)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn read_into(&self, range: FileRange, part: StagingPart) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        match self.file(range) {
            Ok(file) => Box::pin(file.read_into(range.offset, part).map_err(SourceError::File)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn fetch_policy(&self) -> FetchPolicy {
        let beside = self.files.iter().all(|file| file.reads_beside());
        FetchPolicy { max_bytes: 8 << 20, parallel: 2, cache: false, beside }
    }

    fn group_list(&self) -> Option<Rc<dyn LocalFile>> {
        self.groups.clone().map(|list| Rc::new(GroupList(list)) as Rc<dyn LocalFile>)
    }
}

impl LocalFile for GroupList {
    fn name(&self) -> String {
        "group hashes".to_owned()
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        let range = offset as usize..offset.saturating_add(len) as usize;
        let bytes = self.0.get(range).map(<[u8]>::to_vec).ok_or_else(|| "the list ends before these bytes.".to_owned());
        Box::pin(std::future::ready(bytes))
    }
}
