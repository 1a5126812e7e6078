//! The loop of the GPU keep-alive: a thread natively, a task in a browser.

#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::{AtomicBool, Ordering};

use crate::runtime::clock;
use crate::runtime::gpu::Gpu;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::polling;

/// Natively: pause between two polls. A shorter pause would occupy a core.
#[cfg(not(target_arch = "wasm32"))]
const LOOK: std::time::Duration = std::time::Duration::from_micros(100);

impl Gpu {
    /// Keeps the GPU's clock up for the next `millis` milliseconds, with short work that has no effect, whenever
    /// nothing else in this program uses the adapter. The caller ends it with [`Gpu::stop_keep_alive`].
    pub fn keep_alive(&self, millis: f64) {
        let keep_alive_loop = self.keep_alive_loop();
        keep_alive_loop.set(clock::now() + millis);
        if millis > 0.0 && !self.lost() && keep_alive_loop.begin() {
            self.start_keep_alive();
        }
    }

    /// Stops the keep-alive. Natively it also waits until no keep-alive work is in flight, because a program that exits
    /// while a thread is inside the driver crashes.
    pub fn stop_keep_alive(&self) {
        self.keep_alive_loop().set(f64::MIN);
        #[cfg(not(target_arch = "wasm32"))]
        self.keep_alive_loop().join();
    }

    /// Number of keep-alive dispatches so far.
    pub fn warmed(&self) -> u32 {
        self.keep_alive_loop().rounds()
    }

    /// Uses a separate thread: the computing thread also talks to other devices and must not wait for the keep-alive.
    #[cfg(not(target_arch = "wasm32"))]
    fn start_keep_alive(&self) {
        let gpu = self.clone();
        let started = std::thread::Builder::new().name("warm".to_owned()).spawn(move || {
            while gpu.keep_alive_loop().is_wanted() && !gpu.lost() {
                gpu.keep_alive_once();
            }
            gpu.keep_alive_loop().end();
        });
        match started {
            Ok(thread) => self.keep_alive_loop().keep_thread(thread),
            Err(error) => {
                log::warn!("the GPU is not kept from lowering its clock: {error}");
                self.keep_alive_loop().end();
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn keep_alive_once(&self) {
        if !self.usage().is_idle() {
            std::thread::sleep(LOOK);
            return;
        }
        self.keep_alive_loop().submit(&self.device, &self.queue);
        let done = Arc::new(AtomicBool::new(false));
        let told = done.clone();
        self.queue.on_submitted_work_done(move || told.store(true, Ordering::Release));
        // Do not wait inside the driver: that would delay the submit of real work.
        while !done.load(Ordering::Acquire) && !self.lost() {
            std::thread::sleep(LOOK);
            if polling::poll(&self.device, wgpu::PollType::Poll).is_err() {
                self.mark_lost();
            }
        }
    }

    #[cfg(target_arch = "wasm32")]
    fn start_keep_alive(&self) {
        let gpu = self.clone();
        wasm_bindgen_futures::spawn_local(async move {
            while gpu.keep_alive_loop().is_wanted() && !gpu.lost() {
                if gpu.usage().is_idle() {
                    gpu.keep_alive_loop().submit(&gpu.device, &gpu.queue);
                }
                // If other work was submitted instead, this also reports its end.
                let (told, done) = futures::channel::oneshot::channel();
                gpu.queue.on_submitted_work_done(move || {
                    // Only this loop holds the receiver.
                    let _ = told.send(());
                });
                if done.await.is_err() {
                    break;
                }
            }
            gpu.keep_alive_loop().end();
        });
    }
}
