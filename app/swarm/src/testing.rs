//! For tests of whole rooms, behind the feature `testing`: deliberate bugs, and what a host looks for.

pub use crate::coordinator::Searches;
pub use crate::mutation::{Mutation, set_mutation};
