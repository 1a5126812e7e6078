//! The screen wake lock. The browser releases it when the tab is hidden, so it is requested again when the tab is shown.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::JsValue;

use super::{js, navigator};

/// Whether the screen should stay on, and the lock if there is one. Cheap to clone.
#[derive(Clone, Default)]
pub struct WakeLock(Rc<State>);

#[derive(Default)]
struct State {
    wanted: Cell<bool>,
    lock: RefCell<Option<JsValue>>,
}

impl WakeLock {
    /// Keeps the screen on, or lets it sleep.
    pub fn set_wanted(&self, wanted: bool) {
        self.0.wanted.set(wanted);
        if wanted {
            self.take();
        } else if let Some(lock) = self.0.lock.borrow_mut().take() {
            release(&lock);
        }
    }

    /// The tab was shown again.
    pub fn shown(&self) {
        if self.0.wanted.get() {
            self.0.lock.borrow_mut().take();
            self.take();
        }
    }

    fn take(&self) {
        if self.0.lock.borrow().is_some() {
            return;
        }
        let state = self.0.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let manager = js::get(&navigator(), "wakeLock");
            let asked = match js::call(&manager, "request", &[&"screen".into()]) {
                Ok(promise) => js::await_promise(promise).await,
                Err(error) => Err(error),
            };
            match asked {
                Ok(lock) if state.wanted.get() => *state.lock.borrow_mut() = Some(lock),
                Ok(lock) => release(&lock),
                // Low battery, a hidden tab or an old browser: the screen may sleep then.
                Err(error) => log::info!("the screen may go to sleep: {}", js::error_text(&error)),
            }
        });
    }
}

fn release(lock: &JsValue) {
    if let Err(error) = js::call(lock, "release", &[]) {
        log::info!("the screen stays wake_lock: {}", js::error_text(&error));
    }
}
