//! Loads weight units to the GPU: from the cache, else from the source into the cache, through the staging buffers.
//!
//! A load is one ordered list of jobs, each a piece of a tensor. Jobs are fetched ahead, in parallel and across units (experts
//! are small), but they are stored and uploaded in order: a blob grows from the front, so an interrupted download resumes
//! where it stopped.

mod cache_writes;
mod cached_blob;
mod download;
mod error;
mod experts;
mod jobs;
mod layout;
mod load;
mod origin;
mod pipeline;
mod progress;
mod rates;
mod requantizer;
mod soundness;
mod stored_copy;
#[cfg(test)]
mod tests;
mod tuner;
mod uploader;

pub use download::Download;
pub use error::LoadError;
pub use experts::{ExpertLoader, LoadedExperts};
pub(crate) use layout::weight_bytes;
pub use load::Load;
pub use progress::{Progress, Rate};
pub use rates::LoadRates;
pub use tuner::Tuner;
