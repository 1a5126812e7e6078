//! Web Locks: agreements between the tabs of one profile.

use std::cell::RefCell;
use std::rc::Rc;

use futures::channel::oneshot;
use js_sys::{Function, Object, Promise};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};

use super::js;

/// Holds a Web Lock until it is dropped (or its context ends).
pub struct WebLock {
    release: Function,
}

impl Drop for WebLock {
    fn drop(&mut self) {
        // Resolving a promise does not throw.
        let _ = self.release.call0(&JsValue::UNDEFINED);
    }
}

/// How to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Wait for it.
    Wait,
    /// Give up if somebody has it.
    IfAvailable,
}

/// Asks for a lock; `None` if somebody has it and [`Ask::IfAvailable`] was said.
///
/// # Errors
/// This browser has no locks here.
pub async fn request(navigator: &JsValue, name: &str, ask: Ask) -> Result<Option<WebLock>, JsValue> {
    let mut release = None;
    let held = Promise::new(&mut |resolve, _| release = Some(resolve));
    let release: Function = release.ok_or(JsValue::UNDEFINED)?.unchecked_into();
    let (sender, granted) = oneshot::channel();
    let sender = Rc::new(RefCell::new(Some(sender)));
    let granted_with = release.clone();
    // Once called it frees itself; a request that is never granted is freed with its context.
    let callback = Closure::once_into_js(move |lock: JsValue| -> Promise {
        let got = !lock.is_null();
        let told = sender.borrow_mut().take().map(|sender| sender.send(got));
        if told != Some(Ok(())) || !got {
            // Nobody waits any more: the lock goes on at once.
            let _ = granted_with.call0(&JsValue::UNDEFINED);
        }
        held
    });
    let options = Object::new();
    js::set(&options, "ifAvailable", &(ask == Ask::IfAvailable).into());
    let manager = js::get(navigator, "locks");
    js::call(&manager, "request", &[&name.into(), &options, &callback])?;
    match granted.await {
        Ok(true) => Ok(Some(WebLock { release })),
        Ok(false) => Ok(None),
        Err(_) => Err(JsValue::from_str("the lock was never answered")),
    }
}
