//! Cuts weight units into pieces to fetch, store and upload.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_model::{FileRange, UnitMap};
use potluck_plan::WeightUnit;

use super::cached_blob::CachedBlob;
use super::layout::{TensorLocation, blob_bytes, tensor_locations};

/// A piece of a tensor of a unit.
pub struct Job {
    /// The unit.
    pub unit: Rc<PendingUnit>,
    /// The blob with its bytes: the unit's own, or that of a unit it shares the tensor with.
    pub blob: Rc<CachedBlob>,
    /// Index in `UnitMap::tensors`.
    pub tensor: usize,
    /// The file.
    pub file: u16,
    /// Offset in the file.
    pub offset: u64,
    /// Offset in the tensor; a multiple of 4.
    pub tensor_offset: u64,
    /// Offset in the blob.
    pub blob_offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Where bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The unit.
    pub unit: WeightUnit,
    /// Index in `UnitMap::tensors`.
    pub tensor: usize,
    /// Offset in the tensor; a multiple of 4.
    pub offset: u64,
}

impl Job {
    /// Where its bytes belong.
    pub fn place(&self) -> Place {
        Place { unit: self.unit.unit, tensor: self.tensor, offset: self.tensor_offset }
    }

    /// Where the source has its bytes.
    pub fn range(&self) -> FileRange {
        FileRange { file: self.file, offset: self.offset, len: self.len }
    }

    /// One past its last byte in the blob.
    pub fn end_in_blob(&self) -> u64 {
        self.blob_offset + self.len
    }

    /// How many of its bytes are in the cache.
    pub fn stored(&self) -> u64 {
        self.blob.stored().saturating_sub(self.blob_offset).min(self.len)
    }
}

/// A unit that is being loaded.
pub struct PendingUnit {
    /// The unit.
    pub unit: WeightUnit,
    jobs_left: Cell<usize>,
}

impl PendingUnit {
    /// A job of the unit is done; true if it was the last.
    pub fn job_done(&self) -> bool {
        self.jobs_left.set(self.jobs_left.get().saturating_sub(1));
        self.jobs_left.get() == 0
    }
}

/// Splits units into those with every tensor on the GPU already, and the others. The only tensor of an embedding may be the
/// table that a tied LM head loaded before; then no job would ever complete the embedding.
pub fn split_resident(
    missing: Vec<WeightUnit>,
    units: &UnitMap,
    needs: impl Fn(WeightUnit, usize) -> bool,
) -> (Vec<WeightUnit>, Vec<WeightUnit>) {
    let is_resident = |unit: &WeightUnit| (0..units.tensors(*unit).len()).all(|tensor| !needs(*unit, tensor));
    missing.into_iter().partition(is_resident)
}

/// Cuts units, in the given order, into jobs of at most `max_bytes` bytes (a multiple of 4). `stored` returns the length of a
/// blob in the cache, `needs` whether a tensor is not on the GPU yet. A tensor that two of the units share is loaded once.
pub fn cut(
    wanted: &[WeightUnit],
    units: &UnitMap,
    max_bytes: u64,
    stored: impl Fn(WeightUnit) -> Option<u64>,
    needs: impl Fn(WeightUnit, usize) -> bool,
) -> Vec<Job> {
    let mut blobs: BTreeMap<WeightUnit, Rc<CachedBlob>> = BTreeMap::new();
    let mut jobs = Vec::new();
    for &unit in wanted {
        let pending = Rc::new(PendingUnit { unit, jobs_left: Cell::new(0) });
        for TensorLocation { tensor, blob, offset } in tensor_locations(units, unit) {
            let loaded_with_its_owner = blob != unit && wanted.contains(&blob);
            if loaded_with_its_owner || !needs(unit, tensor) {
                continue;
            }
            let new = || Rc::new(CachedBlob::new(blob, blob_bytes(units, blob), stored(blob)));
            let blob = blobs.entry(blob).or_insert_with(new);
            let range = units.tensors(unit)[tensor].range;
            let mut tensor_offset = 0;
            while tensor_offset < range.len {
                let len = max_bytes.min(range.len - tensor_offset);
                jobs.push(Job {
                    unit: pending.clone(),
                    blob: blob.clone(),
                    tensor,
                    file: range.file,
                    offset: range.offset + tensor_offset,
                    tensor_offset,
                    blob_offset: offset + tensor_offset,
                    len,
                });
                tensor_offset += len;
                pending.jobs_left.set(pending.jobs_left.get() + 1);
                blob.add_job();
            }
        }
    }
    jobs
}

/// Sorts jobs by their position in the file and joins adjacent ones into runs of up to `max_bytes` bytes: the matrices of
/// experts are a job each, and every read has a fixed cost. Only for units that are not cached: a blob's bytes must come in
/// the order of the blob.
pub fn runs(mut jobs: Vec<Job>, max_bytes: u64) -> Vec<Vec<Job>> {
    jobs.sort_by_key(|job| (job.file, job.offset));
    let mut runs: Vec<Vec<Job>> = Vec::new();
    for job in jobs {
        let fits = |run: &&mut Vec<Job>| {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
            let follows = (last.file, last.offset + last.len) == (job.file, job.offset);
            follows && job.offset + job.len - first.offset <= max_bytes
        };
        match runs.last_mut().filter(fits) {
            Some(run) => run.push(job),
            None => runs.push(vec![job]),
        }
    }
    runs
}
