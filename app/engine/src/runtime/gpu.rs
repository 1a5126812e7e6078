//! Opens a GPU and reports its capabilities.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use potluck_shaders::Lanes;

use crate::runtime::error::GpuError;
use crate::runtime::keep_alive::KeepAlive;
use crate::runtime::matrix_units;
use crate::runtime::subgroups;
use crate::runtime::tuning_table::Tuning;
use crate::runtime::usage::Usage;

/// Which adapter to open.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Natively: a substring of the adapter's name, for machines with several.
    pub adapter_name: Option<String>,
    /// Natively: zero-based index among the adapters that match the name; wraps around.
    pub adapter_index: usize,
    /// Request a software adapter.
    pub fallback_adapter: bool,
    /// Open the device with its matrix units, for [`potluck_plan::Arithmetic::Matrix`].
    pub matrix_units: bool,
    /// Use this tier instead of the one derived from what the device reports.
    pub tier: Option<Tier>,
    /// Bind at most this many bytes at a time, even if the device could bind more. Larger tensors are split.
    pub binding_limit: Option<u64>,
}

/// The kind of hardware that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterKind {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// The CPU emulates a GPU.
    Software,
    /// The browser does not report it.
    Unknown,
}

/// How the kernels treat the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Barriers are prohibitively slow, so every thread works independently.
    Software,
    /// A GPU with a small binding limit (under 256 MiB).
    Modest,
    /// A GPU with a binding limit of at least 256 MiB.
    Full,
}

/// Capabilities of the device.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Name of the adapter, if reported.
    pub name: String,
    /// Vendor, if reported.
    pub vendor: String,
    /// Driver, if reported.
    pub driver: String,
    /// Natively: the bus slot, which distinguishes two GPUs of the same name. Empty in a browser.
    pub slot: String,
    /// Underlying API: `Vulkan` or `BrowserWebGpu`.
    pub backend: String,
    /// Hardware or software.
    pub kind: AdapterKind,
    /// How the kernels treat it.
    pub tier: Tier,
    /// Subgroup size, if there are kernels for it.
    pub lanes: Option<Lanes>,
    /// Whether its matrix units can be used: they were asked for, and it has them.
    pub matrix_units: bool,
    /// Minimum subgroup size; 1 without subgroups.
    pub subgroup: u32,
    /// The device's limits, which are all that the adapter offers.
    pub limits: wgpu::Limits,
    /// Names of the adapter's features. None is required.
    pub features: Vec<String>,
}

/// Whether [`crate::Gpu::destroy`] closed a device, whose memory nobody must touch any more. Whoever writes to mapped memory
/// holds the lock. A device that is lost otherwise is not covered: wgpu frees its buffers before it says so.
#[cfg(not(target_arch = "wasm32"))]
pub type Closed = std::sync::Arc<std::sync::RwLock<bool>>;

/// An open device. Clones share it.
#[derive(Clone)]
pub struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    capabilities: Arc<Capabilities>,
    lost: Arc<AtomicBool>,
    error: Arc<Mutex<Option<String>>>,
    tuning: Arc<Mutex<Tuning>>,
    usage: Arc<Usage>,
    keep_alive_loop: Arc<KeepAlive>,
    #[cfg(not(target_arch = "wasm32"))]
    closed: Closed,
}

