//! A cache of the hash groups at the ends of reads. Bytes of a model are verified in whole groups of 64 KiB, so neighbouring
//! reads (small tensors, slices of experts) need the same group. The first read fetches it and shares it with the others,
//! also while it is still being fetched.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;

use crate::hashes::GROUP_BYTES;

/// Groups that are kept: 8 MiB.
const MAX_GROUPS: usize = 128;

/// A verified group, or one that is being fetched; cancelled if the fetch failed.
pub type SharedGroup = Shared<oneshot::Receiver<Rc<[u8]>>>;

/// The groups at the ends of recent reads of one file.
#[derive(Default)]
pub struct ChunkCache {
    groups: RefCell<Groups>,
}

#[derive(Default)]
struct Groups {
    by_index: HashMap<u64, SharedGroup>,
    oldest_first: VecDeque<u64>,
}

/// The duty to fetch a group for everyone who waits for it. Dropping it cancels the fetch.
pub struct FetchDuty {
    index: u64,
    sender: oneshot::Sender<Rc<[u8]>>,
}

/// The result of looking up a group.
pub enum Lookup {
    /// It is cached or being fetched.
    Cached(SharedGroup),
    /// It is neither: the caller must fetch it.
    Missing(FetchDuty),
}

impl ChunkCache {
    /// Looks up a group by its index in the file.
    pub fn lookup(&self, index: u64) -> Lookup {
        let Groups { by_index, oldest_first } = &mut *self.groups.borrow_mut();
        if let Some(group) = by_index.get(&index).filter(|group| !matches!(group.peek(), Some(Err(_)))) {
            return Lookup::Cached(group.clone());
        }
        let (sender, receiver) = oneshot::channel();
        if by_index.insert(index, receiver.shared()).is_none() {
            oldest_first.push_back(index);
        }
        while oldest_first.len() > MAX_GROUPS {
            if let Some(oldest) = oldest_first.pop_front() {
                by_index.remove(&oldest);
            }
        }
        Lookup::Missing(FetchDuty { index, sender })
    }
}

impl Lookup {
    /// Shares the group if it was missing, from verified bytes that start at `start` in the file. Returns the group to wait
    /// for if it was cached.
    pub fn fulfil(self, start: u64, bytes: &[u8]) -> Option<SharedGroup> {
        match self {
            Self::Cached(group) => Some(group),
            Self::Missing(duty) => {
                duty.fulfil(start, bytes);
                None
            }
        }
    }
}

impl FetchDuty {
    fn fulfil(self, start: u64, bytes: &[u8]) {
        let from = (self.index * GROUP_BYTES).saturating_sub(start) as usize;
        let to = bytes.len().min(from + GROUP_BYTES as usize);
        if let Some(group) = bytes.get(from..to) {
            // Fails if nobody waits and the group was evicted.
            let _ = self.sender.send(group.into());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn the_first_read_fetches_and_the_others_share() {
        let cache = ChunkCache::default();
        let Lookup::Missing(duty) = cache.lookup(3) else { panic!("it is not cached yet") };
        let Lookup::Cached(waiting) = cache.lookup(3) else { panic!("it is being fetched") };
        let mut bytes = vec![1; GROUP_BYTES as usize];
        bytes.extend([2; 10]);
        duty.fulfil(2 * GROUP_BYTES, &bytes);
        assert_eq!(*block_on(waiting).unwrap(), [2; 10]);
    }

    #[test]
    fn a_failed_fetch_is_retried_by_the_next_read_and_old_groups_are_evicted() {
        let cache = ChunkCache::default();
        let Lookup::Missing(duty) = cache.lookup(0) else { panic!("it is not cached yet") };
        let Lookup::Cached(waiting) = cache.lookup(0) else { panic!("it is being fetched") };
        drop(duty);
        assert!(block_on(waiting).is_err());
        let Lookup::Missing(duty) = cache.lookup(0) else { panic!("the next read fetches it") };
        duty.fulfil(0, &[5; 4]);
        assert!(matches!(cache.lookup(0), Lookup::Cached(_)));
        for index in 1..=MAX_GROUPS as u64 {
            let Lookup::Missing(duty) = cache.lookup(index) else { panic!("a new group") };
            duty.fulfil(index * GROUP_BYTES, &[0; 4]);
        }
        assert!(matches!(cache.lookup(0), Lookup::Missing(_)), "the oldest was evicted");
    }
}
