//! Keeping this device's GPU warm before and between the rows of an answer, where timing it showed that its clock falls otherwise.

use std::cell::Cell;
use std::rc::Rc;

use super::Compute;

/// So long after a row another one may come, milliseconds.
pub const LASTING: f64 = 500.0;
/// So long after somebody wrote they may still be writing. Clocks rise within a second.
const WRITING: f64 = 2_000.0;
/// So often it is looked at whether more rows are expected and whether other tabs use the GPU, milliseconds.
const LOOK: f64 = 200.0;
/// Rows have to take so many times as long without: it costs power.
pub const WORTH: f64 = 1.25;

/// Whether the GPU is kept warm, and until when.
#[derive(Default)]
pub struct Warmth {
    pays: Cell<bool>,
    until: Cell<f64>,
    under_way: Cell<bool>,
}

impl Warmth {
    /// Rows are quicker on a GPU that is kept warm; or they are not.
    pub fn pays(&self, pays: bool) {
        self.pays.set(pays);
    }

    /// Whether the GPU is kept warm.
    pub fn is_worth_it(&self) -> bool {
        self.pays.get()
    }
}

impl Compute {
    /// Rows are about to come: somebody writes a question.
    pub fn expect_rows(self: &Rc<Self>) {
        if self.slot.borrow().is_some() {
            self.warm_for(WRITING);
        }
    }

    /// A row is computed: the next one should meet a high clock.
    pub fn stay_warm(self: &Rc<Self>) {
        self.warm_for(LASTING);
    }

    fn warm_for(self: &Rc<Self>, millis: f64) {
        let warmth = &self.warmth;
        if !warmth.pays.get() {
            return;
        }
        let until = self.platform.clock.now().0 + millis;
        warmth.until.set(warmth.until.get().max(until));
        if !warmth.under_way.replace(true) {
            let this = self.clone();
            self.platform.spawn.spawn(Box::pin(async move {
                this.warm_in_turn().await;
                this.warmth.under_way.set(false);
            }));
        }
    }

    /// Several tabs on one GPU keep it busy themselves, and what one of them does to warm it is in the way of the others: only a
    /// tab that is alone does. Natively each GPU has a lock of its own.
    async fn warm_in_turn(&self) {
        let Some(gpu) = self.gpu.borrow().clone() else { return };
        let slot = gpu.capabilities().slot.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let name = format!("potluck-warm-{slot}");
        // Without locks here every tab warms for itself.
        let _turn = self.platform.store.lock(name.clone()).await;
        loop {
            let left = self.warmth.until.get() - self.platform.clock.now().0;
            if left <= 0.0 {
                break;
            }
            let is_alone = !self.platform.store.is_awaited(name.clone()).await;
            if is_alone {
                gpu.keep_alive(left);
            } else {
                gpu.stop_keep_alive();
            }
            self.platform.clock.sleep(LOOK.min(left)).await;
        }
        gpu.stop_keep_alive();
    }

    /// The GPU is about to be closed, or the program to end.
    pub fn end_warming(&self) {
        self.warmth.until.set(f64::MIN);
        if let Some(gpu) = self.gpu.borrow().as_ref() {
            gpu.stop_keep_alive();
        }
    }
}

impl Drop for Compute {
    fn drop(&mut self) {
        self.end_warming();
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use potluck_engine::{Gpu, GpuOptions};

    use super::*;
    use crate::native::platform;

    /// A device on the only GPU there is, with the storage of a browser profile or of another one.
    async fn device(folder: &std::path::Path) -> (Rc<Compute>, Gpu) {
        let (inputs, _queue) = crate::events::channel();
        let compute = Compute::new(platform(folder.to_owned(), false), inputs, GpuOptions::default(), 1);
        compute.open().await;
        let gpu = compute.gpu.borrow().clone().unwrap();
        (compute, gpu)
    }

    async fn grows(gpu: &Gpu) -> bool {
        let before = gpu.warmed();
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if gpu.warmed() > before + 2 {
                return true;
            }
        }
        false
    }

    #[tokio::test(flavor = "current_thread")]
    async fn one_device_at_a_time_keeps_a_gpu_warm_and_only_where_it_pays() {
        let folder = std::env::temp_dir().join(format!("potluck-warmth-{}", std::process::id()));
        let test = async {
            let (one, first) = device(&folder).await;
            let (other, second) = device(&folder).await;
            one.stay_warm();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(first.warmed(), 0, "nobody measured that it pays");
            one.warmth.pays(true);
            other.warmth.pays(true);
            one.expect_rows();
            assert!(!one.warmth.under_way.get(), "a device without a model has no rows to expect");
            one.warm_for(1e9);
            assert!(grows(&first).await, "somebody writes, and the clock is kept up");
            other.warm_for(1e9);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(second.warmed(), 0, "the other one does it already");
            drop(first);
            one.end_warming();
            assert!(grows(&second).await, "now it is the other one's turn");
            other.end_warming();
            let ended = second.warmed();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(second.warmed(), ended, "and then nobody's");
        };
        tokio::task::LocalSet::new().run_until(test).await;
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
