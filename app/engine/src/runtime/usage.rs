//! Who of this program uses an adapter: several devices may have opened it, and work of one is in the way of the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::runtime::gpu::Capabilities;

/// All adapters that were opened, by place and name. There are few, and they stay.
static ADAPTERS: Mutex<BTreeMap<String, Arc<Usage>>> = Mutex::new(BTreeMap::new());

/// Pieces of work under way on an adapter.
#[derive(Debug, Default)]
pub struct Usage(AtomicUsize);

impl Usage {
    /// Of this adapter, whoever opened it.
    pub fn of(capabilities: &Capabilities) -> Arc<Self> {
        let name = format!("{} {}", capabilities.slot, capabilities.name);
        // Nothing that holds the lock can fail.
        ADAPTERS.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone()
    }

    /// A piece of work is under way until the guard goes.
    pub fn begin(self: &Arc<Self>) -> Working {
        self.0.fetch_add(1, Ordering::Relaxed);
        Working(self.clone())
    }

    /// Nobody computes.
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Work under way.
#[derive(Debug)]
pub struct Working(Arc<Usage>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
