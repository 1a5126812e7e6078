//! Small helpers for JavaScript values.

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::DedicatedWorkerGlobalScope;

/// The worker this code runs in. Not valid in a page, so only workers may call it.
pub fn worker() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

/// A property; undefined if there is none.
pub fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

/// Sets a property of a plain object.
pub fn set(object: &JsValue, name: &str, value: &JsValue) {
    // Setting a property of a plain object cannot fail.
    let _ = Reflect::set(object, &name.into(), value);
}

/// Calls a method that `web-sys` lacks or has only as unstable.
///
/// # Errors
/// There is no such method, or it threw.
pub fn call(object: &JsValue, name: &str, arguments: &[&JsValue]) -> Result<JsValue, JsValue> {
    let method = get(object, name).dyn_into::<Function>().map_err(|_| {
        let error = js_sys::Error::new(&format!("this browser has no {name} here"));
        error.set_name("NotSupportedError");
        JsValue::from(error)
    })?;
    let list: Array = arguments.iter().copied().collect();
    method.apply(object, &list)
}

/// Awaits a promise; returns any other value as it is.
///
/// # Errors
/// The promise was rejected.
pub async fn await_promise(value: JsValue) -> Result<JsValue, JsValue> {
    match value.dyn_into::<Promise>() {
        Ok(promise) => JsFuture::from(promise).await,
        Err(value) => Ok(value),
    }
}

/// The name of an exception: `QuotaExceededError`.
pub fn error_name(error: &JsValue) -> String {
    get(error, "name").as_string().unwrap_or_default()
}

/// The message of an exception.
pub fn error_text(error: &JsValue) -> String {
    let message = get(error, "message").as_string().filter(|message| !message.is_empty());
    message.or_else(|| error.as_string()).unwrap_or_else(|| error_name(error))
}
