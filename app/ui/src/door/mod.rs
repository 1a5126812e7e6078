//! The door: host a model, contribute, or enter by a link.

mod device_line;

mod join;
mod own_rooms;
mod page;
mod picture;
mod room_list;
mod room_picker;

pub use page::{BackToTable, Door};
pub use room_picker::RoomPicker;
