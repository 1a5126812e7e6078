//! The packs that are open in this worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use futures::lock::Mutex;
use potluck_plan::ModelId;
use wasm_bindgen::JsValue;

use super::super::open_file::{self, Mode, OpenFile};
use super::super::time::WorkerClock;
use crate::pack::Pack;
use crate::platform::Clock;

/// Milliseconds for which an unused pack stays open. Opening and closing each block this worker for a few, and a load returns
/// to a pack again and again.
const IDLE_MILLIS: f64 = 250.0;

/// A pack that is open, being opened, or neither.
type Entry = Rc<Mutex<Option<Rc<OpenFile>>>>;

/// A cache of open packs. Cheap to clone.
#[derive(Clone, Default)]
pub struct OpenFileCache(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    packs: HashMap<(ModelId, Pack), Entry>,
    /// A task closes unused packs.
    closing: bool,
}

impl State {
    /// A pack that nobody reads.
    fn unused(&self) -> Option<(ModelId, Pack)> {
        let in_use = |entry: &Entry| {
            // A task that opens the pack holds the entry as well.
            Rc::strong_count(entry) > 1
                || entry.try_lock().is_none_or(|file| file.as_ref().is_some_and(|file| Rc::strong_count(file) > 1))
        };
        self.packs.iter().find(|(_, entry)| !in_use(entry)).map(|(key, _)| *key)
    }
}

impl OpenFileCache {
    /// The pack, opened once for all its readers.
    ///
    /// # Errors
    /// The browser's exception.
    pub async fn open(&self, model: ModelId, pack: Pack) -> Result<Rc<OpenFile>, JsValue> {
        let entry = self.0.borrow_mut().packs.entry((model, pack)).or_default().clone();
        let mut open = entry.lock().await;
        if let Some(file) = open.as_ref() {
            return Ok(file.clone());
        }
        let file = Rc::new(open_file::open(model, pack.to_string(), Mode::Shared { create: false }).await?);
        if !std::mem::replace(&mut self.0.borrow_mut().closing, true) {
            wasm_bindgen_futures::spawn_local(self.clone().close_idle());
        }
        *open = Some(file.clone());
        Ok(file)
    }

    /// Closes every pack that nobody reads: an open file cannot be deleted.
    pub fn close_unused(&self) {
        let mut state = self.0.borrow_mut();
        while let Some(key) = state.unused() {
            state.packs.remove(&key);
        }
    }

    /// Closes unused packs, one at a time, until none is open.
    async fn close_idle(self) {
        loop {
            WorkerClock.sleep(IDLE_MILLIS).await;
            let unused = self.0.borrow().unused();
            if let Some(key) = unused {
                let entry = self.0.borrow_mut().packs.remove(&key);
                // Closes the file, after the borrow has ended.
                drop(entry);
            }
            let mut state = self.0.borrow_mut();
            if state.packs.is_empty() {
                state.closing = false;
                return;
            }
        }
    }
}
