//! The wgpu engine: capabilities, memory layout, pipelines and steps as tickets.
//!
//! The same code runs natively (Vulkan) and in a browser's worker (WebGPU). It knows neither peers nor files: weights are
//! handed in through mapped staging buffers, work comes as [`potluck_plan::Work`], results leave as
//! [`potluck_plan::Computed`].
#![forbid(unsafe_code)]

pub mod bench;
mod chosen;
mod clock;
mod core;
mod encode;
mod engine;
mod error;
mod gpu;
mod in_use;
mod layout;
mod measure;
mod memory;
mod notify;
#[cfg(any(target_arch = "wasm32", test))]
mod nudge;
mod pieces;
mod pipelines;
mod placement;
mod prepare;
mod probe;
mod readback;
mod ready;
mod recorder;
#[cfg(not(target_arch = "wasm32"))]
pub mod reference;
mod run;
mod selftest;
mod settings;
mod sizes;
mod staging;
mod state;
mod subgroups;
mod submit;
mod tensors;
pub mod tuning;
mod usage;
mod warm;

pub use engine::Engine;
pub use error::{EngineError, GpuError, LayoutError};
pub use gpu::{AdapterKind, Capabilities, Gpu, GpuOptions, Tier};
pub use layout::{
    Layout, PlannedBuffer, Purpose, binding_limit, fixed_overhead, kv_cache_bytes_per_position, largest_kv_cache_buffer,
};
#[cfg(not(target_arch = "wasm32"))]
pub use measure::DispatchTime;
pub use selftest::{KernelVerdict, Verdict};
pub use settings::Settings;
pub use staging::{Piece, Staging};
