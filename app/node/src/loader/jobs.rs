//! Cutting weight units into pieces to fetch, store and upload.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::lock::Mutex;
use potluck_model::UnitMap;
use potluck_plan::{ModelId, WeightUnit};

use crate::blob::{BlobKey, BlobName};
use crate::platform::{BlobReader, BlobStore, LockGuard, Platform, StoreError};

/// A piece of a tensor of a unit.
pub struct Job {
    /// Its unit.
    pub state: Rc<UnitState>,
    /// Index in `UnitMap::tensors`.
    pub tensor: usize,
    /// Which file.
    pub file: u16,
    /// Where in the file.
    pub offset: u64,
    /// Where in the tensor; a multiple of 4.
    pub tensor_offset: u64,
    /// Where in the unit's blob.
    pub unit_offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Job {
    /// One past its last byte in the unit's blob.
    pub fn end_in_unit(&self) -> u64 {
        self.unit_offset + self.len
    }

    /// Keeps the part of the job's bytes that continues the unit's blob; none if the blob has them or has a gap before them.
    pub fn keep(&self, bytes: &[u8]) {
        let mut waiting = self.state.waiting.borrow_mut();
        let end = self.state.stored() + self.state.queued.get() + waiting.len() as u64;
        if !self.state.left_out.get() && (self.unit_offset..self.end_in_unit()).contains(&end) {
            waiting.extend_from_slice(&bytes[(end - self.unit_offset) as usize..]);
        }
    }
}

/// A unit that is being loaded.
pub struct UnitState {
    /// Which.
    pub unit: WeightUnit,
    bytes: u64,
    /// Jobs that are not done.
    left: Cell<usize>,
    /// Bytes in the cache.
    stored: Cell<u64>,
    /// Bytes after them that are being written.
    queued: Cell<u64>,
    /// Bytes that continue the blob and are not written yet: opening a file takes longer than writing a small piece.
    waiting: RefCell<Vec<u8>>,
    /// A piece was left out, so nothing after it can be stored.
    left_out: Cell<bool>,
    locking: Mutex<bool>,
    guard: RefCell<Option<LockGuard>>,
    reader: Mutex<Option<Rc<dyn BlobReader>>>,
}

impl UnitState {
    /// A unit of `bytes` bytes of which some are in the cache.
    pub fn new(unit: WeightUnit, bytes: u64, stored: Option<u64>) -> Self {
        Self {
            unit,
            bytes,
            left: Cell::new(0),
            stored: Cell::new(stored.unwrap_or(0)),
            queued: Cell::new(0),
            waiting: RefCell::default(),
            left_out: Cell::new(false),
            locking: Mutex::new(false),
            guard: RefCell::new(None),
            reader: Mutex::new(None),
        }
    }

    /// Bytes in the cache.
    pub fn stored(&self) -> u64 {
        self.stored.get()
    }

    /// True if the cache has all of it.
    pub fn is_whole(&self) -> bool {
        self.stored() >= self.bytes
    }

    /// One of its jobs is done; true if it was the last.
    pub fn done(&self) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        self.left.get() == 0
    }

    /// So many more bytes are in the cache, of those that were to be written.
    pub fn written(&self, bytes: u64) {
        self.stored.set(self.stored() + bytes);
        self.queued.set(self.queued.get() - bytes);
    }

    /// What is to be written now, and where: everything that waits, if that is `least` bytes or more. Pieces have to be
    /// written in the order in which they were taken.
    pub fn to_append(&self, least: usize) -> Option<(u64, Vec<u8>)> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() || waiting.len() < least {
            return None;
        }
        let offset = self.stored() + self.queued.get();
        self.queued.set(self.queued.get() + waiting.len() as u64);
        Some((offset, std::mem::take(&mut *waiting)))
    }

    /// Its blob, opened once.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn reader(&self, store: &dyn BlobStore, model: ModelId) -> Result<Rc<dyn BlobReader>, StoreError> {
        let mut reader = self.reader.lock().await;
        if let Some(open) = reader.as_ref() {
            return Ok(open.clone());
        }
        let open = store.reader(BlobKey { model, name: BlobName::Unit(self.unit) }).await?;
        *reader = Some(open.clone());
        Ok(open)
    }

    /// Closes its blob: nobody can write to it or delete it before.
    pub async fn close(&self) {
        self.reader.lock().await.take();
    }

    /// A piece is not stored: nothing after it can be.
    pub fn leave_out(&self) {
        self.left_out.set(true);
    }

    /// Waits, once, until no other tab downloads this unit, and looks again what is stored. Without locks (an old browser)
    /// both download.
    pub async fn lock(&self, platform: &Platform, model: ModelId) {
        let mut locked = self.locking.lock().await;
        if *locked {
            return;
        }
        *locked = true;
        let name = BlobName::Unit(self.unit);
        match platform.store.lock(format!("potluck-unit-{model}-{name}")).await {
            Ok(guard) => *self.guard.borrow_mut() = Some(guard),
            Err(error) => return log::info!("no lock: {error}"),
        }
        if let Ok(stored) = platform.store.len(BlobKey { model, name }).await {
            self.stored.set(stored);
        }
    }

    /// Lets other tabs have the unit.
    pub fn release(&self) {
        self.guard.borrow_mut().take();
    }
}

/// Puts units in the order of the file. All tabs lock units in this order, so they never wait for each other in a circle.
pub fn sort_units(units: &mut [WeightUnit], map: &UnitMap) {
    units.sort_by_key(|unit| {
        let first = map.tensors(*unit).iter().map(|tensor| (tensor.range.file, tensor.range.offset)).min();
        (first, *unit)
    });
}

