//! Cutting weight units into pieces to fetch, store and upload.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::lock::Mutex;
use potluck_model::UnitMap;
use potluck_plan::{ModelId, WeightUnit};

use crate::blob::{BlobKey, BlobName};
use crate::platform::{LockGuard, Platform};

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
    /// The last one of its unit.
    pub last: bool,
}

impl Job {
    /// One past its last byte in the unit's blob.
    pub fn end_in_unit(&self) -> u64 {
        self.unit_offset + self.len
    }

    /// Keeps the part of the job's bytes that continues the unit's blob; none if the blob has them or has a gap before them.
    pub fn keep(&self, bytes: &[u8]) {
        let mut waiting = self.state.waiting.borrow_mut();
        let end = self.state.stored() + waiting.len() as u64;
        if !self.state.left_out.get() && (self.unit_offset..self.end_in_unit()).contains(&end) {
            waiting.extend_from_slice(&bytes[(end - self.unit_offset) as usize..]);
        }
    }
}

/// A unit that is being loaded.
pub struct UnitState {
    /// Which.
    pub unit: WeightUnit,
    /// Bytes in the cache.
    stored: Cell<u64>,
    /// Bytes that continue the blob and are not written yet: opening a file takes longer than writing a small piece.
    waiting: RefCell<Vec<u8>>,
    /// A piece was left out, so nothing after it can be stored.
    left_out: Cell<bool>,
    locking: Mutex<bool>,
    guard: RefCell<Option<LockGuard>>,
}

impl UnitState {
    /// A unit of which some bytes are in the cache.
    pub fn new(unit: WeightUnit, stored: Option<u64>) -> Self {
        Self {
            unit,
            stored: Cell::new(stored.unwrap_or(0)),
            waiting: RefCell::default(),
            left_out: Cell::new(false),
            locking: Mutex::new(false),
            guard: RefCell::new(None),
        }
    }

    /// Bytes in the cache.
    pub fn stored(&self) -> u64 {
        self.stored.get()
    }

    /// The cache has bytes up to here.
    pub fn grew(&self, stored: u64) {
        self.stored.set(stored);
    }

    /// What is to be written now, and where: everything that waits, if that is `least` bytes or more.
    pub fn to_append(&self, least: usize) -> Option<(u64, Vec<u8>)> {
        let mut waiting = self.waiting.borrow_mut();
        (!waiting.is_empty() && waiting.len() >= least).then(|| (self.stored(), std::mem::take(&mut *waiting)))
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
                last: false,
            });
            tensor_offset += len;
            unit_offset += len;
        }
    }
    if let Some(job) = jobs.last_mut() {
        job.last = true;
    }
    jobs
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
            let state = Rc::new(UnitState::new(unit, None));
            let jobs = cut(&state, &map, 1000);
            let mut at = 0;
            for job in &jobs {
                assert_eq!(job.unit_offset, at);
                assert!(job.len > 0 && job.len <= 1000 && job.tensor_offset.is_multiple_of(4));
                at = job.end_in_unit();
            }
            assert_eq!(at, map.bytes(unit).0);
            assert_eq!(jobs.iter().filter(|job| job.last).count(), 1);
        }
    }

    #[test]
    fn a_blob_grows_only_from_its_end() {
        let map = map();
        let unit = map.units().next().unwrap();
        let state = Rc::new(UnitState::new(unit, Some(1500)));
        let jobs = cut(&state, &map, 1000);
        jobs[0].keep(&[0; 1000]);
        assert_eq!(state.to_append(0), None, "stored already");
        jobs[2].keep(&[0; 1000]);
        assert_eq!(state.to_append(0), None, "a gap");
        jobs[1].keep(&[7; 1000]);
        assert_eq!(state.to_append(0), Some((1500, vec![7; 500])), "a resumed piece adds what is missing");
        state.grew(2000);
        state.leave_out();
        jobs[2].keep(&[0; 1000]);
        assert_eq!(state.to_append(0), None, "something before it was left out");
    }

    #[test]
    fn small_pieces_are_written_together() {
        let map = map();
        let unit = map.units().next().unwrap();
        let state = Rc::new(UnitState::new(unit, None));
        let jobs = cut(&state, &map, 1000);
        jobs[0].keep(&[1; 1000]);
        assert_eq!(state.to_append(2000), None, "too little to open a file for");
        jobs[1].keep(&[2; 1000]);
        let (offset, bytes) = state.to_append(2000).unwrap();
        assert_eq!((offset, bytes.len(), bytes[999], bytes[1000]), (0, 2000, 1, 2));
        assert_eq!(state.to_append(0), None, "nothing is written twice");
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
