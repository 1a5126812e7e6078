//! The device as the page shows it.

use potluck_engine::{AdapterKind, Capabilities};
use potluck_panel::DeviceReport;

use super::Compute;

impl Compute {
    /// What the page shows of the device.
    pub fn report(&self) -> DeviceReport {
        let gpu = self.gpu.borrow();
        let self_test = self.self_test.borrow().clone();
        let bandwidth = self.measured.get().map_or(0.0, |measured| measured.bandwidth);
        let Some(gpu) = gpu.as_ref() else {
            return DeviceReport { self_test, trouble: self.trouble.borrow().clone(), ..DeviceReport::default() };
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
            bandwidth,
            sync_ms: self.measured.get().map_or(0.0, |measured| measured.sync_millis),
            self_test,
            trouble: None,
        }
    }
}

/// The adapter's vendor and name, without repetition.
pub fn adapter(capabilities: &Capabilities) -> String {
    let (vendor, name) = (capabilities.vendor.trim(), capabilities.name.trim());
    match (vendor, name) {
        ("", "") => capabilities.backend.clone(),
        (vendor, "") => vendor.to_owned(),
        // A native vendor is a number, and many names begin with the vendor.
        (vendor, name) if vendor.starts_with("0x") || name.to_lowercase().starts_with(&vendor.to_lowercase()) => {
            name.to_owned()
        }
        (vendor, name) => format!("{vendor} {name}").trim().to_owned(),
    }
}
