//! One file of weights: its path, its version, and its hashes as far as they are computed.

use std::fs::{File, Metadata};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use axum::body::Bytes;
use blake3::Hash;
use potluck_gguf::{Header, HeaderParser, Progress};
use potluck_relay_api::http::GROUP_BYTES;

use super::content::Content;
use super::describe::ModelFacts;
use super::groups::{GroupHash, group_count, group_hash, merge};
use super::origin::{OriginError, OriginUrl, RemoteFile};
use crate::metrics::Counter;

/// Tells two versions of a file apart without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Length.
    pub bytes: u64,
    /// Time of its last change, in nanoseconds since 1970.
    pub modified: u128,
    /// Its inode, on Unix: a program that writes to a file can set `modified` back, but not the time of this record.
    pub record: Record,
}

/// What Unix records of a file besides its length and modification time; zeros elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the inode.
    pub number: u64,
    /// Time of the last change of the bytes or the inode (`ctime`), in nanoseconds since 1970.
    pub changed: i128,
    /// Number of hard links. To gain or lose one changes the inode but no bytes: a file that another one replaces loses its last.
    pub names: u64,
}

impl Record {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let changed = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
        Self { number: metadata.ino(), changed, names: metadata.nlink() }
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self::default()
    }
}

impl FileVersion {
    /// Takes it from the metadata of a file.
    pub fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| time.as_nanos());
        Self { bytes: metadata.len(), modified, record: Record::of(metadata) }
    }

    /// Fails if a file that had this version when it was opened was written to since. Replacing it by another file is not a write.
    ///
    /// # Errors
    /// It changed, or the system does not answer.
    pub fn check(&self, file: &File) -> io::Result<()> {
        if self.has_bytes_of(&Self::of(&file.metadata()?)) {
            Ok(())
        } else {
            Err(io::Error::other("the file changed while it was read"))
        }
    }

    /// True if the two are of the same bytes. The inode also changes where a file gains or loses a name, and that changes no bytes.
    pub fn has_bytes_of(&self, other: &Self) -> bool {
        let renamed = self.record.number == other.record.number && self.record.names != other.record.names;
        (self.bytes, self.modified) == (other.bytes, other.modified) && (renamed || self.record == other.record)
    }
}

/// The hash of a file and of its groups.
#[derive(Debug)]
pub struct FileHashes {
    /// BLAKE3 of the whole file.
    pub root: Hash,
    /// The group hashes, concatenated as they are sent.
    pub groups: Bytes,
}

impl FileHashes {
    /// Computes the root from the group hashes; `None` for an empty list.
    pub fn from_groups(groups: &[GroupHash]) -> Option<Self> {
        Some(Self { root: merge(groups)?, groups: groups.concat().into() })
    }
}

#[derive(Debug)]
enum State {
    Waiting,
    Ready(Arc<FileHashes>),
    Failed(String),
}

/// How far hashing a file has come.
#[derive(Clone, Debug)]
pub enum HashProgress {
    /// Bytes hashed so far.
    Hashing(u64),
    /// Done.
    Ready(Arc<FileHashes>),
    /// The file cannot be hashed; why, as a sentence.
    Failed(String),
}

impl HashProgress {
    /// The hashes, if they are computed.
    pub fn hashes(self) -> Option<Arc<FileHashes>> {
        match self {
            Self::Ready(hashes) => Some(hashes),
            _ => None,
        }
    }
}

/// A file that is served.
#[derive(Debug)]
pub struct ModelFile {
    /// Its name, unique among all files served.
    pub name: String,
    /// Its path, or its address at an origin.
    pub path: PathBuf,
    /// It lies there, not on disk.
    pub origin: Option<Arc<RemoteFile>>,
    /// The version that was scanned.
    pub version: FileVersion,
    /// What its header says, or why it cannot be used, as a sentence.
    pub facts: Result<Arc<ModelFacts>, String>,
    /// Bytes of it sent so far.
    pub bytes_served: Counter,
    state: Mutex<State>,
    done: AtomicU64,
    cancelled: AtomicBool,
    has_fault: AtomicBool,
}

/// Bytes read at once while hashing or reading a header.
const STEP_BYTES: u64 = 64 * GROUP_BYTES;

