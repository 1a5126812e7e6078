//! Chooses a model and opens a room.

pub(crate) mod catalog;
pub(crate) mod choice;
mod from_device;
mod from_link;
mod from_relay;
mod guesser;
mod link_request;
mod open;
mod options;
mod picker;
mod pooling;
mod repository;
mod verdict;
mod verdict_view;

pub use picker::HostPicker;
