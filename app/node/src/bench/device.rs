//! The device of a report.

use potluck_engine::{AdapterKind, Capabilities, Settings};
use potluck_panel::BenchDevice;

use crate::compute::adapter;

/// Adapter, limits and parameters of the engine.
pub fn describe(capabilities: &Capabilities, settings: &Settings, streaming: f64) -> BenchDevice {
    let limits = &capabilities.limits;
    let limits = [
        ("maxBufferSize", limits.max_buffer_size),
        ("maxStorageBufferBindingSize", limits.max_storage_buffer_binding_size),
        ("maxStorageBuffersPerShaderStage", limits.max_storage_buffers_per_shader_stage.into()),
        ("maxComputeWorkgroupStorageSize", limits.max_compute_workgroup_storage_size.into()),
        ("maxComputeInvocationsPerWorkgroup", limits.max_compute_invocations_per_workgroup.into()),
        ("maxComputeWorkgroupsPerDimension", limits.max_compute_workgroups_per_dimension.into()),
    ];
    let tuned = [
        ("tier", format!("{:?}", capabilities.tier)),
        ("keys and values", format!("{:?}", settings.state)),
        ("context", settings.context.to_string()),
        ("rows of a prompt at once", settings.prefill_rows.to_string()),
        ("work under way", settings.in_flight.to_string()),
    ];
    BenchDevice {
        adapter: adapter(capabilities),
        driver: capabilities.driver.trim().to_owned(),
        backend: capabilities.backend.clone(),
        browser: String::new(),
        software: capabilities.kind == AdapterKind::Software,
        features: capabilities.features.clone(),
        limits: limits.map(|(name, value)| (name.to_owned(), value)).into(),
        tuned: tuned.map(|(name, value)| (name.to_owned(), value)).into(),
        streaming,
    }
}
