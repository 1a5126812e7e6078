//! The settings drawer.

mod about;
mod access;
mod answers;
mod appearance;
mod connections;
mod device;
mod diagnostics;
mod drawer;
mod storage;

pub use drawer::SettingsDrawer;
