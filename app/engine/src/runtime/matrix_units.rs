//! Matrix units (cooperative matrices): whether an adapter has those that the kernels need. Natively only; wgpu marks them
//! as experimental.

use potluck_shaders::MatrixTile;

/// The features that the kernels need.
pub const FEATURES: wgpu::Features =
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SHADER_F16).union(wgpu::Features::SUBGROUP);

/// Whether the adapter multiplies matrices of 16 × 16 half floats and sums them as 32-bit floats in subgroups of 32.
pub fn offered(adapter: &wgpu::Adapter) -> bool {
    use wgpu::CooperativeScalarType::{F16, F32};
    let info = adapter.get_info();
    let size = MatrixTile::FRAGMENT;
    let fits = |p: &wgpu::CooperativeMatrixProperties| {
        (p.m_size, p.n_size, p.k_size, p.ab_type, p.cr_type) == (size, size, size, F16, F32)
    };
    adapter.features().contains(FEATURES)
        && (info.subgroup_min_size, info.subgroup_max_size) == (MatrixTile::SUBGROUP, MatrixTile::SUBGROUP)
        && adapter.limits().max_compute_workgroup_storage_size >= MatrixTile::most_memory()
        && adapter.cooperative_matrix_properties().iter().any(fits)
}

/// Leave to use experimental features.
#[allow(unsafe_code, reason = "wgpu wants this acknowledged")]
pub fn experimental() -> wgpu::ExperimentalFeatures {
    // SAFETY: wgpu asks callers to know that its experimental features may have bugs. Only a person who asks for them
    // gets them, on a native device of their own; the kernels read and write within their buffers.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}
