//! Cutting weight units into pieces to fetch, store and upload.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures::lock::Mutex;
use potluck_model::{UnitMap, UnitTensor};
use potluck_plan::{ModelId, WeightUnit};

use crate::blob::{BlobKey, BlobName};
use crate::platform::{BlobReader, BlobStore, LockGuard, Platform, StoreError};

/// A piece of a tensor of a unit.
pub struct Job {
    /// Its unit.
    pub wanted: Rc<Wanted>,
    /// The blob its bytes are in: the unit's own, or that of a unit which it shares the tensor with.
    pub state: Rc<UnitState>,
    /// Index in `UnitMap::tensors`.
    pub tensor: usize,
    /// Which file.
    pub file: u16,
    /// Where in the file.
    pub offset: u64,
    /// Where in the tensor; a multiple of 4.
    pub tensor_offset: u64,
    /// Where in the blob.
    pub blob_offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Job {
    /// One past its last byte in the blob.
    pub fn end_in_blob(&self) -> u64 {
        self.blob_offset + self.len
    }

    /// How many of its bytes are in the cache.
    pub fn stored(&self) -> u64 {
        self.state.stored().saturating_sub(self.blob_offset).min(self.len)
    }

    /// Keeps the part of the job's bytes that continues the blob; none if the blob has them or has a gap before them.
    pub fn keep(&self, bytes: &[u8]) {
        let mut waiting = self.state.waiting.borrow_mut();
        let end = self.state.stored() + self.state.queued.get() + waiting.len() as u64;
        if !self.state.left_out.get() && (self.blob_offset..self.end_in_blob()).contains(&end) {
            waiting.extend_from_slice(&bytes[(end - self.blob_offset) as usize..]);
        }
    }
}

/// A unit that is being loaded.
pub struct Wanted {
    /// Which.
    pub unit: WeightUnit,
    /// Jobs that are not done.
    left: Cell<usize>,
}

impl Wanted {
    /// One of its jobs is done; true if it was the last.
    pub fn done(&self) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        self.left.get() == 0
    }
}

/// The blob of a unit, while it is read or written.
pub struct UnitState {
    /// Whose.
    pub unit: WeightUnit,
    bytes: u64,
    /// Jobs that are not done with it.
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
    /// A blob of `bytes` bytes of which some are in the cache.
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
        // A head that shares the embedding's table comes after it.
        let first = homes(map, *unit).into_iter().map(|home| {
            let range = map.tensors(*unit)[home.tensor].range;
            (home.blob == *unit, range.file, range.offset)
        });
        let first = first.min().map(|(_, file, offset)| (file, offset));
        (first, *unit)
    });
}

/// A tensor of a unit, and the blob that has its bytes.
struct Home {
    /// Index in `UnitMap::tensors`.
    tensor: usize,
    /// Whose blob.
    blob: WeightUnit,
    /// Where in the blob.
    offset: u64,
}

/// Where the tensors of a unit are kept. A tied head's matrix is the embedding table: it lies in the embedding's blob, and
/// comes first, so that blobs are locked in one order by everyone.
fn homes(units: &UnitMap, unit: WeightUnit) -> Vec<Home> {
    let (mut shared, mut own, mut end) = (Vec::new(), Vec::new(), 0);
    for (tensor, info) in units.tensors(unit).iter().enumerate() {
        let table =
            (unit == WeightUnit::LmHead).then(|| offset_in(units.tensors(WeightUnit::Embedding), info)).flatten();
        match table {
            Some(offset) => shared.push(Home { tensor, blob: WeightUnit::Embedding, offset }),
            None => {
                own.push(Home { tensor, blob: unit, offset: end });
                end += info.range.len;
            }
        }
    }
    shared.append(&mut own);
    shared
}

/// Where a tensor lies in the blob of some others, if it is one of them.
fn offset_in(others: &[UnitTensor], tensor: &UnitTensor) -> Option<u64> {
    let index = others.iter().position(|other| other.range == tensor.range)?;
    Some(others[..index].iter().map(|other| other.range.len).sum())
}

