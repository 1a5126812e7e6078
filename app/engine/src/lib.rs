//! The wgpu engine: runs a model's parts on one GPU, natively (Vulkan) and in a browser's worker (WebGPU).
//!
//! It knows neither peers nor files: weights are handed in through mapped staging buffers, work comes as
//! [`potluck_plan::Work`], results leave as [`potluck_plan::Computed`].
//!
//! The crate has two halves:
//!
//! - `runtime` is all that an answer needs: capabilities, memory layout, pipelines, encoding, submits, readback.
//! - `lab` tests, tunes and measures the runtime: the self-test, the tuner, microbenchmarks, the benchmark and the CPU
//!   reference of a whole model.
//!
//! `lab` may use anything in `runtime`; `runtime` never uses `lab` (a test checks it), so an answer runs the same with
//! or without it. They are modules and not crates because the lab encodes, binds and times the runtime's own programs:
//! a crate boundary would make those internals public.
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod lab;
mod runtime;

#[cfg(not(target_arch = "wasm32"))]
pub use lab::rates::DispatchTime;
#[cfg(not(target_arch = "wasm32"))]
pub use lab::reference;
pub use lab::{
    bench,
    selftest::{KernelVerdict, Verdict},
};
pub use runtime::engine::Engine;
pub use runtime::error::{EngineError, GpuError, LayoutError};
pub use runtime::gpu::{AdapterKind, Capabilities, Gpu, GpuOptions, Tier};
pub use runtime::layout::{
    Layout, PlannedBuffer, Purpose, binding_limit, fixed_overhead, kv_cache_bytes_per_position, largest_kv_cache_buffer,
};
pub use runtime::settings::Settings;
pub use runtime::staging::{Piece, Staging};
pub use runtime::tuning_table as tuning;
