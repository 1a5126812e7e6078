//! What the cases of all kernels share.

use potluck_shaders::{Kernel, NO_SLOT, Strategy, params};

use super::{Case, Expected};
use crate::lab::microbench::Probe;

/// Allowed difference between 32-bit and 64-bit sums.
pub(super) const TOLERANCE: f64 = 1e-4;

/// The window that attention is tested with.
pub(super) const WINDOW: u32 = 70;
/// The soft cap that attention is tested with.
pub(super) const CAP: f32 = 2.0;

/// Slots of six experts, two of them not loaded.
pub(super) const SLOTS: [u32; 6] = [2, NO_SLOT, 0, 3, 1, NO_SLOT];

/// A case of one dispatch.
pub(super) fn case<P: params::Params>(
    kernel: Kernel,
    bindings: Vec<Vec<u8>>,
    params: P,
    groups: (u32, u32),
    output: usize,
    expected: Expected,
) -> Case {
    let params = bytemuck::bytes_of(&params).to_vec();
    let (x, z) = groups;
    Case { probe: Probe { kernel, bindings, params, x, y: 1, z, output }, expected }
}

/// Numbers, within the usual tolerance.
pub(super) fn floats(values: Vec<f32>) -> Expected {
    Expected::Floats(values, TOLERANCE)
}

/// Workgroups for kernels that use one thread (per-thread) or one workgroup per row.
pub(super) fn by_row(kernel: Kernel, strategy: Strategy, rows: u32) -> (u32, u32) {
    if strategy == Strategy::Workgroup { (rows, 1) } else { (rows.div_ceil(kernel.threads()), 1) }
}
