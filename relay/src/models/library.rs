//! The models in some folders: found, described, hashed in the background, scanned again when asked.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use potluck_relay_api::http::ModelEntry;
use tracing::{info, warn};

use super::cache::HashCache;
use super::catalog::{Model, group_files};
use super::file::{FileHashes, FileVersion, ModelFile};
use super::origin::{OriginConfig, Origins, watch};
use crate::error::{ApiError, StartError, in_one_line};

/// How deep folders are searched: as deep as download tools nest them.
const DEPTH: usize = 5;

#[derive(Default)]
struct Catalog {
    models: Vec<Model>,
    files: HashMap<String, Arc<ModelFile>>,
    scanned: Option<Instant>,
}

/// All models that are served.
pub struct Library {
    folders: Vec<PathBuf>,
    /// Files at origins, as they were last seen.
    remotes: Mutex<Vec<Arc<ModelFile>>>,
    cache: HashCache,
    catalog: RwLock<Catalog>,
    /// Held during a scan, so that there is one at a time.
    scanning: Mutex<()>,
    to_hash: Sender<Arc<ModelFile>>,
}

impl Library {
    /// Scans `folders`, in their order, and starts hashing what is not in the cache. A folder that does not exist counts as
    /// empty: it may appear later, as files at origins do once these have answered.
    ///
    /// # Errors
    /// A thread cannot be started, or the folder for parts of files at origins cannot be used.
    pub fn open(folders: Vec<PathBuf>, cache: HashCache, origin: OriginConfig) -> Result<Arc<Self>, StartError> {
        let (to_hash, jobs) = channel();
        let library = Self {
            folders,
            remotes: Mutex::default(),
            cache: cache.clone(),
            catalog: RwLock::default(),
            scanning: Mutex::new(()),
            to_hash,
        };
        // Not joined: it ends when the library is dropped, and no hash is worth waiting for then.
        thread::Builder::new()
            .name("hash".into())
            .spawn(move || hash_files(&jobs, &cache))
            .map_err(StartError::Thread)?;
        library.scan(Duration::ZERO);
        let library = Arc::new(library);
        if !origin.weights.is_empty() {
            let (origins, to_look) = Origins::open(&origin)?;
            let weak = Arc::downgrade(&library);
            let looks = move || watch(&origin, &origins, &to_look, &weak);
            thread::Builder::new().name("origins".into()).spawn(looks).map_err(StartError::Thread)?;
        }
        Ok(library)
    }

    fn remotes(&self) -> MutexGuard<'_, Vec<Arc<ModelFile>>> {
        self.remotes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file at an origin, as it was last seen.
    pub fn remote(&self, name: &str) -> Option<Arc<ModelFile>> {
        self.remotes().iter().find(|file| file.name == name).cloned()
    }

    /// A file at an origin is seen. `is_known` says whether hashes of this version that are stored are right.
    pub fn set_remote(&self, file: ModelFile, is_known: bool) {
        let file = Arc::new(file);
        if file.facts.is_ok() {
            self.get_hashed(&file, is_known);
        }
        let mut remotes = self.remotes();
        match remotes.iter_mut().find(|other| other.name == file.name) {
            Some(other) => *other = file,
            None => remotes.push(file),
        }
        drop(remotes);
        self.scan(Duration::ZERO);
    }

