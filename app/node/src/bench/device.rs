//! The device of a report.

use potluck_engine::{AdapterKind, Capabilities, Engine, EngineError, Gpu, Settings};
use potluck_panel::BenchDevice;

use crate::compute::adapter;

/// Adapter, limits and parameters of the engine.
///
/// # Errors
/// The device is gone.
pub fn describe(
    capabilities: &Capabilities,
    settings: &Settings,
    engine: &Engine,
    streaming: f64,
    peaks: String,
) -> Result<BenchDevice, EngineError> {
    let limits = &capabilities.limits;
    let limits = [
        ("maxBufferSize", limits.max_buffer_size),
        ("maxStorageBufferBindingSize", limits.max_storage_buffer_binding_size),
        ("maxStorageBuffersPerShaderStage", limits.max_storage_buffers_per_shader_stage.into()),
        ("maxComputeWorkgroupStorageSize", limits.max_compute_workgroup_storage_size.into()),
        ("maxComputeInvocationsPerWorkgroup", limits.max_compute_invocations_per_workgroup.into()),
        ("maxComputeWorkgroupsPerDimension", limits.max_compute_workgroups_per_dimension.into()),
    ];
    let parameters = [
        ("tier", format!("{:?}", capabilities.tier)),
        ("keys and values", format!("{:?}", settings.kv_cache)),
        ("products computed", settings.arithmetic.to_string()),
        ("computes at most", peaks),
        ("context", settings.context.to_string()),
        ("rows of a prompt at once", settings.prefill_tokens.to_string()),
        ("work under way", settings.in_flight.to_string()),
        ("threads of a subgroup", capabilities.subgroup.to_string()),
        ("kernels tuned", if settings.tuned { "yes" } else { "no" }.to_owned()),
    ];
    let shapes = engine.tuned()?.into_iter().map(|(shape, tuned)| {
        let times = if tuned.gain > 1.0 { format!(", {:.2} times as fast", tuned.gain) } else { String::new() };
        (shape.to_string(), format!("{}{times}", tuned.choice))
    });
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
    Ok(BenchDevice {
        adapter: adapter(capabilities),
        driver: capabilities.driver.trim().to_owned(),
        backend: capabilities.backend.clone(),
        browser: String::new(),
        software: capabilities.kind == AdapterKind::Software,
        features: capabilities.features.clone(),
        limits: limits.map(|(name, value)| (name.to_owned(), value)).into(),
        tuned: parameters.into_iter().chain(shapes).collect(),
        streaming,
    })
}

/// What the device computes at most, as text. Not every browser knows `dot4I8Packed`.
///
/// # Errors
/// The device is gone.
pub async fn peaks(gpu: &Gpu, engine: &Engine) -> Result<String, EngineError> {
    if gpu.capabilities().kind == AdapterKind::Software {
        return Ok("not measured on software adapters".to_owned());
    }
    let fma = engine.peak_rate(false).await? / 1e3;
    if cfg!(target_arch = "wasm32") {
        return Ok(format!("{fma:.1} TFLOP/s by fma"));
    }
    let dots = engine.peak_rate(true).await? / 1e3;
    Ok(format!("{fma:.1} TFLOP/s by fma, {dots:.1} Top/s by dot4I8Packed"))
}
