//! Parts of files at origins: who asks for one that is being fetched waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use axum::body::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};
use ureq::Agent;

use super::fetch::agent;
use super::store::Store;
use super::{OriginConfig, OriginError, RemoteFile};
use crate::error::StartError;
use crate::models::file::FileHashes;
use crate::models::groups::{GROUP_BYTES, verify_group};

/// What is fetched, checked and kept together.
pub const PART_BYTES: u64 = 16 * GROUP_BYTES;
/// Reads at a time, each of which may block a thread. The others read files and would have none left.
const READS: usize = 64;

type Cell = Arc<OnceLock<Result<Bytes, OriginError>>>;

/// All origins: who asks them, and what is kept of them.
pub struct Origins {
    pub(super) agent: Agent,
    store: Option<Store>,
    reads: Semaphore,
    /// Parts that are being fetched.
    under_way: Mutex<HashMap<String, Cell>>,
    /// Wakes whoever looks for new versions.
    pub(super) stale: mpsc::SyncSender<()>,
}

impl Origins {
    /// Opens the cache. The receiver gets something when a file has to be looked at again.
    ///
    /// # Errors
    /// The cache's folder cannot be used.
    pub fn open(config: &OriginConfig) -> Result<(Arc<Self>, mpsc::Receiver<()>), StartError> {
        let (stale, to_look) = mpsc::sync_channel(1);
        let store = config.cache.as_ref().map(|(folder, bytes)| Store::open(folder, *bytes)).transpose()?;
        let agent = agent(config.timeout);
        let origins = Self { agent, store, reads: Semaphore::new(READS), under_way: Mutex::default(), stale };
        Ok((Arc::new(origins), to_look))
    }

    /// A place among those who read, once one is free.
    pub async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.reads.acquire().await.ok()
    }

    /// A part of a file, checked if there are hashes. What the cache has can only be used then.
    pub(super) fn part(
        &self,
        file: &RemoteFile,
        index: u64,
        hashes: Option<&FileHashes>,
    ) -> Result<Bytes, OriginError> {
        let name = format!("{}-{index}.part", file.key());
        let under_way = || self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = under_way().entry(name.clone()).or_default().clone();
        let part = cell.get_or_init(|| self.obtain(file, index, &name, hashes)).clone();
        under_way().remove(&name);
        if let Err(error) = &part
            && error.is_of_another_version()
        {
            file.distrust(error);
            // If this is full, somebody will look anyhow.
            let _ = self.stale.try_send(());
        }
        part
    }

    fn obtain(
        &self,
        file: &RemoteFile,
        index: u64,
        name: &str,
        hashes: Option<&FileHashes>,
    ) -> Result<Bytes, OriginError> {
        let start = index * PART_BYTES;
        let range = start..file.bytes.min(start + PART_BYTES);
        let is_right = |part: &Bytes| {
            part.len() as u64 == range.end - range.start && hashes.is_none_or(|hashes| fits(part, index, hashes))
        };
        // A disk that forgets is no reason to send wrong bytes.
        let store = self.store.as_ref().filter(|_| hashes.is_some());
        if let Some(kept) = store.and_then(|store| store.get(name)).filter(is_right) {
            return Ok(kept);
        }
        let part = file.fetch(range.clone())?;
        if !is_right(&part) {
            return Err(OriginError::WrongHash(file.url.host.clone()));
        }
        if let Some(store) = &self.store {
            store.put(name, &part);
        }
        Ok(part)
    }
}

/// Whether a part has the bytes that were hashed.
fn fits(part: &Bytes, index: u64, hashes: &FileHashes) -> bool {
    let (list, _) = hashes.groups.as_chunks::<32>();
    let first = index * (PART_BYTES / GROUP_BYTES);
    let mut groups = (first..).zip(part.chunks(GROUP_BYTES as usize));
    groups.all(|(index, group)| verify_group(list, index, group))
}
