//! The wgpu engine: runs parts of a model on one GPU, natively (Vulkan) or in a browser worker (WebGPU).
//!
//! It knows neither peers nor files. Callers hand in weights through mapped staging buffers and work as
//! [`potluck_plan::Work`]; the engine returns results as [`potluck_plan::Computed`].
//!
//! The crate has two halves:
//!
//! - `runtime` is everything an answer needs: capabilities, memory layout, pipelines, encoding, submits and readback.
//! - `lab` tests, tunes and measures the runtime: the self-test, the tuner, microbenchmarks, the benchmark and a CPU
//!   reference of the whole model.
//!
//! `lab` may use anything in `runtime`, but `runtime` never uses `lab` (a test enforces this), so answers do not depend
//! on it. They are modules rather than crates because the lab encodes, binds and times the runtime's own programs; a
//! crate boundary would make those internals public.
#![deny(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod lab;
mod runtime;

#[cfg(not(target_arch = "wasm32"))]
pub use lab::rates::DispatchTime;
#[cfg(not(target_arch = "wasm32"))]
pub use lab::reference;
pub use lab::{
    bench,
    products::ProductSize,
    selftest::{KernelVerdict, Verdict},
};
pub use potluck_plan::PooledExperts;
pub use runtime::engine::Engine;
pub use runtime::error::{EngineError, GpuError, LayoutError};
pub use runtime::gpu::{AdapterKind, Capabilities, Gpu, GpuOptions, Tier};
pub use runtime::kv_sizes::{binding_limit, kv_cache_bytes_per_position, largest_kv_cache_buffer};
pub use runtime::layout::{Layout, PlannedBuffer, Purpose};
pub use runtime::layout_plan::fixed_overhead;
pub use runtime::settings::Settings;
pub use runtime::slots::{Eviction, Keep, SlotError, SlotLoad};
pub use runtime::staging::{Piece, Staging};
pub use runtime::staging_part::StagingPart;
pub use runtime::tuning_table as tuning;
pub use runtime::turns::GiveWay;
