//! The device as the page shows it.

use potluck_engine::AdapterKind;
use potluck_panel::{DeviceReport, SelfTest};

use super::device::{Device, adapter};
use super::measure::Measured;

/// What the page shows of the device, with what was measured and tested.
pub(super) fn report(device: &Device, measured: Option<Measured>, self_test: SelfTest) -> DeviceReport {
    let Some(gpu) = device.gpu() else {
        return DeviceReport { self_test, trouble: device.trouble(), ..DeviceReport::default() };
    };
    let capabilities = gpu.capabilities();
    let has = |feature: &str| {
        let same = |name: &String| name.replace('_', "-").eq_ignore_ascii_case(feature);
        capabilities.features.iter().any(same)
    };
    DeviceReport {
        webgpu: true,
        adapter: adapter(capabilities),
        shader_f16: has("shader-f16"),
        subgroups: capabilities.lanes.is_some() || has("subgroup") || has("subgroups"),
        max_binding: capabilities.limits.max_storage_buffer_binding_size,
        max_buffer: capabilities.limits.max_buffer_size,
        software: capabilities.kind == AdapterKind::Software,
        bandwidth: measured.map_or(0.0, |measured| measured.bandwidth),
        sync_ms: measured.map_or(0.0, |measured| measured.sync_millis),
        self_test,
        trouble: None,
    }
}
