//! Hashes on disk, so that a file of many gigabytes is read once and not at every start.
//!
//! One small file for each file of weights: the version that was hashed, then the group hashes. They must merge to the
//! root stored beside them; anything else counts as missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blake3::Hash;
use potluck_relay_api::http::GROUP_BYTES;

use super::file::{FileHashes, FileVersion, ModelFile};
use super::groups::{GroupHash, verify_list};

/// First bytes of a cache file; the digit is the version of the format.
const MAGIC: [u8; 8] = *b"PLHASH2\n";
/// Magic, file length, modification time, number and time of the inode, group size, root.
const HEAD_BYTES: usize = 8 + 8 + 16 + 8 + 16 + 8 + 32;

/// The folder with the hashes.
#[derive(Clone, Debug)]
pub struct HashCache {
    folder: PathBuf,
}

impl HashCache {
    /// Stores hashes in `folder`, which is created with the first one.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn entry_path(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let key = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        self.folder.join(format!("{}.hash", &key[..24]))
    }

    /// The stored hashes of this version of the file.
    pub fn load(&self, file: &ModelFile) -> Option<FileHashes> {
        let bytes = fs::read(self.entry_path(&file.path)).ok()?;
        let (head, list) = bytes.split_at_checked(HEAD_BYTES)?;
        let (groups, rest) = list.as_chunks::<32>();
        let (before_root, root) = head.split_last_chunk::<32>()?;
        let root = Hash::from_bytes(*root);
        let same = before_root == header(file.version) && rest.is_empty();
        (same && verify_list(groups, file.version.bytes, &root)).then(|| FileHashes::from_groups(groups)).flatten()
    }

    /// Stores hashes. Another relay may store the same ones at the same time: a file appears complete or not at all.
    ///
    /// # Errors
    /// The folder or file cannot be written.
    pub fn store(&self, file: &ModelFile, root: &Hash, groups: &[GroupHash]) -> io::Result<()> {
        let mut bytes = header(file.version);
        bytes.extend_from_slice(root.as_bytes());
        bytes.extend_from_slice(groups.as_flattened());
        fs::create_dir_all(&self.folder)?;
        let target = self.entry_path(&file.path);
        let unfinished = target.with_extension(format!("{}.part", std::process::id()));
        fs::write(&unfinished, bytes)?;
        fs::rename(unfinished, target)
    }
}

fn header(version: FileVersion) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&version.bytes.to_le_bytes());
    bytes.extend_from_slice(&version.modified.to_le_bytes());
    bytes.extend_from_slice(&version.record.number.to_le_bytes());
    bytes.extend_from_slice(&version.record.changed.to_le_bytes());
    bytes.extend_from_slice(&GROUP_BYTES.to_le_bytes());
    bytes
}
