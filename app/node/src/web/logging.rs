//! The browser's console as the log.

use log::{Level, LevelFilter, Log, Metadata, Record};
use wasm_bindgen::JsValue;
use web_sys::console;

struct Console;

impl Log for Console {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("potluck") || metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = JsValue::from_str(&format!("{}: {}", record.target(), record.args()));
        match record.level() {
            Level::Error => console::error_1(&line),
            Level::Warn => console::warn_1(&line),
            Level::Info => console::info_1(&line),
            Level::Debug | Level::Trace => console::debug_1(&line),
        }
    }

    fn flush(&self) {}
}

/// Sends the log and panics to the console. A panic then ends the worker with an error that the page sees.
pub fn start() {
    if log::set_logger(&Console).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
    std::panic::set_hook(Box::new(|info| console::error_1(&JsValue::from_str(&info.to_string()))));
}
