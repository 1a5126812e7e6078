//! Writes the packs of units and their journal ([`crate::pack`]) in the storage worker.
//!
//! Files stay open for a moment after each use. Writers, in all tabs of the profile, hold a lock meanwhile.

use std::collections::HashMap;
use std::rc::Rc;

use futures::lock::Mutex;
use js_sys::Uint8Array;
use potluck_plan::{BlockIndex, ModelId, WeightUnit};
use wasm_bindgen::JsValue;

use super::locks::{self, LockRequest, WebLock};
use super::open_file::{self, Mode, OpenFile};
use super::opfs::{self, Entry, store_error};
use super::time::WorkerClock;
use super::{js, random};
use crate::blob::BlobName;
use crate::pack::{Index, JOURNAL, Pack, Record};
use crate::platform::{Clock, StoreError};

/// Milliseconds after which unused files are closed: an open file cannot be deleted.
const IDLE_MILLIS: f64 = 300.0;
/// Maximum number of open packs.
const MAX_OPEN: usize = 8;

/// The open files of the model that was used last.
#[derive(Default)]
pub struct Packs {
    open: Option<Open>,
    /// When it was used, in milliseconds.
    used: f64,
    closing: bool,
}

struct Open {
    model: ModelId,
    index: Index,
    journal: OpenFile,
    packs: HashMap<Option<BlockIndex>, OpenFile>,
}

impl Packs {
    /// Appends bytes to a unit that has `offset` bytes.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn append(
        &mut self,
        model: ModelId,
        unit: WeightUnit,
        offset: u64,
        bytes: &Uint8Array,
    ) -> Result<(), StoreError> {
        let _lock = lock(model).await;
        let open = self.open(model, true).await?.ok_or_else(nothing)?;
        let len = open.index.len(unit);
        if len != offset {
            return Err(StoreError::Failed(format!("a unit has {len} bytes, {offset} were expected")));
        }
        if open.index.generation().is_none() {
            tidy(model, None).await?;
            let mut generation = [0; 4];
            random(&mut generation);
            open.note(&[Record::Begin { generation: u32::from_le_bytes(generation) }])?;
        }
        let size = open.pack(unit, true).await?.size()?;
        let lost: Vec<Record> = open.index.cut_off(unit.block(), size).into_iter().map(Record::Dropped).collect();
        let was_here = lost.contains(&Record::Dropped(unit));
        open.note(&lost)?;
        if was_here {
            return Err(StoreError::ShortRead);
        }
        let (room, end) = (open.index.room(unit, u64::from(bytes.length())), open.index.end(unit));
        let pack = open.pack(unit, true).await?;
        let mut from = 0;
        for extent in &room {
            let to = from + extent.len as u32;
            let part = bytes.subarray(from, to);
            if extent.offset < end {
                pack.write(extent.offset, &part)?
            } else {
                pack.append(extent.offset, &part)?
            }
            from = to;
        }
        let records: Vec<Record> = room.into_iter().map(|extent| Record::Grown(unit, extent)).collect();
        let noted = open.note(&records);
        if noted.is_err() {
            open.pack(unit, true).await?.cut(end);
        }
        noted
    }

    /// Drops the stored bytes of a unit.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn forget(&mut self, model: ModelId, unit: WeightUnit) -> Result<(), StoreError> {
        let _lock = lock(model).await;
        match self.open(model, false).await? {
            Some(open) if open.index.len(unit) > 0 => open.note(&[Record::Dropped(unit)]),
            _ => Ok(()),
        }
    }

    /// Reads bytes of a unit.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn read(
        &mut self,
        model: ModelId,
        unit: WeightUnit,
        offset: u64,
        into: &Uint8Array,
    ) -> Result<(), StoreError> {
        let open = self.open(model, false).await?.ok_or(StoreError::ShortRead)?;
        let len = u64::from(into.length());
        let extents = open.index.extents(unit, offset, len).ok_or(StoreError::ShortRead)?;
        open.pack(unit, false).await?.gather(&extents, into)
    }

    /// The bytes of a model's journal after the first `known` bytes, if it has the given generation, otherwise all; with the
    /// offset of the first. Empty if there is no journal.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn journal(
        &mut self,
        model: ModelId,
        generation: Option<u32>,
        known: u64,
    ) -> Result<(u64, Vec<u8>), StoreError> {
        let Some(open) = self.open(model, false).await? else { return Ok((0, Vec::new())) };
        let known = if generation == open.index.generation() { known.min(open.index.next()) } else { 0 };
        let mut bytes = open.journal.rest(known)?;
        bytes.truncate((open.index.next() - known) as usize);
        Ok((known, bytes))
    }

    /// Closes everything.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// The model's files with its current journal; `None` if there is no journal and none is to be created.
    async fn open(&mut self, model: ModelId, create: bool) -> Result<Option<&mut Open>, StoreError> {
        self.used = WorkerClock.now().0;
        if self.open.as_ref().is_none_or(|open| open.model != model) {
            self.open = None;
            let journal = match open_file::open(model, JOURNAL.to_owned(), Mode::Shared { create }).await {
                Ok(journal) => journal,
                Err(error) if opfs::is_missing(&error) => return Ok(None),
                Err(error) => return Err(store_error(&error)),
            };
            self.open = Some(Open { model, index: Index::default(), journal, packs: HashMap::new() });
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        let news = open.journal.rest(open.index.next())?;
        open.index.read(&news);
        Ok(Some(open))
    }
}

