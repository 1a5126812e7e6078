//! The models in some folders: found, described, hashed in the background, looked for again when asked.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cache::HashCache;
use super::describe::Facts;
use super::file::{Hashed, ModelFile, Progressed, Stamp};
use super::groups::model_root;
use crate::error::{ApiError, StartError};

/// Folders below a given one that are looked into, as deep as download tools nest them.
const DEPTH: usize = 5;

/// A model: one file, or the parts of a split one in their order.
#[derive(Debug)]
struct Model {
    name: String,
    files: Vec<Arc<ModelFile>>,
    /// How many files it should have.
    parts: u32,
}

impl Model {
    /// The first part that is not there, as a sentence.
    fn incomplete(&self) -> Option<String> {
        let there = |part: u32| self.files.iter().any(|file| split_name(&file.name).is_some_and(|(_, p, _)| p == part));
        let missing = (1..=self.parts).find(|part| self.parts > 1 && !there(*part))?;
        Some(format!("Part {missing} of {} is missing.", self.parts))
    }
}

#[derive(Default)]
struct Catalog {
    models: Vec<Model>,
    files: HashMap<String, Arc<ModelFile>>,
    looked: Option<Instant>,
}

/// All models that are served.
pub struct Library {
    folders: Vec<PathBuf>,
    cache: HashCache,
    catalog: RwLock<Catalog>,
    /// Held while the folders are looked through, so that this is done by one at a time.
    looking: Mutex<()>,
    to_hash: Sender<Arc<ModelFile>>,
}

/// A line of `GET /models`.
#[derive(Debug, Serialize)]
pub struct ModelLine {
    name: String,
    bytes: u64,
    root: Option<String>,
    state: LineState,
    #[serde(flatten)]
    facts: Facts,
    files: Vec<FileLine>,
}

/// A file of a model.
#[derive(Debug, Serialize)]
pub struct FileLine {
    name: String,
    url: String,
    bytes: u64,
    root: Option<String>,
    groups: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
enum LineState {
    Ready,
    Hashing { done: u64, total: u64 },
    Broken { message: String },
}

impl Library {
    /// Looks through `folders`, in their order, and starts hashing what is not in the cache. A folder that does not exist
    /// is an empty one: it may appear later.
    pub fn open(folders: Vec<PathBuf>, cache: HashCache) -> Result<Arc<Self>, StartError> {
        let (to_hash, jobs) = channel();
        let library =
            Self { folders, cache: cache.clone(), catalog: RwLock::default(), looking: Mutex::new(()), to_hash };
        // Not joined: it ends when the library is dropped, and no hash is worth waiting for then.
        thread::Builder::new()
            .name("hash".into())
            .spawn(move || hash_all(&jobs, &cache))
            .map_err(StartError::Thread)?;
        library.look(Duration::ZERO);
        Ok(Arc::new(library))
    }

    fn looking(&self) -> MutexGuard<'_, ()> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks through the folders again unless that was done less than `fresh` ago. Reads the headers of new files, so it
    /// may take a while; not for an async thread.
    pub fn look(&self, fresh: Duration) {
        let _one = self.looking();
        let known = {
            let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
            if catalog.looked.is_some_and(|looked| looked.elapsed() < fresh) {
                return;
            }
            catalog.files.clone()
        };
        let mut found = Vec::new();
        for folder in &self.folders {
            walk(folder, DEPTH, &mut found);
        }
        let mut files: HashMap<String, Arc<ModelFile>> = HashMap::new();
        let mut order = Vec::new();
        for (name, path, stamp) in found {
            // Two files of one name cannot both have an address: the folder named first wins.
            if files.contains_key(&name) {
                continue;
            }
            let same = known.get(&name).filter(|known| known.path == path && known.stamp == stamp);
            let file = same.cloned().unwrap_or_else(|| self.add(name.clone(), path, stamp));
            files.insert(name, file.clone());
            order.push(file);
        }
        for (name, old) in &known {
            if !files.get(name).is_some_and(|file| Arc::ptr_eq(file, old)) {
                old.drop_out();
            }
        }
        let models = group(&order);
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) =
            Catalog { models, files, looked: Some(Instant::now()) };
    }

    fn add(&self, name: String, path: PathBuf, stamp: Stamp) -> Arc<ModelFile> {
        let file = Arc::new(ModelFile::found(name, path, stamp));
        match self.cache.load(&file) {
            Some(hashed) => file.set_hashed(hashed),
            None if self.to_hash.send(file.clone()).is_err() => {
                file.set_failed("The thread that hashes models is gone: start the relay again.".into());
            }
            None => {}
        }
        file
    }

    /// The lines of `GET /models`, as of the last look.
    pub fn lines(&self) -> Vec<ModelLine> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        catalog.models.iter().map(line).collect()
    }

    /// The file called `name`; the name of a model in one file will do as well.
    pub fn file(&self, name: &str) -> Result<Arc<ModelFile>, ApiError> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = catalog.files.get(name) {
            return Ok(file.clone());
        }
        match catalog.models.iter().find(|model| model.name == name).map(|model| &model.files[..]) {
            Some([file]) => Ok(file.clone()),
            Some(_) => Err(ApiError::SeveralFiles(name.to_owned())),
            None => Err(ApiError::NoSuchModel(name.to_owned())),
        }
    }

    /// Bytes sent, for each model.
    pub fn served(&self) -> Vec<(String, u64)> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let sum = |model: &Model| model.files.iter().map(|file| file.served.get()).sum();
        catalog.models.iter().map(|model| (model.name.clone(), sum(model))).collect()
    }
}

