//! One file of weights: where it is, which version of it, and how far its hash is.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use axum::body::Bytes;
use blake3::Hash;
use potluck_gguf::{Header, HeaderParser, Progress};

use super::describe::Facts;
use super::groups::{GROUP_BYTES, GroupHash, group_count, group_hash, merge};
use crate::metrics::Counter;

/// What tells a version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Length.
    pub bytes: u64,
    /// Nanoseconds from 1970 to its last change.
    pub modified: u128,
}

impl Stamp {
    /// Reads it from what the system says of a file.
    pub fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { bytes: metadata.len(), modified: modified.map_or(0, |time| time.as_nanos()) }
    }
}

/// A file's hash and its groups' hashes.
#[derive(Debug)]
pub struct Hashed {
    /// BLAKE3 of the file.
    pub root: Hash,
    /// The group hashes one after another, as they are sent.
    pub list: Bytes,
}

impl Hashed {
    /// From the group hashes; `None` for none.
    pub fn from_groups(list: &[GroupHash]) -> Option<Self> {
        Some(Self { root: merge(list)?, list: list.concat().into() })
    }
}

#[derive(Debug)]
enum State {
    Waiting,
    Ready(Arc<Hashed>),
    Failed(String),
}

/// What is known of a file's hash.
#[derive(Clone, Debug)]
pub enum Progressed {
    /// So many bytes are hashed.
    Hashing(u64),
    /// All.
    Ready(Arc<Hashed>),
    /// It cannot be hashed; the reason as a sentence.
    Failed(String),
}

/// A file that is served.
#[derive(Debug)]
pub struct ModelFile {
    /// Its name, unique among all files served.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Which version of it this is about.
    pub stamp: Stamp,
    /// Its header, or why it has none.
    pub header: Result<Arc<Facts>, String>,
    /// Bytes of it that were sent.
    pub served: Counter,
    state: Mutex<State>,
    done: AtomicU64,
    dropped: AtomicBool,
}

/// Bytes read at once while hashing or reading a header.
const STEP_BYTES: u64 = 64 * GROUP_BYTES;

impl ModelFile {
    /// A file found on disk. Reads its header, not its weights.
    pub fn found(name: String, path: PathBuf, stamp: Stamp) -> Self {
        let header = read_header(&path, stamp.bytes).map(|header| Arc::new(Facts::of(&header)));
        Self {
            name,
            path,
            stamp,
            header,
            served: Counter::default(),
            state: Mutex::new(State::Waiting),
            done: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far its hash is.
    pub fn progress(&self) -> Progressed {
        match &*self.state() {
            State::Waiting => Progressed::Hashing(self.done.load(Ordering::Relaxed)),
            State::Ready(hashed) => Progressed::Ready(hashed.clone()),
            State::Failed(reason) => Progressed::Failed(reason.clone()),
        }
    }

    /// Its hash, if that is done.
    pub fn hashed(&self) -> Option<Arc<Hashed>> {
        match self.progress() {
            Progressed::Ready(hashed) => Some(hashed),
            _ => None,
        }
    }

    /// Notes its hash.
    pub fn set_hashed(&self, hashed: Hashed) {
        *self.state() = State::Ready(Arc::new(hashed));
    }

    /// Notes that it cannot be hashed.
    pub fn set_failed(&self, reason: String) {
        *self.state() = State::Failed(reason);
    }

    /// It is gone from disk or was replaced: a hash is of no use any more.
    pub fn drop_out(&self) {
        self.dropped.store(true, Ordering::Relaxed);
    }

    /// Reads all of it and gives the hashes of its groups; `None` if it dropped out meanwhile.
    pub fn hash_groups(&self) -> io::Result<Option<Vec<GroupHash>>> {
        let mut file = File::open(&self.path)?;
        let count = group_count(self.stamp.bytes);
        let mut list = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        let mut buffer = vec![0; STEP_BYTES.min(self.stamp.bytes) as usize];
        let mut left = self.stamp.bytes;
        while left > 0 {
            if self.dropped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let step = &mut buffer[..STEP_BYTES.min(left) as usize];
            file.read_exact(step)?;
            for group in step.chunks(GROUP_BYTES as usize) {
                list.push(group_hash(group, list.len() as u64, count));
            }
            left -= step.len() as u64;
            self.done.store(self.stamp.bytes - left, Ordering::Relaxed);
        }
        if list.is_empty() {
            list.push(group_hash(&[], 0, 1));
        }
        Ok(Some(list))
    }
}

fn read_header(path: &PathBuf, bytes: u64) -> Result<Header, String> {
    let unreadable = |error: io::Error| format!("The file cannot be read: {error}.");
    let mut file = File::open(path).map_err(unreadable)?;
    let mut parser = HeaderParser::with_length(bytes);
    let mut buffer = vec![0; STEP_BYTES.min(bytes) as usize];
    loop {
        let read = file.read(&mut buffer).map_err(unreadable)?;
        match parser.push(&buffer[..read]).map_err(|error| error.to_string())? {
            Progress::Done(header) => {
                header.check_length(bytes).map_err(|error| error.to_string())?;
                return Ok(*header);
            }
            Progress::NeedMore { .. } if read == 0 => return Err("The file ends inside its header.".into()),
            Progress::NeedMore { .. } => {}
        }
    }
}