/// Bytes of a unit's blob when it is whole.
pub fn blob_bytes(units: &UnitMap, unit: WeightUnit) -> u64 {
    let own = homes(units, unit).into_iter().filter(|home| home.blob == unit);
    own.map(|home| units.tensors(unit)[home.tensor].range.len).sum()
}

/// The blobs in which the bytes of some units are.
pub fn blobs(units: &UnitMap, wanted: impl IntoIterator<Item = WeightUnit>) -> BTreeSet<WeightUnit> {
    wanted.into_iter().flat_map(|unit| homes(units, unit)).map(|home| home.blob).collect()
}

/// The units of which every tensor is on the GPU already, and the others. All that an embedding has may be the table which a
/// tied head brought before: no job would ever end it.
pub fn split(
    missing: Vec<WeightUnit>,
    units: &UnitMap,
    needs: impl Fn(WeightUnit, usize) -> bool,
) -> (Vec<WeightUnit>, Vec<WeightUnit>) {
    let is_here = |unit: &WeightUnit| (0..units.tensors(*unit).len()).all(|tensor| !needs(*unit, tensor));
    missing.into_iter().partition(is_here)
}

/// Cuts units, in their order, into jobs of at most `piece` bytes (a multiple of 4). `stored` tells how long each blob
/// is; `needs` which tensors are not on the GPU yet. A tensor that two of the units share is brought once.
pub fn cut(
    wanted: &[WeightUnit],
    units: &UnitMap,
    piece: u64,
    stored: impl Fn(WeightUnit) -> Option<u64>,
    needs: impl Fn(WeightUnit, usize) -> bool,
) -> Vec<Job> {
    let mut states: BTreeMap<WeightUnit, Rc<UnitState>> = BTreeMap::new();
    let mut jobs = Vec::new();
    for &unit in wanted {
        let goal = Rc::new(Wanted { unit, left: Cell::new(0) });
        for Home { tensor, blob, offset } in homes(units, unit) {
            let comes_with_it = blob != unit && wanted.contains(&blob);
            if comes_with_it || !needs(unit, tensor) {
                continue;
            }
            let new = || Rc::new(UnitState::new(blob, blob_bytes(units, blob), stored(blob)));
            let state = states.entry(blob).or_insert_with(new);
            let range = units.tensors(unit)[tensor].range;
            let mut tensor_offset = 0;
            while tensor_offset < range.len {
                let len = piece.min(range.len - tensor_offset);
                jobs.push(Job {
                    wanted: goal.clone(),
                    state: state.clone(),
                    tensor,
                    file: range.file,
                    offset: range.offset + tensor_offset,
                    tensor_offset,
                    blob_offset: offset + tensor_offset,
                    len,
                });
                tensor_offset += len;
                goal.left.set(goal.left.get() + 1);
                state.left.set(state.left.get() + 1);
            }
        }
    }
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
    use potluck_model::{ModelSpec, TensorRole};

    fn map() -> UnitMap {
        ModelSpec::from_gguf(&join([Synthetic::default().header().unwrap()]).unwrap()).unwrap().1
    }

    /// A head whose matrix is the embedding's table.
    fn tied() -> UnitMap {
        let mut map = map();
        let mut head = map.tensors(WeightUnit::LmHead).to_vec();
        let table = map.tensors(WeightUnit::Embedding)[0].clone();
        let matrix = head.iter_mut().find(|tensor| tensor.role == TensorRole::Output).unwrap();
        *matrix = UnitTensor { role: TensorRole::TokenEmbedding, ..table };
        map.insert(WeightUnit::LmHead, head);
        map
    }

    fn jobs(wanted: &[WeightUnit], map: &UnitMap, stored: Option<u64>) -> Vec<Job> {
        cut(wanted, map, 1000, |_| stored, |_, _| true)
    }

    #[test]
    fn jobs_cover_a_unit_in_order_without_gaps() {
        let map = map();
        for unit in map.units() {
            let jobs = jobs(&[unit], &map, None);
            let mut at = 0;
            for job in &jobs {
                assert_eq!(job.blob_offset, at);
                assert!(job.len > 0 && job.len <= 1000 && job.tensor_offset.is_multiple_of(4));
                at = job.end_in_blob();
            }
            assert_eq!(at, map.bytes(unit).0);
            let ends: Vec<(bool, bool)> = jobs.iter().map(|job| (job.wanted.done(), job.state.done())).collect();
            assert!(ends.iter().rev().skip(1).all(|end| *end == (false, false)) && ends.ends_with(&[(true, true)]));
        }
    }

    #[test]
    fn a_blob_grows_only_from_its_end() {
        let map = map();
        let jobs = jobs(&[map.units().next().unwrap()], &map, Some(1500));
        let state = &jobs[0].state;
        assert_eq!((jobs[0].stored(), jobs[1].stored(), jobs[2].stored()), (1000, 500, 0));
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
        let jobs = jobs(&[map.units().next().unwrap()], &map, None);
        let state = &jobs[0].state;
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
        let all: Vec<WeightUnit> = map.units().collect();
        let jobs = cut(&all, &map, 1 << 20, |_| None, |_, _| true);
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

    #[test]
    fn a_shared_table_is_brought_once_and_kept_in_the_embeddings_blob() {
        let map = tied();
        let both = [WeightUnit::Embedding, WeightUnit::LmHead];
        let table = map.bytes(WeightUnit::Embedding).0;
        let norm = map.bytes(WeightUnit::LmHead).0 - table;
        assert_eq!((blob_bytes(&map, WeightUnit::Embedding), blob_bytes(&map, WeightUnit::LmHead)), (table, norm));
        let bytes = |jobs: &[Job]| jobs.iter().map(|job| job.len).sum::<u64>();
        let stored = |blob| (blob == WeightUnit::Embedding).then_some(table);

        let together = jobs(&both, &map, None);
        assert_eq!(bytes(&together), table + norm);

        let alone = cut(&both[1..], &map, 1000, stored, |_, _| true);
        assert_eq!(bytes(&alone), table + norm, "a last stage needs the table as well");
        assert_eq!(alone.iter().map(Job::stored).sum::<u64>(), table, "and finds it where the first stage put it");
        assert!(alone.iter().all(|job| job.wanted.unit == WeightUnit::LmHead));
        assert_eq!(blobs(&map, [WeightUnit::LmHead]), BTreeSet::from(both));

        let is_norm = |unit, tensor: usize| map.tensors(unit)[tensor].role == TensorRole::OutputNorm;
        let rest = cut(&both[1..], &map, 1000, stored, is_norm);
        assert_eq!(bytes(&rest), norm, "the table is on the GPU already");
        let ends: Vec<bool> = rest.iter().map(|job| job.wanted.done()).collect();
        assert_eq!(ends.last(), Some(&true));
    }

    #[test]
    fn an_embedding_whose_table_the_head_brought_needs_no_job_to_be_complete() {
        let map = tied();
        let both = vec![WeightUnit::Embedding, WeightUnit::LmHead];
        let table_is_here = |unit, tensor: usize| map.tensors(unit)[tensor].role != TensorRole::TokenEmbedding;
        let (here, missing) = split(both.clone(), &map, table_is_here);
        assert_eq!((here.as_slice(), missing.as_slice()), (&both[..1], &both[1..]), "the head's norm is still missing");
        assert!(cut(&here, &map, 1000, |_| None, table_is_here).is_empty());
        assert_eq!(split(both.clone(), &map, |_, _| true), (vec![], both));
    }

    #[test]
    fn a_tied_head_follows_the_embedding_wherever_its_norm_lies() {
        let mut map = tied();
        let mut head = map.tensors(WeightUnit::LmHead).to_vec();
        let norm = head.iter_mut().find(|tensor| tensor.role == TensorRole::OutputNorm).unwrap();
        norm.range.offset = 0;
        map.insert(WeightUnit::LmHead, head);
        let mut units = vec![WeightUnit::LmHead, WeightUnit::Embedding];
        sort_units(&mut units, &map);
        assert_eq!(units, [WeightUnit::Embedding, WeightUnit::LmHead]);
    }
}
