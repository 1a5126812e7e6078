//! Parts on disk, up to a number of bytes: what was not used for longest goes first.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use axum::body::Bytes;
use tracing::warn;

use crate::error::StartError;

/// A folder of parts.
pub struct Store {
    folder: PathBuf,
    limit: u64,
    index: Mutex<Index>,
    has_failed: AtomicBool,
}

/// What is in the folder, and in which order it was used.
#[derive(Default)]
struct Index {
    bytes: u64,
    clock: u64,
    parts: HashMap<String, (u64, u64)>,
    by_use: BTreeMap<u64, String>,
}

impl Index {
    fn add(&mut self, name: &str, bytes: u64) {
        self.remove(name);
        self.clock += 1;
        self.bytes += bytes;
        self.parts.insert(name.to_owned(), (bytes, self.clock));
        self.by_use.insert(self.clock, name.to_owned());
    }

    fn remove(&mut self, name: &str) -> Option<u64> {
        let (bytes, used) = self.parts.remove(name)?;
        self.by_use.remove(&used);
        self.bytes -= bytes;
        Some(bytes)
    }
}

impl Store {
    /// Finds what an earlier relay kept, and what was half written.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: &Path, limit: u64) -> Result<Self, StartError> {
        let failed = |source| StartError::Write { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)?.filter_map(Result::ok) {
            let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
            if name.ends_with(".half") {
                let _ = fs::remove_file(entry.path());
            } else if name.ends_with(".part") {
                found.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), name, metadata.len()));
            }
        }
        found.sort();
        let mut index = Index::default();
        found.iter().for_each(|(_, name, bytes)| index.add(name, *bytes));
        let store =
            Self { folder: folder.to_owned(), limit, index: Mutex::new(index), has_failed: AtomicBool::new(false) };
        store.make_room(0);
        Ok(store)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part, if it is there.
    pub fn get(&self, name: &str) -> Option<Bytes> {
        let bytes = self.index().remove(name)?;
        let path = self.folder.join(name);
        let part = fs::read(&path).ok()?;
        self.index().add(name, bytes);
        // Also for the relay after this one.
        let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(part.into())
    }

    /// Keeps a part. Where that fails, because the disk is full or the folder is gone, weights go through without being kept.
    pub fn put(&self, name: &str, part: &Bytes) {
        let bytes = part.len() as u64;
        if bytes > self.limit {
            return;
        }
        self.make_room(bytes);
        self.index().add(name, bytes);
        let Err(error) = self.write(name, part) else { return self.has_failed.store(false, Ordering::Relaxed) };
        self.index().remove(name);
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            warn!(
                "the cache {} cannot be written: {error}; weights are sent without being kept",
                self.folder.display()
            );
        }
    }

    fn write(&self, name: &str, part: &Bytes) -> io::Result<()> {
        let half = self.folder.join(format!("{name}.half"));
        let written = fs::write(&half, part).and_then(|()| fs::rename(&half, self.folder.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(half);
        }
        written
    }

    /// Makes room for so many bytes.
    fn make_room(&self, bytes: u64) {
        let mut index = self.index();
        while index.bytes + bytes > self.limit
            && let Some((_, oldest)) = index.by_use.pop_first()
        {
            index.remove(&oldest);
            let _ = fs::remove_file(self.folder.join(oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn folder(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("potluck-store-{test}-{}", std::process::id()))
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_the_rest_outlives_a_restart() {
        let folder = folder("oldest");
        let store = Store::open(&folder, 25).unwrap();
        let part = Bytes::from_static(&[7; 10]);
        store.put("a.part", &part);
        store.put("b.part", &part);
        assert_eq!(store.get("a.part"), Some(part.clone()));
        store.put("c.part", &part);
        assert_eq!((store.get("b.part"), store.index().bytes), (None, 20));
        store.put("huge.part", &Bytes::from_static(&[7; 26]));
        assert!(store.get("huge.part").is_none() && store.get("a.part").is_some(), "nothing goes for what cannot stay");

        fs::write(folder.join("d.part.half"), "").unwrap();
        let store = Store::open(&folder, 15).unwrap();
        assert_eq!(store.index().bytes, 10, "the new limit holds at once");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_keeps_nothing_and_breaks_nothing() {
        let folder = folder("gone");
        let store = Store::open(&folder, 25).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        store.put("a.part", &Bytes::from_static(&[7; 10]));
        assert_eq!((store.get("a.part"), store.index().bytes), (None, 0));
        fs::write(&folder, "").unwrap();
        assert!(matches!(Store::open(&folder, 25), Err(StartError::Write { .. })));
        fs::remove_file(folder).unwrap();
    }
}
