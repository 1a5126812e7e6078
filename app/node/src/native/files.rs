//! Model files on this machine's disk.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::TryFutureExt;
use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;
use potluck_text::texts;

use super::readers::{fill, read_at};
use crate::open::split_names;
use crate::platform::LocalFile;

/// A file on disk.
pub struct DiskFile {
    name: String,
    opened: Arc<Opened>,
}

/// An open file, and its length and time when it was opened.
struct Opened {
    file: File,
    len: u64,
    modified: Option<SystemTime>,
}

impl Opened {
    fn new(file: File, metadata: &Metadata) -> Self {
        Self { file, len: metadata.len(), modified: metadata.modified().ok() }
    }

    /// Reads bytes, unless the file was written to since it was opened: a write updates the file's time before its bytes. If
    /// another file takes its name, this one stays what it was.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let read = read_at(&self.file, offset, bytes);
        let now = self.file.metadata()?;
        if (now.len(), now.modified().ok()) != (self.len, self.modified) {
            return Err(io::Error::other("it changed while it was read; open the model again"));
        }
        read
    }
}

impl DiskFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let fail = |error: io::Error| format!("{} cannot be opened: {error}.", path.display());
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(texts().host.folder(path.display().to_string()));
        }
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self { name, opened: Arc::new(Opened::new(file, &metadata)) })
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
        self.opened.len
    }

    fn modified(&self) -> Option<u64> {
        let since_1970 = self.opened.modified?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since_1970.as_millis()).ok()
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        let (opened, name) = (self.opened.clone(), self.name.clone());
        Box::pin(async move {
            let read = move || {
                let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
                opened.read(offset, &mut bytes)?;
                Ok::<_, io::Error>(bytes)
            };
            let read = tokio::task::spawn_blocking(read).await.map_err(io::Error::other).flatten();
            read.map_err(|error| format!("{name} cannot be read: {error}."))
        })
    }

    fn reads_beside(&self) -> bool {
        true
    }

    fn read_into(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), String>> {
        let (opened, name) = (self.opened.clone(), self.name.clone());
        let read = fill(part, move |at, bytes| opened.read(offset + at, bytes));
        Box::pin(read.map_err(move |error| format!("{name} cannot be read: {error}.")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn written(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("potluck-files-{test}-{}", std::process::id()));
        std::fs::write(&path, [1; 100]).unwrap();
        // An hour ago: what is written next has another time, however coarse those are.
        let earlier = SystemTime::now() - std::time::Duration::from_secs(3600);
        File::options().write(true).open(&path).unwrap().set_modified(earlier).unwrap();
        path
    }

    #[tokio::test]
    async fn bytes_of_two_versions_are_never_read_from_one_open_file() {
        let path = written("in-place");
        let file = DiskFile::open(&path).unwrap();
        assert_eq!(file.read(0, 50).await, Ok(vec![1; 50]));
        std::fs::write(&path, [2; 100]).unwrap();
        let sentence = file.read(50, 50).await.unwrap_err();
        assert!(sentence.contains("changed while it was read"), "{sentence}");
        assert_eq!(DiskFile::open(&path).unwrap().read(50, 50).await, Ok(vec![2; 50]), "opened again");
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_by_another_stays_what_it_was() {
        let (path, new) = (written("old"), written("new"));
        let file = DiskFile::open(&path).unwrap();
        std::fs::write(&new, [2; 100]).unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(file.read(0, 100).await, Ok(vec![1; 100]));
        std::fs::remove_file(path).unwrap();
    }
}
