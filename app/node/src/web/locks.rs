//! Web Locks: agreements between the tabs of one profile.

use futures::channel::oneshot;
use js_sys::{Array, Function, Object, Promise};
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
    let lock = WebLock { release: release.ok_or(JsValue::UNDEFINED)?.unchecked_into() };
    let (sender, granted) = oneshot::channel();
    // The lock itself goes through the channel: a receiver that is dropped, even one that was told already and did not
    // look yet (a load that was replaced), frees it with the message.
    // Once called the callback frees itself; a request that is never granted is freed with its context.
    let callback = Closure::once_into_js(move |granted: JsValue| -> Promise {
        // What nobody waits for comes back in the error, and goes.
        let _ = sender.send((!granted.is_null()).then_some(lock));
        held
    });
    let options = Object::new();
    js::set(&options, "ifAvailable", &(ask == Ask::IfAvailable).into());
    let manager = js::get(navigator, "locks");
    js::call(&manager, "request", &[&name.into(), &options, &callback])?;
    granted.await.map_err(|_| JsValue::from_str("the lock was never answered"))
}

/// Whether somebody waits for a lock.
///
/// # Errors
/// This browser does not tell.
pub async fn is_awaited(navigator: &JsValue, name: &str) -> Result<bool, JsValue> {
    let manager = js::get(navigator, "locks");
    let snapshot = js::settle(js::call(&manager, "query", &[])?).await?;
    let pending: Array = js::get(&snapshot, "pending").dyn_into()?;
    Ok(pending.iter().any(|lock| js::get(&lock, "name").as_string().as_deref() == Some(name)))
}
