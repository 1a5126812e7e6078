//! Drops values without recursion over what can be filled later, and so be chained to any length.

use std::cell::RefCell;

use super::{Namespace, Value};

thread_local! {
    /// What is still to be dropped; `None` if nothing is being dropped.
    static WAITING: RefCell<Option<Vec<Value>>> = const { RefCell::new(None) };
}

/// Drops these values one after another. What their own drops hand over waits its turn, so that a chain takes no stack.
pub(in crate::template::jinja) fn drop_flat(values: impl Iterator<Item = Value>) {
    // Without the queue, at the end of a thread, they are dropped as usual.
    let _ = WAITING.try_with(|waiting| {
        let is_first = {
            let Ok(mut waiting) = waiting.try_borrow_mut() else { return };
            let is_first = waiting.is_none();
            waiting.get_or_insert_default().extend(values);
            is_first
        };
        if !is_first {
            return;
        }
        // Not borrowed while a value is dropped, which hands over what it holds.
        let next = || waiting.borrow_mut().as_mut().and_then(Vec::pop);
        while let Some(value) = next() {
            drop(value);
        }
        *waiting.borrow_mut() = None;
    });
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop_flat(std::mem::take(self.attributes.get_mut()).into_values());
    }
}