impl Gpu {
    /// Opens the best adapter with its full limits. Works in a page and in a dedicated worker.
    ///
    /// # Errors
    /// There is no WebGPU or no adapter, the adapter's limits are too small, or it refuses to create a device.
    pub async fn open(options: GpuOptions) -> Result<Gpu, GpuError> {
        if !has_webgpu() {
            return Err(GpuError::NoWebGpu);
        }
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN | wgpu::Backends::BROWSER_WEBGPU,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapter = find_adapter(&instance, &options).await?;
        let info = adapter.get_info();
        let limits = adapter.limits();
        check_limits(&limits)?;
        // Timestamps for measurements, subgroups for the kernels that use them.
        let mut wanted = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SUBGROUP;
        let mut experimental_features = wgpu::ExperimentalFeatures::disabled();
        if options.matrix_units {
            if !matrix_units::offered(&adapter) {
                return Err(GpuError::NoMatrixUnits);
            }
            wanted |= matrix_units::FEATURES;
            experimental_features = matrix_units::experimental();
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("potluck"),
            required_features: adapter.features() & wanted,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            experimental_features,
            ..Default::default()
        };
        let requested = subgroups::with_subgroups(|| adapter.request_device(&descriptor));
        let (device, queue) = requested.await.map_err(|error| GpuError::Device(error.to_string()))?;
        let lost = Arc::new(AtomicBool::new(false));
        let told = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                log::warn!("The GPU device was lost: {message}");
            }
            told.store(true, Ordering::SeqCst);
        });
        let error = Arc::new(Mutex::new(None));
        let slot = error.clone();
        device.on_uncaptured_error(Arc::new(move |problem: wgpu::Error| {
            log::error!("The GPU reports an error: {problem}");
            if let Ok(mut slot) = slot.lock() {
                slot.get_or_insert(problem.to_string());
            }
        }));
        let mut capabilities = describe(&info, &adapter, limits, browser_adapter_info(&device));
        capabilities.tier = options.tier.unwrap_or(capabilities.tier);
        capabilities.lanes = subgroups::lanes(&info, &device);
        capabilities.matrix_units = options.matrix_units;
        capabilities.subgroup = subgroups::min(&info, &device);
        if let Some(max) = options.binding_limit {
            let limit = &mut capabilities.limits.max_storage_buffer_binding_size;
            *limit = (*limit).min(max);
        }
        let usage = Usage::of(format!("{} {}", capabilities.slot, capabilities.name));
        let capabilities = Arc::new(capabilities);
        Ok(Gpu {
            device,
            queue,
            capabilities,
            lost,
            error,
            tuning: Arc::default(),
            usage,
            keep_alive_loop: Arc::default(),
            #[cfg(not(target_arch = "wasm32"))]
            closed: Arc::default(),
        })
    }

    /// Capabilities of the device.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The work that keeps the GPU from lowering its clock.
    pub(crate) fn keep_alive_loop(&self) -> &KeepAlive {
        &self.keep_alive_loop
    }

    /// This program's use of the adapter.
    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// Kernel measurements on this device. An engine copies them when it is created.
    pub fn tuning(&self) -> Tuning {
        self.tuning.lock().map(|tuning| tuning.clone()).unwrap_or_default()
    }

    /// Sets the measurements, taken now or on an earlier visit.
    pub fn set_tuning(&self, tuning: Tuning) {
        if let Ok(mut slot) = self.tuning.lock() {
            *slot = tuning;
        }
    }

    /// True once the device is lost.
    pub fn lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Closes the device: frees all its memory, and everything that uses it sees a lost device.
    pub fn destroy(&self) {
        self.mark_lost();
        // Other threads write to mapped memory, which goes with the device.
        #[cfg(not(target_arch = "wasm32"))]
        if let Ok(mut closed) = self.closed.write() {
            *closed = true;
        }
        self.device.destroy();
    }

    /// Whether [`Gpu::destroy`] was called.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn closed(&self) -> &Closed {
        &self.closed
    }

    pub(crate) fn mark_lost(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// The mark that the device is lost, for another thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn lost_mark(&self) -> Arc<AtomicBool> {
        self.lost.clone()
    }

    /// Takes the first unexpected error.
    pub(crate) fn take_error(&self) -> Option<String> {
        self.error.lock().ok().and_then(|mut slot| slot.take())
    }
}