/// Finds files ending in `.gguf`, in the order of their names.
fn walk(folder: &Path, depth: usize, found: &mut Vec<(String, PathBuf, Stamp)>) {
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
            walk(&path, depth - 1, found);
        } else if metadata.is_file() && name.ends_with(".gguf") {
            found.push((name.to_owned(), path.clone(), Stamp::of(&metadata)));
        }
    }
}

/// Puts the parts of split models together; keeps the order of first parts.
fn group(files: &[Arc<ModelFile>]) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    for file in files {
        let Some((name, _, count)) = split_name(&file.name) else {
            let name = file.name.trim_end_matches(".gguf").to_owned();
            models.push(Model { name, files: vec![file.clone()], parts: 1 });
            continue;
        };
        match models.iter_mut().find(|model| model.parts > 1 && model.name == name) {
            Some(model) => model.files.push(file.clone()),
            None => models.push(Model { name: name.to_owned(), files: vec![file.clone()], parts: count }),
        }
    }
    for model in &mut models {
        // Numbers have five digits, so names sort as their parts do.
        model.files.sort_by(|a, b| a.name.cmp(&b.name));
    }
    models
}

/// Takes `name-00002-of-00005.gguf` apart.
fn split_name(file: &str) -> Option<(&str, u32, u32)> {
    let (rest, count) = file.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (name, part) = rest.rsplit_once('-')?;
    let number = |digits: &str| (digits.len() == 5).then(|| digits.parse().ok()).flatten();
    let (part, count) = (number(part)?, number(count)?);
    (count > 1 && (1..=count).contains(&part)).then_some((name, part, count))
}

fn line(model: &Model) -> ModelLine {
    let bytes = model.files.iter().map(|file| file.stamp.bytes).sum();
    let hashed: Vec<Option<Arc<Hashed>>> = model.files.iter().map(|file| file.hashed()).collect();
    let roots: Option<Vec<blake3::Hash>> = hashed.iter().map(|hashed| hashed.as_ref().map(|h| h.root)).collect();
    let facts = model.files.iter().filter_map(|file| file.header.as_ref().ok());
    let facts = facts.fold(None, |sum: Option<Facts>, part| {
        Some(match sum {
            None => Facts::clone(part),
            Some(sum) => sum.add(part),
        })
    });
    let files = model.files.iter().zip(&hashed).map(|(file, hashed)| {
        let url = format!("/models/{}", encode(&file.name));
        FileLine {
            name: file.name.clone(),
            bytes: file.stamp.bytes,
            root: hashed.as_ref().map(|hashed| hashed.root.to_string()),
            groups: format!("{url}.b3"),
            url,
        }
    });
    ModelLine {
        name: model.name.clone(),
        bytes,
        state: state(model),
        root: roots
            .filter(|_| model.incomplete().is_none())
            .and_then(|roots| model_root(&roots))
            .map(|r| r.to_string()),
        facts: facts.unwrap_or_default(),
        files: files.collect(),
    }
}

fn state(model: &Model) -> LineState {
    if let Some(message) = model.incomplete() {
        return LineState::Broken { message };
    }
    let (mut done, mut total, mut hashing) = (0, 0, false);
    for file in &model.files {
        if let Err(message) = &file.header {
            return LineState::Broken { message: format!("{}: {message}", file.name) };
        }
        total += file.stamp.bytes;
        match file.progress() {
            Progressed::Ready(_) => done += file.stamp.bytes,
            Progressed::Hashing(bytes) => (done, hashing) = (done + bytes, true),
            Progressed::Failed(message) => return LineState::Broken { message },
        }
    }
    if hashing { LineState::Hashing { done, total } } else { LineState::Ready }
}

/// A file name as part of an address.
fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn hash_all(jobs: &Receiver<Arc<ModelFile>>, cache: &HashCache) {
    while let Ok(file) = jobs.recv() {
        match file.hash_groups() {
            Ok(None) => {}
            Ok(Some(list)) => {
                if let Some(hashed) = Hashed::from_groups(&list) {
                    // Not being able to keep it only means hashing again at the next start.
                    let _ = cache.store(&file, &hashed.root, &list);
                    file.set_hashed(hashed);
                }
            }
            Err(error) => file.set_failed(format!("{} cannot be read: {error}.", file.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_names_are_recognized() {
        assert_eq!(split_name("a-b-00002-of-00005.gguf"), Some(("a-b", 2, 5)));
        for other in [
            "a.gguf",
            "a-00006-of-00005.gguf",
            "a-00000-of-00005.gguf",
            "a-00001-of-00001.gguf",
            "a-2-of-5.gguf",
            "a-00001-of-00002.bin",
        ] {
            assert_eq!(split_name(other), None, "{other}");
        }
    }

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(encode("a b/ü.gguf"), "a%20b%2F%C3%BC.gguf");
    }
}
