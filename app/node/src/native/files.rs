//! Model files on this machine's disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use futures::TryFutureExt;
use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;

use super::readers::{read_at, read_into};
use crate::open::split_names;
use crate::platform::LocalFile;

/// A file on disk.
pub struct DiskFile {
    name: String,
    len: u64,
    modified: Option<u64>,
    file: Arc<File>,
}

impl DiskFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("{} cannot be opened: {error}.", path.display());
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since_1970.and_then(|since| u64::try_from(since.as_millis()).ok());
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self { name, len: metadata.len(), modified, file: Arc::new(file) })
    }
}

/// Opens a model's file, and the others of its split.
///
/// # Errors
/// One sentence that names the file that cannot be opened.
pub fn open_model_files(path: &Path) -> Result<Vec<Rc<dyn LocalFile>>, String> {
    let names = split_names(&path.to_string_lossy());
    let open = |name: &String| Ok(Rc::new(DiskFile::open(&PathBuf::from(name))?) as Rc<dyn LocalFile>);
    names.iter().map(open).collect()
}

impl LocalFile for DiskFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn modified(&self) -> Option<u64> {
        self.modified
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        let (file, name) = (self.file.clone(), self.name.clone());
        Box::pin(async move {
            let read = move || {
                let mut bytes = vec![0; usize::try_from(len).map_err(std::io::Error::other)?];
                read_at(&file, offset, &mut bytes)?;
                Ok::<_, std::io::Error>(bytes)
            };
            let read = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other).flatten();
            read.map_err(|error| format!("{name} cannot be read: {error}."))
        })
    }

    fn reads_beside(&self) -> bool {
        true
    }

    fn read_into(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), String>> {
        let (read, name) = (read_into(self.file.clone(), offset, part), self.name.clone());
        Box::pin(read.map_err(move |error| format!("{name} cannot be read: {error}.")))
    }
}
