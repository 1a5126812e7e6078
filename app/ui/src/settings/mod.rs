//! The settings drawer.

mod about;
mod access;
mod answer_fields;
mod answers;
mod appearance;
mod connections;
mod device;
mod diagnostics;
mod drawer;
mod storage;

pub use answer_fields::{AnswerFields, AnswersOf};
pub use drawer::SettingsDrawer;