impl Open {
    /// Appends records to the journal.
    fn note(&mut self, records: &[Record]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let bytes: Vec<u8> = records.iter().flat_map(|record| record.to_bytes()).collect();
        self.journal.append(self.index.next(), &Uint8Array::from(bytes.as_slice()))?;
        records.iter().for_each(|record| self.index.add(*record));
        Ok(())
    }

    /// The pack of a unit.
    async fn pack(&mut self, unit: WeightUnit, create: bool) -> Result<&OpenFile, StoreError> {
        let block = unit.block();
        if !self.packs.contains_key(&block) {
            if self.packs.len() >= MAX_OPEN {
                self.packs.clear();
            }
            let generation = self.index.generation().ok_or_else(nothing)?;
            let name = Pack::of(unit, generation).to_string();
            let file = open_file::open(self.model, name, Mode::Shared { create }).await;
            self.packs.insert(block, file.map_err(|error| store_error(&error))?);
        }
        self.packs.get(&block).ok_or_else(nothing)
    }
}

/// Closes the open files once they were not used for a while.
pub fn close_when_idle(packs: &Rc<Mutex<Packs>>, open: &mut Packs) {
    if open.open.is_none() || std::mem::replace(&mut open.closing, true) {
        return;
    }
    let packs = packs.clone();
    wasm_bindgen_futures::spawn_local(async move {
        loop {
            WorkerClock.sleep(IDLE_MILLIS).await;
            let mut packs = packs.lock().await;
            if WorkerClock.now().0 - packs.used >= IDLE_MILLIS {
                packs.close();
            }
            if packs.open.is_none() {
                packs.closing = false;
                return;
            }
        }
    });
}

/// The lock for writers of a model's packs. Browsers without locks do not share files either.
pub async fn lock(model: ModelId) -> Option<WebLock> {
    let navigator: JsValue = js::worker().navigator().into();
    match locks::request(&navigator, &format!("potluck-packs-{model}"), LockRequest::Wait).await {
        Ok(lock) => lock,
        Err(error) => {
            log::info!("no lock: {}", js::error_text(&error));
            None
        }
    }
}

/// Lists the files of a model. Deletes packs of other generations, and units in files of their own, which an earlier version
/// wrote. The caller must hold the model's lock.
///
/// # Errors
/// The storage failed.
pub async fn tidy(model: ModelId, generation: Option<u32>) -> Result<Vec<Entry>, StoreError> {
    let mut known = Vec::new();
    for entry in opfs::list(model).await.map_err(|error| store_error(&error))? {
        let old = match (BlobName::parse(&entry.name), Pack::parse(&entry.name)) {
            (Some(BlobName::Unit(_)), _) => true,
            (None, Some(pack)) => Some(pack.generation) != generation,
            _ => false,
        };
        if !old {
            known.push(entry);
        } else if let Err(error) = opfs::delete(model, &entry.name).await {
            log::info!("\"{}\" remains in the storage: {}", entry.name, js::error_text(&error));
        }
    }
    Ok(known)
}

fn nothing() -> StoreError {
    StoreError::Failed("the journal of the stored units is gone".to_owned())
}
