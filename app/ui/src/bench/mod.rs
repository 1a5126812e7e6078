//! The bench: measures this device's prefill and decode speed with a model.

mod chart;
mod form;
mod kernels;
mod page;
mod results;
mod settings;

pub use page::BenchPage;
