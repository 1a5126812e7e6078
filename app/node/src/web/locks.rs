//! Web Locks: mutual exclusion between the tabs of one profile.

use std::pin::pin;

use futures::channel::oneshot;
use futures::future::{Either, select};
use js_sys::{Array, Function, Object, Promise};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};

use super::js;

/// Holds a Web Lock until it is dropped or its context ends.
pub struct WebLock {
    release: Function,
}

impl Drop for WebLock {
    fn drop(&mut self) {
        // Resolving a promise does not throw.
        let _ = self.release.call0(&JsValue::UNDEFINED);
    }
}

/// How to request a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRequest {
    /// Wait until it is free.
    Wait,
    /// Give up if it is taken.
    IfAvailable,
}

/// Requests a lock; `None` if it is taken and the request is [`LockRequest::IfAvailable`].
///
/// # Errors
/// This browser has no Web Locks, or denies them: to a site that may not store data.
pub async fn request(navigator: &JsValue, name: &str, ask: LockRequest) -> Result<Option<WebLock>, JsValue> {
    let mut release = None;
    let held = Promise::new(&mut |resolve, _| release = Some(resolve));
    let lock = WebLock { release: release.ok_or(JsValue::UNDEFINED)?.unchecked_into() };
    let (sender, granted) = oneshot::channel();
    // The lock itself goes through the channel. If the receiver is dropped, even after the lock was sent (its load was
    // replaced), the lock is released with the message.
    // The callback frees itself once called; that of a request that is never granted is freed with its context.
    let callback = Closure::once_into_js(move |granted: JsValue| -> Promise {
        // If nobody waits any more, the error contains the lock, which is then released.
        let _ = sender.send((!granted.is_null()).then_some(lock));
        held
    });
    let options = Object::new();
    js::set(&options, "ifAvailable", &(ask == LockRequest::IfAvailable).into());
    let manager = js::get(navigator, "locks");
    // It resolves when the lock is released; before the lock is granted it can only be rejected.
    let released = js::await_promise(js::call(&manager, "request", &[&name.into(), &options, &callback])?);
    let never = || JsValue::from_str("the lock was never answered");
    match select(granted, pin!(released)).await {
        Either::Left((granted, _)) => granted.map_err(|_| never()),
        Either::Right((rejected, _)) => Err(rejected.err().unwrap_or_else(never)),
    }
}

/// True if somebody waits for a lock.
///
/// # Errors
/// This browser cannot say.
pub async fn is_awaited(navigator: &JsValue, name: &str) -> Result<bool, JsValue> {
    Ok(names(navigator, "pending").await?.iter().any(|pending| pending == name))
}

/// The names of all locks that somebody holds.
///
/// # Errors
/// This browser cannot say.
pub async fn held(navigator: &JsValue) -> Result<Vec<String>, JsValue> {
    names(navigator, "held").await
}

async fn names(navigator: &JsValue, state: &str) -> Result<Vec<String>, JsValue> {
    let manager = js::get(navigator, "locks");
    let snapshot = js::await_promise(js::call(&manager, "query", &[])?).await?;
    let locks: Array = js::get(&snapshot, state).dyn_into()?;
    Ok(locks.iter().filter_map(|lock| js::get(&lock, "name").as_string()).collect())
}
