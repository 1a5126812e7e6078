//! The bench: how fast this device reads and writes with a model, measured.

mod chart;
mod form;
mod kernels;
mod page;
mod results;
mod settings;

pub use page::BenchPage;