/// Cuts a unit into jobs of at most `piece` bytes (a multiple of 4).
pub fn cut(state: &Rc<UnitState>, units: &UnitMap, piece: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut unit_offset = 0;
    for (tensor, info) in units.tensors(state.unit).iter().enumerate() {
        let mut tensor_offset = 0;
        while tensor_offset < info.range.len {
            let len = piece.min(info.range.len - tensor_offset);
            jobs.push(Job {
                state: state.clone(),
                tensor,
                file: info.range.file,
                offset: info.range.offset + tensor_offset,
                tensor_offset,
                unit_offset,
                len,
            });
            tensor_offset += len;
            unit_offset += len;
        }
    }
    state.left.set(jobs.len());
    jobs
}

/// Puts jobs in the order of the file, and those together that lie end to end, up to `most` bytes: the matrices of the
/// experts are a piece each, and reading has a price a time. For what is not stored: a blob's bytes must come in its order.
pub fn runs(mut jobs: Vec<Job>, most: u64) -> Vec<Vec<Job>> {
    jobs.sort_by_key(|job| (job.file, job.offset));
    let mut runs: Vec<Vec<Job>> = Vec::new();
    for job in jobs {
        let fits = |run: &&mut Vec<Job>| {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
            let follows = (last.file, last.offset + last.len) == (job.file, job.offset);
            follows && job.offset + job.len - first.offset <= most
        };
        match runs.last_mut().filter(fits) {
            Some(run) => run.push(job),
            None => runs.push(vec![job]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use potluck_gguf::join;
    use potluck_gguf::synthetic::Synthetic;
    use potluck_model::ModelSpec;

    fn map() -> UnitMap {
        ModelSpec::from_gguf(&join([Synthetic::default().header().unwrap()]).unwrap()).unwrap().1
    }

    #[test]
    fn jobs_cover_a_unit_in_order_without_gaps() {
        let map = map();
        for unit in map.units() {
            let state = Rc::new(UnitState::new(unit, map.bytes(unit).0, None));
            let jobs = cut(&state, &map, 1000);
            let mut at = 0;
            for job in &jobs {
                assert_eq!(job.unit_offset, at);
                assert!(job.len > 0 && job.len <= 1000 && job.tensor_offset.is_multiple_of(4));
                at = job.end_in_unit();
            }
            assert_eq!(at, map.bytes(unit).0);
            let ends: Vec<bool> = jobs.iter().map(|job| job.state.done()).collect();
            assert!(ends.iter().rev().skip(1).all(|end| !end) && ends.ends_with(&[true]));
        }
    }

    #[test]
    fn a_blob_grows_only_from_its_end() {
        let map = map();
        let unit = map.units().next().unwrap();
        let state = Rc::new(UnitState::new(unit, map.bytes(unit).0, Some(1500)));
        let jobs = cut(&state, &map, 1000);
        jobs[0].keep(&[0; 1000]);
        assert_eq!(state.to_append(0), None, "stored already");
        jobs[2].keep(&[0; 1000]);
        assert_eq!(state.to_append(0), None, "a gap");
        jobs[1].keep(&[7; 1000]);
        assert_eq!(state.to_append(0), Some((1500, vec![7; 500])), "a resumed piece adds what is missing");
        state.written(500);
        assert_eq!(state.stored(), 2000);
        state.leave_out();
        jobs[2].keep(&[0; 1000]);
        assert_eq!(state.to_append(0), None, "something before it was left out");
    }

    #[test]
    fn small_pieces_are_written_together() {
        let map = map();
        let unit = map.units().next().unwrap();
        let state = Rc::new(UnitState::new(unit, map.bytes(unit).0, None));
        let jobs = cut(&state, &map, 1000);
        jobs[0].keep(&[1; 1000]);
        assert_eq!(state.to_append(2000), None, "too little to open a file for");
        jobs[1].keep(&[2; 1000]);
        let (offset, bytes) = state.to_append(2000).unwrap();
        assert_eq!((offset, bytes.len(), bytes[999], bytes[1000]), (0, 2000, 1, 2));
        assert_eq!(state.to_append(0), None, "nothing is written twice");
        jobs[2].keep(&[3; 1000]);
        let next = state.to_append(0).map(|(offset, _)| offset);
        assert_eq!(next, Some(2000), "the next piece goes behind what is still being written");
        assert_eq!(state.stored(), 0, "nothing of it is in the cache yet");
    }

    #[test]
    fn a_file_is_read_in_long_runs_that_cover_every_job_once() {
        let map = map();
        let state = |unit| Rc::new(UnitState::new(unit, map.bytes(unit).0, None));
        let jobs: Vec<Job> = map.units().flat_map(|unit| cut(&state(unit), &map, 1 << 20)).collect();
        let (count, bytes) = (jobs.len(), jobs.iter().map(|job| job.len).sum::<u64>());
        let runs = runs(jobs, 1 << 20);
        assert!(runs.len() < count / 2, "{} runs of {count} jobs", runs.len());
        for run in &runs {
            assert!(run.iter().map(|job| job.len).sum::<u64>() <= 1 << 20);
            assert!(run.windows(2).all(|pair| pair[0].offset + pair[0].len == pair[1].offset));
        }
        let all: Vec<&Job> = runs.iter().flatten().collect();
        assert_eq!((all.len(), all.iter().map(|job| job.len).sum::<u64>()), (count, bytes));
        assert!(all.windows(2).all(|pair| pair[0].offset < pair[1].offset));
    }

    #[test]
    fn units_are_sorted_by_their_place_in_the_file() {
        let map = map();
        let mut units: Vec<WeightUnit> = map.units().collect();
        units.reverse();
        sort_units(&mut units, &map);
        let places: Vec<_> = units.iter().map(|unit| map.tensors(*unit)[0].range.offset).collect();
        assert!(places.is_sorted());
    }
}
