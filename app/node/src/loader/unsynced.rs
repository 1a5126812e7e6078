//! Pieces that were written to the cache and may not be stored yet.

use std::rc::Rc;

use potluck_plan::Millis;

use super::cached_blob::CachedBlob;

/// Bytes that are written before the cache is asked to store them: each time a device waits for its disk, milliseconds on a
/// computer and more on a phone.
const SYNC_BYTES: u64 = 64 << 20;
/// Pieces wait for no longer than this for others, so that a tab that dies has lost little.
const SYNC_MILLIS: f64 = 1_000.0;

/// What was written since the cache was asked last.
#[derive(Default)]
pub struct Unsynced {
    bytes: u64,
    since: Option<Millis>,
    written: Written,
}

/// Units of which something was written.
#[derive(Default)]
pub struct Written {
    /// All of them.
    pub blobs: Vec<Rc<CachedBlob>>,
    /// Those of which nothing follows. Other tabs wait for their locks.
    pub ended: Vec<Rc<CachedBlob>>,
}

impl Unsynced {
    /// So many bytes of a unit were written.
    pub fn written(&mut self, blob: &Rc<CachedBlob>, bytes: u64, now: Millis) {
        self.bytes += bytes;
        self.since.get_or_insert(now);
        if !self.written.blobs.iter().any(|known| Rc::ptr_eq(known, blob)) {
            self.written.blobs.push(blob.clone());
        }
    }

    /// Nothing of a unit follows.
    pub fn ended(&mut self, blob: Rc<CachedBlob>) {
        self.written.ended.push(blob);
    }

    /// It is time to ask the cache to store what was written. Where nothing was, nobody has to wait.
    pub fn is_due(&self, now: Millis) -> bool {
        match self.since {
            Some(since) => self.bytes >= SYNC_BYTES || now.0 - since.0 >= SYNC_MILLIS,
            None => !self.written.ended.is_empty(),
        }
    }

    /// Takes everything, to be stored.
    pub fn take(&mut self) -> Written {
        std::mem::take(self).written
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{BlockIndex, ExpertId, WeightUnit};

    use super::*;

    fn expert(id: u16) -> Rc<CachedBlob> {
        Rc::new(CachedBlob::new(WeightUnit::Expert(BlockIndex(0), ExpertId(id)), 100, None))
    }

    #[test]
    fn pieces_are_stored_together_once_there_are_many_or_some_are_old() {
        let (mut unsynced, blob) = (Unsynced::default(), expert(0));
        unsynced.written(&blob, SYNC_BYTES - 1, Millis(5_000.0));
        assert!(!unsynced.is_due(Millis(5_999.0)), "others may come");
        assert!(unsynced.is_due(Millis(6_000.0)), "a second is long enough");
        unsynced.written(&blob, 1, Millis(5_500.0));
        assert!(unsynced.is_due(Millis(5_500.0)), "64 MiB are enough");
        let Written { blobs, ended } = unsynced.take();
        assert_eq!((blobs.len(), ended.len()), (1, 0), "each unit once, and its lock is kept while pieces follow");
        assert!(!unsynced.is_due(Millis(99_000.0)), "nothing is left");
    }

    #[test]
    fn a_unit_that_ends_keeps_its_lock_until_it_is_stored() {
        let mut unsynced = Unsynced::default();
        unsynced.written(&expert(0), 100, Millis(0.0));
        unsynced.ended(expert(0));
        unsynced.ended(expert(1));
        assert!(!unsynced.is_due(Millis(1.0)));
        assert_eq!(unsynced.take().ended.len(), 2);
        unsynced.ended(expert(2));
        assert!(unsynced.is_due(Millis(1.0)), "nothing of it was written, so nobody waits for the disk");
    }
}