    fn scanning(&self) -> MutexGuard<'_, ()> {
        self.scanning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scans the folders again unless that was done less than `max_age` ago. Reads the headers of new files, so it may take
    /// a while: not for an async thread.
    pub fn scan(&self, max_age: Duration) {
        let _one = self.scanning();
        let known = {
            let catalog = self.catalog();
            if catalog.scanned.is_some_and(|scanned| scanned.elapsed() < max_age) {
                return;
            }
            catalog.files.clone()
        };
        let mut found = Vec::new();
        for folder in &self.folders {
            find_files(folder, DEPTH, &mut found);
        }
        let mut files: HashMap<String, Arc<ModelFile>> = HashMap::new();
        let mut order = Vec::new();
        for (name, path, version) in found {
            // Two files of one name cannot both have an address: the folder named first wins.
            if files.contains_key(&name) {
                continue;
            }
            let same = known.get(&name).filter(|known| known.path == path && known.version.has_bytes_of(&version));
            let file = same.cloned().unwrap_or_else(|| self.open_file(name.clone(), path, version));
            files.insert(name, file.clone());
            order.push(file);
        }
        for file in self.remotes().iter() {
            if !files.contains_key(&file.name) {
                files.insert(file.name.clone(), file.clone());
                order.push(file.clone());
            }
        }
        for (name, old) in &known {
            if !files.get(name).is_some_and(|file| Arc::ptr_eq(file, old)) {
                old.cancel_hashing();
            }
        }
        let models = group_files(&order);
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) =
            Catalog { models, files, scanned: Some(Instant::now()) };
    }

    fn open_file(&self, name: String, path: PathBuf, version: FileVersion) -> Arc<ModelFile> {
        let file = Arc::new(ModelFile::open(name, path, version));
        self.get_hashed(&file, true);
        file
    }

    /// Takes a file's hashes from the cache, or has it hashed.
    fn get_hashed(&self, file: &Arc<ModelFile>, is_known: bool) {
        match self.cache.load(file).filter(|_| is_known) {
            Some(hashes) => file.set_hashes(hashes),
            None if self.to_hash.send(file.clone()).is_err() => {
                file.set_failed("The thread that hashes models has stopped: restart the relay.".into());
            }
            None => {}
        }
    }

    /// The models of `GET /models`, as of the last scan.
    pub fn entries(&self) -> Vec<ModelEntry> {
        self.catalog().models.iter().map(Model::entry).collect()
    }

    /// The file called `name`. The name of a model that has one file works too.
    ///
    /// # Errors
    /// There is no such file, or it is a model of several files.
    pub fn file(&self, name: &str) -> Result<Arc<ModelFile>, ApiError> {
        let catalog = self.catalog();
        if let Some(file) = catalog.files.get(name) {
            return Ok(file.clone());
        }
        match catalog.models.iter().find(|model| model.name == name).map(|model| &model.files[..]) {
            Some([file]) => Ok(file.clone()),
            Some(_) => Err(ApiError::SeveralFiles(name.to_owned())),
            None => Err(ApiError::NoSuchModel(name.to_owned())),
        }
    }

    /// Bytes sent, by model.
    pub fn bytes_served(&self) -> Vec<(String, u64)> {
        let sum = |model: &Model| model.files.iter().map(|file| file.bytes_served.get()).sum();
        self.catalog().models.iter().map(|model| (model.name.clone(), sum(model))).collect()
    }
}

/// Finds files ending in `.gguf`, in the order of their names.
fn find_files(folder: &Path, depth: usize, found: &mut Vec<(String, PathBuf, FileVersion)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with('.') {
            continue;
        }
        // Follows links: download caches consist of them.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() && depth > 0 {
            find_files(&path, depth - 1, found);
        } else if metadata.is_file() && name.ends_with(".gguf") {
            found.push((name.to_owned(), path.clone(), FileVersion::of(&metadata)));
        }
    }
}

/// The hashing thread: hashes one file after another until the library is dropped.
fn hash_files(jobs: &Receiver<Arc<ModelFile>>, cache: &HashCache) {
    while let Ok(file) = jobs.recv() {
        let name = in_one_line(&file.name);
        match file.hash_groups() {
            Ok(None) => {}
            Ok(Some(groups)) => {
                if let Some(hashes) = FileHashes::from_groups(&groups) {
                    // If this fails, the file is hashed again at the next start.
                    if let Err(error) = cache.store(&file, &hashes.root, &groups) {
                        warn!("the hashes of {name} cannot be stored: {error}");
                    }
                    info!("{name} is hashed");
                    file.set_hashes(hashes);
                }
            }
            Err(error) => {
                warn!("{name} cannot be read: {error}");
                file.is_first_fault();
                file.set_failed(format!("{} cannot be read: {error}.", file.name));
            }
        }
    }
}
