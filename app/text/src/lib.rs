//! Texts for people, by language. Plain functions of the panel's types, no I/O.
//!
//! Code passes reasons and states as enums; their wording is in a [`Texts`] table, one for each language. Page and terminal
//! read the same table, so one event never has two sentences. `areas` says how a text is written down.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[macro_use]
mod table;

mod areas;
mod decision;
mod door_log;
mod english;
mod language;
mod layer_checks;
mod message;
mod own_words;
mod pattern;
mod progress;
mod value;
mod visible;

pub use areas::*;
pub use decision::{
    PlanCompared, arithmetic_reason, decision, device_decision, plan_decision, plans_compared, standby_decision,
    what_would_change,
};
pub use door_log::{log_line, log_text, utc};
pub use language::{Language, sentences};
pub use layer_checks::layer_checks;
pub use message::Message;
pub use progress::{loading_line, seconds_left};
pub use value::{
    Argument, Bytes, Count, Millis, Number, Pace, Parameters, Rate, Rounded, Tenths, Text, bytes, count, duration_ms,
    parameters, percent, rate, tokens_per_second,
};
pub use visible::{Lines, strangers_title, visible, visible_json, visible_letter};

/// The table in use. There is one language today.
#[must_use]
pub const fn texts() -> &'static Texts {
    &ENGLISH
}

/// English.
static ENGLISH: Texts = Texts::ENGLISH;
