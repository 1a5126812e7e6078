//! Hashes kept on disk, so that a file of many gigabytes is read once and not at every start.
//!
//! One small file for each file of weights: the version it was made of, then the group hashes. What is read back has to
//! merge to the root that stands beside it; anything else counts as not there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blake3::Hash;

use super::file::{Hashed, ModelFile, Stamp};
use super::groups::{GROUP_BYTES, GroupHash, verify_list};

/// First bytes of a cache file; the digit is the version of this form.
const MAGIC: [u8; 8] = *b"PLHASH1\n";
/// Magic, length, time, bytes of a group, root.
const HEAD_BYTES: usize = 8 + 8 + 16 + 8 + 32;

/// The folder with kept hashes.
#[derive(Clone, Debug)]
pub struct HashCache {
    folder: PathBuf,
}

impl HashCache {
    /// Keeps hashes in `folder`, which is made when there is something to keep.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn place(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let key = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        self.folder.join(format!("{}.hash", &key[..24]))
    }

    /// The kept hash of this version of the file, if there is one.
    pub fn load(&self, file: &ModelFile) -> Option<Hashed> {
        let bytes = fs::read(self.place(&file.path)).ok()?;
        let (head, list) = bytes.split_at_checked(HEAD_BYTES)?;
        let (groups, rest) = list.as_chunks::<32>();
        let (before_root, root) = head.split_last_chunk::<32>()?;
        let root = Hash::from_bytes(*root);
        let same = before_root == version(file.stamp) && rest.is_empty();
        (same && verify_list(groups, file.stamp.bytes, &root)).then(|| Hashed::from_groups(groups)).flatten()
    }

    /// Keeps a hash. Another relay may do the same at the same time: the file appears complete or not at all.
    pub fn store(&self, file: &ModelFile, root: &Hash, list: &[GroupHash]) -> io::Result<()> {
        let mut bytes = version(file.stamp);
        bytes.extend_from_slice(root.as_bytes());
        bytes.extend_from_slice(list.as_flattened());
        fs::create_dir_all(&self.folder)?;
        let place = self.place(&file.path);
        let unfinished = place.with_extension(format!("{}.part", std::process::id()));
        fs::write(&unfinished, bytes)?;
        fs::rename(unfinished, place)
    }
}

fn version(stamp: Stamp) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&stamp.bytes.to_le_bytes());
    bytes.extend_from_slice(&stamp.modified.to_le_bytes());
    bytes.extend_from_slice(&GROUP_BYTES.to_le_bytes());
    bytes
}
