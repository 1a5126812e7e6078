//! Finds the fastest kernel for each shape of the loaded units and stores it in the
//! [`Tuning`](crate::runtime::tuning_table::Tuning) table.

mod measure;
mod rounds;
