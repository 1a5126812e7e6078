//! The cache as a folder: `CACHE/<model id>/<blob>`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use futures::TryFutureExt;
use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;
use potluck_plan::{ModelId, WeightUnit};

use super::readers;
use crate::blob::{BlobKey, BlobName};
use crate::platform::{BlobReader, BlobStore, LockGuard, StoreError, Usage};

/// A cache in a folder.
pub struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    /// The folder is made when something is stored.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn model(&self, model: ModelId) -> PathBuf {
        self.folder.join(model.to_string())
    }

    fn blob(&self, key: BlobKey) -> PathBuf {
        self.model(key.model).join(key.name.to_string())
    }
}

fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> LocalBoxFuture<'static, Result<T, StoreError>> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten();
        done.map_err(|error| store_error(&error))
    })
}

fn store_error(error: &std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full,
        ErrorKind::UnexpectedEof => StoreError::ShortRead,
        _ => StoreError::Failed(error.to_string()),
    }
}

/// Nothing where there is no such file or folder.
fn or_nothing<T: Default>(result: std::io::Result<T>) -> std::io::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}

fn entries(folder: &Path) -> std::io::Result<Vec<(String, u64)>> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        // A symbolic link is as long as what it leads to: a blob on another disk.
        let len = fs::metadata(entry.path()).map_or(0, |metadata| metadata.len());
        Ok((entry.file_name().to_string_lossy().into_owned(), len))
    };
    or_nothing(fs::read_dir(folder).and_then(|entries| entries.map(entry).collect()))
}

fn append(path: &Path, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let len = file.metadata()?.len();
    if len != offset {
        return Err(std::io::Error::other(format!("a blob has {len} bytes, {offset} were expected")));
    }
    let written = file.write_all(bytes);
    if written.is_err() {
        // What was written of it must not be taken for a whole piece. The first error says more than one of this.
        _ = file.set_len(offset);
    }
    written
}

fn read_at(path: &Path, offset: u64, len: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).map_err(std::io::Error::other)?];
    readers::read_at(&File::open(path)?, offset, &mut bytes)?;
    Ok(bytes)
}

/// An open blob.
struct Reader(Arc<File>);

impl BlobReader for Reader {
    fn read(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        Box::pin(readers::read_into(self.0.clone(), offset, part).map_err(|error| store_error(&error)))
    }
}

impl BlobStore for FolderStore {
    fn list(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<BlobName, u64>, StoreError>> {
        let folder = self.model(model);
        blocking(move || {
            let known = |(name, len): (String, u64)| Some((BlobName::parse(&name)?, len));
            Ok(entries(&folder)?.into_iter().filter_map(known).collect())
        })
    }

    fn units(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<WeightUnit, u64>, StoreError>> {
        let listed = self.list(model);
        let unit = |(name, len)| if let BlobName::Unit(unit) = name { Some((unit, len)) } else { None };
        Box::pin(async move { Ok(listed.await?.into_iter().filter_map(unit).collect()) })
    }

    fn len(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<u64, StoreError>> {
        let path = self.blob(key);
        blocking(move || or_nothing(fs::metadata(path).map(|known| known.len())))
    }

    fn append(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let path = self.blob(key);
        blocking(move || append(&path, offset, &bytes))
    }

    fn read(&self, key: BlobKey, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, StoreError>> {
        let path = self.blob(key);
        blocking(move || read_at(&path, offset, len))
    }

    fn reader(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<Rc<dyn BlobReader>, StoreError>> {
        let path = self.blob(key);
        let opened = blocking(move || File::open(path));
        Box::pin(async move { Ok(Rc::new(Reader(Arc::new(opened.await?))) as Rc<dyn BlobReader>) })
    }

    fn delete(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let path = self.blob(key);
        blocking(move || or_nothing(fs::remove_file(path)))
    }

    fn delete_model(&self, model: ModelId) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let folder = self.model(model);
        blocking(move || or_nothing(fs::remove_dir_all(folder)))
    }

    fn models(&self) -> LocalBoxFuture<'static, Result<Vec<ModelId>, StoreError>> {
        let folder = self.folder.clone();
        blocking(move || Ok(entries(&folder)?.iter().filter_map(|(name, _)| ModelId::from_hex(name)).collect()))
    }

    fn usage(&self) -> LocalBoxFuture<'static, Result<Usage, StoreError>> {
        let folder = self.folder.clone();
        blocking(move || {
            let models = entries(&folder)?;
            // The device's key is a file beside the models' folders.
            let bytes = models
                .iter()
                .filter(|(name, _)| folder.join(name).is_dir())
                .map(|(model, _)| entries(&folder.join(model)));
            let used =
                bytes.map(|blobs| Ok(blobs?.iter().map(|(_, len)| len).sum::<u64>())).sum::<std::io::Result<u64>>()?;
            // A disk has no quota of ours; nothing evicts files from it.
            Ok(Usage { used, quota: u64::MAX, persistent: true })
        })
    }

    fn lock(&self, name: String) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>> {
        let folder = self.folder.join("locks");
        blocking(move || {
            fs::create_dir_all(&folder)?;
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(name))?;
            file.lock()?;
            Ok(file)
        })
        .boxed_guard()
    }
}

/// The operating system lets go of the lock when the file is closed.
trait BoxedGuard {
    fn boxed_guard(self) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>>;
}

impl BoxedGuard for LocalBoxFuture<'static, Result<File, StoreError>> {
    fn boxed_guard(self) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>> {
        Box::pin(async move { Ok(Box::new(self.await?) as LockGuard) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn store(test: &str) -> (FolderStore, PathBuf) {
        let folder = std::env::temp_dir().join(format!("potluck-store-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        (FolderStore::new(folder.clone()), folder)
    }

    const KEY: BlobKey = BlobKey { model: ModelId([7; 32]), name: BlobName::Unit(WeightUnit::Embedding) };

    #[tokio::test]
    async fn a_blob_grows_from_the_front_and_is_never_sparse() {
        let (store, folder) = store("grow");
        assert_eq!(store.len(KEY).await, Ok(0));
        store.append(KEY, 0, vec![1; 10]).await.unwrap();
        assert!(store.append(KEY, 20, vec![2; 10]).await.is_err(), "a gap");
        assert!(store.append(KEY, 0, vec![2; 10]).await.is_err(), "an overlap");
        store.append(KEY, 10, vec![3; 5]).await.unwrap();
        assert_eq!(store.read(KEY, 8, 4).await.unwrap(), [1, 1, 3, 3]);
        assert_eq!(store.read(KEY, 8, 40).await, Err(StoreError::ShortRead));
        assert_eq!(store.list(KEY.model).await.unwrap(), BTreeMap::from([(KEY.name, 15)]));
        assert_eq!(store.models().await.unwrap(), [KEY.model]);
        assert_eq!(store.usage().await.unwrap().used, 15);
        store.delete_model(KEY.model).await.unwrap();
        assert_eq!(store.len(KEY).await, Ok(0));
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_lock_has_one_holder_at_a_time() {
        let (store, folder) = store("lock");
        let guard = store.lock("unit".into()).await.unwrap();
        let mut second = store.lock("unit".into());
        assert!(futures::poll!(&mut second).is_pending(), "the first one holds it");
        drop(guard);
        second.await.unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
