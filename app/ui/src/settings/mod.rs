//! The settings drawer.

mod about;
mod answers;
mod appearance;
mod device;
mod drawer;
mod storage;

pub use drawer::SettingsDrawer;
