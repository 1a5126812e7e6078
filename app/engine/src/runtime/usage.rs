//! Tracks this program's use of each adapter: several devices may share an adapter, and their work competes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// All opened adapters by slot and name. There are few, so entries are never removed.
static ADAPTERS: Mutex<BTreeMap<String, Arc<Usage>>> = Mutex::new(BTreeMap::new());

/// Pieces of work in flight on an adapter.
#[derive(Debug, Default)]
pub struct Usage(AtomicUsize);

impl Usage {
    /// The usage of the adapter with this slot and name, shared by everyone who opened it.
    pub fn of(adapter: String) -> Arc<Self> {
        // No holder of the lock can panic.
        ADAPTERS.lock().unwrap_or_else(PoisonError::into_inner).entry(adapter).or_default().clone()
    }

    /// Marks a piece of work as in flight until the guard is dropped.
    pub fn begin(self: &Arc<Self>) -> Working {
        self.0.fetch_add(1, Ordering::Relaxed);
        Working(self.clone())
    }

    /// True if no work is in flight.
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Guard of a piece of work in flight.
#[derive(Debug)]
pub struct Working(Arc<Usage>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
