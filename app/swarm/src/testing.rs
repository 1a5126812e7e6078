//! For tests of whole rooms, behind the feature `testing`: deliberate bugs, and what a host looks for.

pub use crate::coordinator::Searches;
pub use crate::mutation::{Mutation, set_mutation};

/// Hashes rows of `width` values as stages do for checks.
pub fn hash_rows(rows: &[f32], width: usize) -> potluck_protocol::RowsHash {
    crate::row_hashes::hash_of(rows, width)
}
