//! What this device can do, and whether it computes rightly.

use serde::{Deserialize, Serialize};

/// What this device can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// WebGPU works here; otherwise `trouble` says why not.
    pub webgpu: bool,
    /// Vendor and name as the adapter tells.
    pub adapter: String,
    /// 16-bit floats.
    pub shader_f16: bool,
    /// Subgroups.
    pub subgroups: bool,
    /// Largest storage binding.
    pub max_binding: u64,
    /// Largest buffer.
    pub max_buffer: u64,
    /// A software adapter: slow.
    pub software: bool,
    /// Bytes a second a kernel streams, measured; 0 before.
    pub bandwidth: f64,
    /// Milliseconds of a submit with its readback, measured; 0 before.
    pub sync_ms: f64,
    /// The self-test of the kernels in use.
    pub self_test: SelfTest,
    /// Why WebGPU does not work, and how to turn it on.
    pub trouble: Option<String>,
}

/// The self-test of the kernels in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// How it ended.
    pub state: SelfTestState,
    /// Kernels tested.
    pub tested: u32,
    /// Names of kernels that computed wrongly and were replaced by slower ones.
    pub replaced: Vec<String>,
    /// Names of kernels that compute wrongly with no replacement.
    pub failed: Vec<String>,
}

/// How a self-test ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelfTestState {
    /// Not run yet.
    #[default]
    NotRun,
    /// Runs now.
    Running,
    /// Every kernel is right.
    Passed,
    /// Some kernels were replaced.
    Replaced,
    /// This device computes wrongly and must not take part.
    Failed,
}
