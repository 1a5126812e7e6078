//! The group hashes of a file that this device shares: made by reading the file once, and kept for the next time.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures::StreamExt;

use crate::blob::{BlobKey, BlobName};
use crate::hashes::{GROUP_BYTES, GroupHasher, GroupHashes};
use crate::platform::{BlobStore, LocalFile, StoreError};
use crate::source::SourceError;

/// Bytes of one read while a file is hashed, a multiple of [`GROUP_BYTES`]: long enough for a disk, short enough that the
/// node's loop never waits long for the hash.
const READ_BYTES: u64 = 64 * GROUP_BYTES;
/// Reads at a time: one is hashed while the next comes.
const READS_AHEAD: usize = 2;
/// Groups of a file that are compared with its kept list.
const PROBES: u64 = 4;
/// Lists that are kept, each in a blob of its own beside the device's measurements. The list of a 20 GB file has 10 MB.
const KEPT_LISTS: u8 = 8;

/// The hashes of a file, kept from before or made now. `on_progress` receives how many bytes of how many are hashed.
///
/// # Errors
/// The file cannot be read.
pub(super) async fn group_hashes(
    store: &dyn BlobStore,
    file: &Rc<dyn LocalFile>,
    on_progress: &dyn Fn(u64, u64),
) -> Result<GroupHashes, SourceError> {
    let kept = Kept::of(file.as_ref());
    if let Some(kept) = &kept
        && let Some(groups) = kept.load(store, file.len()).await
        && is_list_of(&groups, file).await?
    {
        return Ok(groups);
    }
    let groups = hash(file, on_progress).await?;
    if let Some(kept) = &kept
        && let Err(error) = kept.store(store, &groups).await
    {
        log::info!("the file's hashes cannot be kept: {error}");
    }
    Ok(groups)
}

/// Checks a few groups of the file, including the first and the last: another file can have the same name, length and time.
async fn is_list_of(groups: &GroupHashes, file: &Rc<dyn LocalFile>) -> Result<bool, SourceError> {
    let last = file.len().saturating_sub(1);
    let probes: BTreeSet<u64> = (0..PROBES).map(|probe| groups.around(last * probe / (PROBES - 1), 1).start).collect();
    for start in probes {
        let range = groups.around(start, 1);
        let bytes = file.read(range.start, range.end - range.start).await.map_err(SourceError::File)?;
        if !groups.check(range.start, &bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn hash(file: &Rc<dyn LocalFile>, on_progress: &dyn Fn(u64, u64)) -> Result<GroupHashes, SourceError> {
    let bytes = file.len();
    let reads = (0..bytes).step_by(READ_BYTES as usize).map(|offset| file.read(offset, READ_BYTES.min(bytes - offset)));
    let mut reads = futures::stream::iter(reads).buffered(READS_AHEAD);
    let mut hasher = GroupHasher::new(bytes);
    let mut done = 0;
    while let Some(read) = reads.next().await {
        let read = read.map_err(SourceError::File)?;
        hasher.push(&read);
        done += read.len() as u64;
        if done < bytes {
            on_progress(done, bytes);
        }
    }
    hasher.finish().ok_or(SourceError::TooShort { len: done, wanted: bytes })
}

/// Where the hashes of a file are kept: 32 bytes that stand for its name, length and time, its root, and the list. A list
/// that is damaged does not belong to its root and is made again, and so is one that a few groups of the file do not match.
/// If a file changed only in other groups, and its time did not, its id is wrong; then other devices refuse its bytes.
struct Kept {
    file: [u8; 32],
    key: BlobKey,
}

impl Kept {
    /// `None` if the file's time is not known.
    fn of(file: &dyn LocalFile) -> Option<Self> {
        let mut hasher = blake3::Hasher::new_derive_key("potluck hashes of a file on this device");
        hasher.update(&file.modified()?.to_le_bytes()).update(&file.len().to_le_bytes()).update(file.name().as_bytes());
        let file = *hasher.finalize().as_bytes();
        let slot = u16::from(file[0] % KEPT_LISTS);
        Some(Self { file, key: BlobKey { model: BlobKey::DEVICE.model, name: BlobName::Header(slot) } })
    }

    async fn load(&self, store: &dyn BlobStore, bytes: u64) -> Option<GroupHashes> {
        let len = store.len(self.key).await.ok()?;
        if len != 64 + GroupHashes::list_bytes(bytes) {
            return None;
        }
        let stored = store.read(self.key, 0, len).await.ok()?;
        let (file, rest) = stored.split_first_chunk::<32>()?;
        let (root, list) = rest.split_first_chunk::<32>()?;
        GroupHashes::prove(list, bytes, root).filter(|_| *file == self.file)
    }

    async fn store(&self, store: &dyn BlobStore, groups: &GroupHashes) -> Result<(), StoreError> {
        store.delete(self.key).await?;
        store.append(self.key, 0, [&self.file[..], &groups.root(), &groups.list()].concat()).await
    }
}
