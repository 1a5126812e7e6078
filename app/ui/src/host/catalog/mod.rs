//! The catalogue: well-known GGUF files, what of them this room can hold, and whether an address still has what is listed.
//!
//! The list is data (`public/catalog.json`, see `docs/catalog.md`). Nothing of a listed file is fetched until a person
//! opens a room with it.

mod check;
pub(crate) mod entry;
mod header;
mod load;
mod offer;
mod own;
mod view;

pub use check::{Doubt, examine};
pub use entry::Entry;
pub use own::OwnLinks;
pub use view::{FILTER, WellKnown};