/// Checks the minimum limits that every kernel needs.
fn check_limits(limits: &wgpu::Limits) -> Result<(), GpuError> {
    let needs = [
        ("storage buffers a stage", u64::from(limits.max_storage_buffers_per_shader_stage), 8),
        ("threads a workgroup", u64::from(limits.max_compute_invocations_per_workgroup), 256),
        ("bytes of workgroup memory", u64::from(limits.max_compute_workgroup_storage_size), 16384),
    ];
    match needs.into_iter().find(|(_, available, needed)| available < needed) {
        Some((what, available, needed)) => Err(GpuError::TooSmall { what, available, needed }),
        None => Ok(()),
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn has_webgpu() -> bool {
    true
}

/// `navigator.gpu` of a window or a worker.
#[cfg(target_arch = "wasm32")]
fn has_webgpu() -> bool {
    let get = |object: &wasm_bindgen::JsValue, key: &str| js_sys::Reflect::get(object, &key.into()).ok();
    get(&js_sys::global(), "navigator")
        .and_then(|navigator| get(&navigator, "gpu"))
        .is_some_and(|gpu| !gpu.is_undefined() && !gpu.is_null())
}

async fn find_adapter(instance: &wgpu::Instance, options: &GpuOptions) -> Result<wgpu::Adapter, GpuError> {
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(part) = &options.adapter_name {
        let mut adapters = instance.enumerate_adapters(wgpu::Backends::VULKAN).await;
        let mut found: Vec<String> = adapters.iter().map(|adapter| adapter.get_info().name).collect();
        found.dedup();
        let wanted = part.to_lowercase();
        adapters.retain(|adapter| adapter.get_info().name.to_lowercase().contains(&wanted));
        return match adapters.len() {
            0 if found.is_empty() => Err(GpuError::NoAdapter),
            0 => Err(GpuError::NoSuchAdapter { wanted: part.clone(), found }),
            count => Ok(adapters.swap_remove(options.adapter_index % count)),
        };
    }
    let request = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        force_fallback_adapter: options.fallback_adapter,
        ..Default::default()
    };
    instance.request_adapter(&request).await.map_err(|_| GpuError::NoAdapter)
}

/// Name, vendor and driver from `GPUDevice.adapterInfo`, because wgpu leaves them empty on the web.
#[cfg(target_arch = "wasm32")]
fn browser_adapter_info(device: &wgpu::Device) -> Option<[String; 3]> {
    let device: &wasm_bindgen::JsValue = device.as_webgpu()?.as_ref();
    let info = js_sys::Reflect::get(device, &"adapterInfo".into()).ok()?;
    let text =
        |key: &str| js_sys::Reflect::get(&info, &key.into()).ok().and_then(|v| v.as_string()).unwrap_or_default();
    let description = text("description");
    let name =
        if description.is_empty() { format!("{} {}", text("vendor"), text("architecture")) } else { description };
    Some([name.trim().to_owned(), text("vendor"), text("device")])
}

#[cfg(not(target_arch = "wasm32"))]
fn browser_adapter_info(_device: &wgpu::Device) -> Option<[String; 3]> {
    None
}

fn describe(
    info: &wgpu::AdapterInfo,
    adapter: &wgpu::Adapter,
    limits: wgpu::Limits,
    told: Option<[String; 3]>,
) -> Capabilities {
    let [name, vendor, driver] = told.unwrap_or_else(|| {
        [info.name.clone(), format!("{:#06x}", info.vendor), format!("{} {}", info.driver, info.driver_info)]
    });
    let all = format!("{name} {vendor} {driver}").to_lowercase();
    let software = ["swiftshader", "llvmpipe", "lavapipe", "basic render"].iter().any(|part| all.contains(part));
    let kind = match info.device_type {
        _ if software => AdapterKind::Software,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        _ => AdapterKind::Unknown,
    };
    let tier = match kind {
        AdapterKind::Software => Tier::Software,
        _ if limits.max_storage_buffer_binding_size < 256 << 20 => Tier::Modest,
        _ => Tier::Full,
    };
    Capabilities {
        name,
        vendor,
        driver,
        slot: info.device_pci_bus_id.clone(),
        backend: format!("{:?}", info.backend),
        kind,
        tier,
        lanes: None,
        matrix_units: false,
        subgroup: 1,
        limits,
        features: adapter.features().iter_names().map(|(name, _)| name.to_owned()).collect(),
    }
}
