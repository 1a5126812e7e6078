//! Chooses a model and opens a room.

mod choice;
mod from_device;
mod from_link;
mod from_relay;
mod options;
mod picker;
mod verdict;
mod verdict_view;

pub use picker::HostPicker;
