//! Keeps this device's GPU busy before and between the tokens of an answer, if timing showed that its clock drops otherwise.

use std::cell::Cell;
use std::rc::Rc;

use super::device::Device;
use super::room_engine::RoomEngine;
use crate::platform::Platform;

/// Milliseconds after a token within which another one may come.
pub const TOKEN_MILLIS: f64 = 500.0;
/// Milliseconds for which a person who typed may still be typing. Clocks rise within a second.
const TYPING_MILLIS: f64 = 2_000.0;
/// Milliseconds between two checks whether more tokens are expected and whether other tabs use the GPU.
const CHECK_MILLIS: f64 = 200.0;
/// Keeping a GPU busy costs power: tokens must take this many times as long without it.
pub const MIN_SPEEDUP: f64 = 1.25;

/// Whether the GPU is kept busy, and until when.
pub struct KeepAlive {
    platform: Platform,
    device: Rc<Device>,
    room: Rc<RoomEngine>,
    enabled: Cell<bool>,
    until: Cell<f64>,
    running: Cell<bool>,
}

impl KeepAlive {
    /// Not enabled.
    pub(super) fn new(platform: Platform, device: Rc<Device>, room: Rc<RoomEngine>) -> Self {
        let (enabled, until, running) = Default::default();
        Self { platform, device, room, enabled, until, running }
    }

    /// The device that it keeps busy.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Enables it if tokens are faster on a GPU that is kept busy.
    pub fn set_enabled(&self, enabled: bool) {
        self.enabled.set(enabled);
    }

    /// True if it is enabled.
    pub fn is_enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Tokens are about to come: somebody types a prompt.
    pub fn expect_tokens(self: &Rc<Self>) {
        if self.room.is_some() {
            self.extend_by(TYPING_MILLIS);
        }
    }

    /// A token is being computed: the next one should meet a high clock.
    pub fn extend(self: &Rc<Self>) {
        self.extend_by(TOKEN_MILLIS);
    }

    fn extend_by(self: &Rc<Self>, millis: f64) {
        if !self.enabled.get() {
            return;
        }
        let until = self.platform.clock.now().0 + millis;
        self.until.set(self.until.get().max(until));
        if !self.running.replace(true) {
            let this = self.clone();
            self.platform.spawn.spawn(Box::pin(async move {
                this.run().await;
                this.running.set(false);
            }));
        }
    }

    /// Several tabs on one GPU keep it busy by themselves, and the keep-alive of one would slow the others down. So only a tab
    /// that is alone does it. Natively each GPU has a lock of its own.
    async fn run(&self) {
        let Some(gpu) = self.device.gpu() else { return };
        let slot = gpu.capabilities().slot.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let name = format!("potluck-warm-{slot}");
        // Without locks every tab does it.
        let _turn = self.platform.store.lock(name.clone()).await;
        loop {
            let left = self.until.get() - self.platform.clock.now().0;
            if left <= 0.0 {
                break;
            }
            let is_alone = !self.platform.store.is_awaited(name.clone()).await;
            if is_alone {
                gpu.keep_alive(left);
            } else {
                gpu.stop_keep_alive();
            }
            self.platform.clock.sleep(CHECK_MILLIS.min(left)).await;
        }
        gpu.stop_keep_alive();
    }

    /// The GPU is about to be closed, or the program to end.
    pub fn stop(&self) {
        self.until.set(f64::MIN);
        if let Some(gpu) = self.device.gpu() {
            gpu.stop_keep_alive();
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_engine::{Gpu, GpuOptions};

    use super::*;
    use crate::native::platform;

    /// A device on the only GPU there is, with the storage of a browser profile or of another one.
    async fn device(folder: &std::path::Path) -> (Rc<KeepAlive>, Gpu) {
        let platform = platform(folder.to_owned(), &crate::native::Network::default());
        let device = Rc::new(Device::new(platform.clone(), GpuOptions::default()));
        device.open().await;
        let gpu = device.gpu().unwrap();
        (Rc::new(KeepAlive::new(platform, device, Rc::default())), gpu)
    }

    /// Whether the GPU gets work within half a minute: the first time, a kernel is compiled for it.
    async fn grows(gpu: &Gpu) -> bool {
        let before = gpu.warmed();
        for _ in 0..1_500 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if gpu.warmed() > before + 2 {
                return true;
            }
        }
        false
    }

    #[tokio::test(flavor = "current_thread")]
    async fn one_device_at_a_time_keeps_a_gpu_busy_and_only_where_it_helps() {
        let folder = std::env::temp_dir().join(format!("potluck-keep_alive-{}", std::process::id()));
        let test = async {
            let (one, first) = device(&folder).await;
            let (other, second) = device(&folder).await;
            one.extend();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(first.warmed(), 0, "nothing measured that it helps");
            one.set_enabled(true);
            other.set_enabled(true);
            one.expect_tokens();
            assert!(!one.running.get(), "a device without a model expects no tokens");
            one.extend_by(1e9);
            assert!(grows(&first).await, "somebody types, and the GPU is kept busy");
            other.extend_by(1e9);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(second.warmed(), 0, "the other device does it already");
            drop(first);
            one.stop();
            assert!(grows(&second).await, "now it is the other device's turn");
            other.stop();
            let ended = second.warmed();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(second.warmed(), ended, "and then nobody does");
        };
        tokio::task::LocalSet::new().run_until(test).await;
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