impl ModelFile {
    /// Notes that the file could not be read; whether it is the first time.
    pub fn is_first_fault(&self) -> bool {
        !self.has_fault.swap(true, Ordering::Relaxed)
    }

    /// Reads the header of a file, not its weights.
    pub fn open(name: String, path: PathBuf, version: FileVersion) -> Self {
        Self::new(name, path, version, None).described()
    }

    /// Reads the header of a file at an origin.
    pub fn at_origin(file: Arc<RemoteFile>) -> Self {
        let (name, path, version) = (file.url().name().to_owned(), file.url().as_str().into(), file.version());
        Self::new(name, path, version, Some(file)).described()
    }

    /// A file that its origin does not send.
    pub fn absent(url: &OriginUrl, error: &OriginError) -> Self {
        let version = FileVersion { bytes: 0, modified: 0, record: Record::default() };
        let facts = Err(format!("{error}."));
        Self { facts, ..Self::new(url.name().to_owned(), url.as_str().into(), version, None) }
    }

    fn new(name: String, path: PathBuf, version: FileVersion, origin: Option<Arc<RemoteFile>>) -> Self {
        Self {
            name,
            path,
            origin,
            version,
            facts: Ok(Arc::default()),
            bytes_served: Counter::default(),
            state: Mutex::new(State::Waiting),
            done: AtomicU64::new(0),
            has_fault: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
        }
    }

    fn described(mut self) -> Self {
        self.facts = read_header(&self).map(|header| Arc::new(ModelFacts::of(&header)));
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far hashing has come.
    pub fn progress(&self) -> HashProgress {
        match &*self.state() {
            State::Waiting => HashProgress::Hashing(self.done.load(Ordering::Relaxed)),
            State::Ready(hashes) => HashProgress::Ready(hashes.clone()),
            State::Failed(reason) => HashProgress::Failed(reason.clone()),
        }
    }

    /// Its hashes, once they are computed.
    pub fn hashes(&self) -> Option<Arc<FileHashes>> {
        self.progress().hashes()
    }

    /// Sets its hashes.
    pub fn set_hashes(&self, hashes: FileHashes) {
        *self.state() = State::Ready(Arc::new(hashes));
    }

    /// Records why it cannot be hashed.
    pub fn set_failed(&self, reason: String) {
        *self.state() = State::Failed(reason);
    }

    /// Stops hashing: the file was deleted or replaced.
    pub fn cancel_hashing(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Reads the whole file and returns the hashes of its groups; `None` if hashing was cancelled, or if the file has changed: the
    /// next scan finds that.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hash_groups(&self) -> io::Result<Option<Vec<GroupHash>>> {
        let (mut content, version) = Content::open(self)?;
        if !self.version.has_bytes_of(&version) {
            return Ok(None);
        }
        let count = group_count(self.version.bytes);
        let mut list = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        let mut done = 0;
        while done < self.version.bytes {
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let end = self.version.bytes.min(done + STEP_BYTES);
            let step = match content.read(self, done..end) {
                Ok(step) => step,
                // Hashes of bytes of two versions would belong to no file at all.
                Err(_) if content.has_changed(&self.version) => return Ok(None),
                Err(error) => return Err(error),
            };
            for group in step.chunks(GROUP_BYTES as usize) {
                list.push(group_hash(group, list.len() as u64, count));
            }
            done = end;
            self.done.store(done, Ordering::Relaxed);
        }
        if list.is_empty() {
            list.push(group_hash(&[], 0, 1));
        }
        Ok((!content.has_changed(&self.version)).then_some(list))
    }
}

fn read_header(file: &ModelFile) -> Result<Header, String> {
    let unreadable = |error: io::Error| format!("The file cannot be read: {error}.");
    let bytes = file.version.bytes;
    let (mut content, _) = Content::open(file).map_err(unreadable)?;
    let mut parser = HeaderParser::with_length(bytes);
    let mut done = 0;
    loop {
        let end = bytes.min(done + STEP_BYTES);
        let step = content.read(file, done..end).map_err(unreadable)?;
        match parser.push(&step).map_err(|error| error.to_string())? {
            Progress::Done(header) => {
                header.check_length(bytes).map_err(|error| error.to_string())?;
                return Ok(*header);
            }
            Progress::NeedMore { .. } if step.is_empty() => return Err("The file ends inside its header.".into()),
            Progress::NeedMore { .. } => done = end,
        }
    }
}
