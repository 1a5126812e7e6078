//! This peer's GPU: opened once, and reopened when it is lost.

use std::cell::RefCell;

use futures::future::{Either, select};
use potluck_engine::{Capabilities, Gpu, GpuOptions, binding_limit};
use potluck_plan::Bytes;

use crate::backoff::Backoff;
use crate::platform::Platform;

/// How long opening the GPU may take, in milliseconds; everything else waits for it.
const OPEN_TIMEOUT: f64 = 20_000.0;
/// Attempts to reopen a lost device, and the waits before them: a driver that was reset needs a moment.
const REOPEN_ATTEMPTS: u32 = 4;
const REOPEN_BACKOFF: Backoff = Backoff::new(500.0, 4_000.0);

/// The GPU, while it is open.
pub struct Device {
    platform: Platform,
    options: GpuOptions,
    gpu: RefCell<Option<Gpu>>,
    /// Why there is no GPU.
    trouble: RefCell<Option<String>>,
}

impl Device {
    /// Not open yet.
    pub(super) fn new(platform: Platform, options: GpuOptions) -> Self {
        Self { platform, options, gpu: RefCell::default(), trouble: RefCell::default() }
    }

    /// The GPU, if it is open.
    pub fn gpu(&self) -> Option<Gpu> {
        self.gpu.borrow().clone()
    }

    /// Opens the GPU. Without one this peer can still be a guest, or a host that contributes nothing.
    pub async fn open(&self) {
        let opening = std::pin::pin!(Gpu::open(self.options.clone()));
        let trouble = match select(opening, self.platform.clock.sleep(OPEN_TIMEOUT)).await {
            Either::Left((Ok(gpu), _)) => {
                *self.gpu.borrow_mut() = Some(gpu);
                None
            }
            Either::Left((Err(error), _)) => Some(error.to_string()),
            Either::Right(_) => Some(
                "This device's GPU does not answer. Open Potluck again, or restart the graphics driver.".to_owned(),
            ),
        };
        if let Some(trouble) = &trouble {
            log::warn!("no GPU: {trouble}");
        }
        *self.trouble.borrow_mut() = trouble;
    }

    /// Drops the GPU.
    pub(super) fn close(&self) {
        self.gpu.borrow_mut().take();
    }

    /// Opens the GPU again after [`Compute::close`](super::Compute::close), with several attempts.
    pub async fn reopen(&self) {
        for attempt in 1..=REOPEN_ATTEMPTS {
            // Only the last attempt's trouble is shown.
            self.trouble.borrow_mut().take();
            self.platform.clock.sleep(REOPEN_BACKOFF.wait(attempt)).await;
            self.open().await;
            if self.gpu.borrow().is_some() {
                return;
            }
        }
    }

    /// True if the GPU was open and is lost, whether or not an engine uses it.
    pub fn lost(&self) -> bool {
        self.gpu.borrow().as_ref().is_some_and(Gpu::lost)
    }

    /// The adapter's name, for others to see.
    pub fn adapter(&self) -> String {
        self.gpu.borrow().as_ref().map(|gpu| adapter(gpu.capabilities())).unwrap_or_default()
    }

    /// The largest storage buffer binding, if there is a GPU.
    pub fn binding(&self) -> Option<Bytes> {
        self.gpu.borrow().as_ref().map(|gpu| binding_limit(&gpu.capabilities().limits))
    }

    /// Why there is no GPU, if it was tried to open one.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Why there is no GPU, in one sentence.
    pub fn no_gpu(&self) -> String {
        self.trouble().unwrap_or_else(|| "This device's GPU is not open yet. Try again.".to_owned())
    }
}

/// The adapter's vendor and name, without repetition. Empty in a browser that tells neither, as Firefox does.
pub fn adapter(capabilities: &Capabilities) -> String {
    let (vendor, name) = (capabilities.vendor.trim(), capabilities.name.trim());
    match (vendor, name) {
        (vendor, "") => vendor.to_owned(),
        // A native vendor is a number, and many names begin with the vendor.
        (vendor, name) if vendor.starts_with("0x") || name.to_lowercase().starts_with(&vendor.to_lowercase()) => {
            name.to_owned()
        }
        (vendor, name) => format!("{vendor} {name}").trim().to_owned(),
    }
}
