//! GPU keep-alive: short work for a GPU that waits for its next token. Most GPUs lower their clock within a second or
//! two when they are busy less than about two fifths of the time, and a shared model then takes several times as long
//! per token. On an H200, a third of a model's blocks took 8 ms instead of 2.4 ms (`e2e/bench/keep-alive.mjs`). One
//! workgroup that counts is enough load.

#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::runtime::clock;
use crate::runtime::gpu::Gpu;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::polling;

/// Rounds per dispatch. Work that arrives meanwhile waits for half a dispatch on average, so a dispatch lasts no longer
/// than the delay until its end is noticed: one millisecond in a browser, a fifth of that natively.
const ROUNDS: u32 = if cfg!(target_arch = "wasm32") { 30_000 } else { 6_000 };
/// Size of the kernel's buffer in bytes.
const BYTES: u64 = 4 * 34;
/// Natively: pause between two polls. A shorter pause would occupy a core.
#[cfg(not(target_arch = "wasm32"))]
const LOOK: std::time::Duration = std::time::Duration::from_micros(100);

/// Keeps one device's clock up until a deadline.
#[derive(Debug, Default)]
pub struct KeepAlive {
    /// Deadline on the clock of [`clock::now`].
    until: Mutex<f64>,
    runs: AtomicBool,
    rounds: AtomicU32,
    made: OnceLock<(wgpu::ComputePipeline, wgpu::BindGroup)>,
    #[cfg(not(target_arch = "wasm32"))]
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl KeepAlive {
    fn set(&self, until: f64) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn is_wanted(&self) -> bool {
        clock::now() < *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gpu {
    /// Keeps the GPU's clock up for the next `millis` milliseconds, with short work that has no effect, whenever
    /// nothing else in this program uses the adapter. The caller ends it with [`Gpu::stop_keep_alive`].
    pub fn keep_alive(&self, millis: f64) {
        let keep_alive_loop = self.keep_alive_loop();
        keep_alive_loop.set(clock::now() + millis);
        if millis > 0.0 && !self.lost() && !keep_alive_loop.runs.swap(true, Ordering::AcqRel) {
            self.start_keep_alive();
        }
    }

    /// Stops the keep-alive. Natively it also waits until no keep-alive work is in flight, because a program that exits
    /// while a thread is inside the driver crashes.
    pub fn stop_keep_alive(&self) {
        self.keep_alive_loop().set(f64::MIN);
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(thread) = self.keep_alive_loop().thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The thread panics only if the driver does.
            let _ = thread.join();
        }
    }

    /// Number of keep-alive dispatches so far.
    pub fn warmed(&self) -> u32 {
        self.keep_alive_loop().rounds.load(Ordering::Acquire)
    }

    /// Uses a separate thread: the computing thread also talks to other devices and must not wait for the keep-alive.
    #[cfg(not(target_arch = "wasm32"))]
    fn start_keep_alive(&self) {
        let gpu = self.clone();
        let started = std::thread::Builder::new().name("warm".to_owned()).spawn(move || {
            while gpu.keep_alive_loop().is_wanted() && !gpu.lost() {
                gpu.keep_alive_once();
            }
            gpu.keep_alive_loop().runs.store(false, Ordering::Release);
        });
        match started {
            // A previous thread has already ended.
            Ok(thread) => *self.keep_alive_loop().thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread),
            Err(error) => {
                log::warn!("the GPU is not kept from lowering its clock: {error}");
                self.keep_alive_loop().runs.store(false, Ordering::Release);
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn keep_alive_once(&self) {
        if !self.usage().is_idle() {
            std::thread::sleep(LOOK);
            return;
        }
        self.submit_keep_alive();
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
                    gpu.submit_keep_alive();
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
            gpu.keep_alive_loop().runs.store(false, Ordering::Release);
        });
    }

    fn submit_keep_alive(&self) {
        let (pipeline, group) = self.keep_alive_loop().made.get_or_init(|| self.create_keep_alive_pipeline());
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("warm") });
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
        self.queue.submit([encoder.finish()]);
        self.keep_alive_loop().rounds.fetch_add(1, Ordering::AcqRel);
    }

    fn create_keep_alive_pipeline(&self) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
        let device = &self.device;
        let source = wgpu::ShaderSource::Wgsl(potluck_shaders::KEEP_ALIVE.into());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("warm"), source });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("warm"),
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("warm"),
            size: BYTES,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.queue.write_buffer(&buffer, 0, &ROUNDS.to_le_bytes());
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("warm"),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
        });
        (pipeline, group)
    }
}
