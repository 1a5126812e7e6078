//! Messages between the page and the node worker: `ToNode` and `ToPage` as JavaScript values.

use js_sys::Object;
use serde::{Serialize, de::DeserializeOwned};
use serde_wasm_bindgen::{Error, Serializer};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::File;

use super::js;

/// Numbers of 64 bits travel as `BigInt`s, because JavaScript's own numbers are exact to 2⁵³ only: a seed must stay what it is.
const SERIALIZER: Serializer = Serializer::new().serialize_large_number_types_as_bigints(true);

/// The fields of a message to the worker.
const MESSAGE: &str = "message";
const FILE: &str = "file";

/// A message as a value that can be posted.
///
/// # Errors
/// Messages are plain data, of which every kind can be written.
pub(super) fn to_value(message: &impl Serialize) -> Result<JsValue, Error> {
    message.serialize(&SERIALIZER)
}

/// A message with the file that goes along.
///
/// # Errors
/// See [`to_value`].
pub(super) fn with_file(message: &impl Serialize, file: Option<&File>) -> Result<JsValue, Error> {
    let value = Object::new();
    js::set(&value, MESSAGE, &to_value(message)?);
    if let Some(file) = file {
        js::set(&value, FILE, file);
    }
    Ok(value.into())
}

/// The message that was posted as this value.
///
/// # Errors
/// It comes from another build, whose messages have other fields.
pub(super) fn from_value<T: DeserializeOwned>(value: JsValue) -> Result<T, Error> {
    serde_wasm_bindgen::from_value(value)
}

/// The message that was posted with a file, and the file.
///
/// # Errors
/// See [`from_value`].
pub(super) fn and_file<T: DeserializeOwned>(value: &JsValue) -> Result<(T, Option<File>), Error> {
    Ok((from_value(js::get(value, MESSAGE))?, js::get(value, FILE).dyn_into().ok()))
}
