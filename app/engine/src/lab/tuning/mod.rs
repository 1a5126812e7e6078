//! Finds the quickest kernel for each shape of the units that are here, and puts it into the
//! [`Tuning`](crate::runtime::tuning_table::Tuning) table.

mod measure;
mod rounds;
