//! Short work for a GPU that waits for its next row. Most GPUs lower their clock within a second or two where they are used
//! less than about two fifths of the time, and the rows of a shared model then take several times as long: on an H200 a third of
//! a model's blocks 8 instead of 2.4 ms (`e2e/bench/keep-alive.mjs`). One workgroup that counts is use enough.

#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::runtime::clock;
use crate::runtime::gpu::Gpu;

/// Rounds of the kernel at a time. A row that comes in between waits for half of that on average, so it is not longer than the
/// pause until its end is known: a millisecond in a browser, a fifth of one natively.
const ROUNDS: u32 = if cfg!(target_arch = "wasm32") { 30_000 } else { 6_000 };
/// Bytes of the kernel's buffer.
const BYTES: u64 = 4 * 34;
/// Natively: pause between two looks. Shorter ones would take a core.
#[cfg(not(target_arch = "wasm32"))]
const LOOK: std::time::Duration = std::time::Duration::from_micros(100);

/// What keeps one device's GPU warm, and until when.
#[derive(Debug, Default)]
pub struct KeepAlive {
    /// On [`clock::now`].
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
    /// For so many milliseconds from now on short work that changes nothing keeps the GPU's clock up whenever nobody in this
    /// program uses the adapter. Whoever began it ends it with [`Gpu::stop_keep_alive`].
    pub fn keep_alive(&self, millis: f64) {
        let keep_alive_loop = self.keep_alive_loop();
        keep_alive_loop.set(clock::now() + millis);
        if millis > 0.0 && !self.lost() && !keep_alive_loop.runs.swap(true, Ordering::AcqRel) {
            self.start_keep_alive();
        }
    }

    /// Nothing keeps the GPU warm any more. Natively nothing of it is under way either, afterwards: a program that ends while a
    /// thread is inside the driver crashes.
    pub fn stop_keep_alive(&self) {
        self.keep_alive_loop().set(f64::MIN);
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(thread) = self.keep_alive_loop().thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It panics only where the driver does.
            let _ = thread.join();
        }
    }

    /// Pieces of such work so far.
    pub fn warmed(&self) -> u32 {
        self.keep_alive_loop().rounds.load(Ordering::Acquire)
    }

    /// A thread of its own: whoever computes here also talks to other devices, and is not to wait for this.
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
            // One before it has ended.
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
        // Without waiting inside the driver: that would hold up the submit of a row.
        while !done.load(Ordering::Acquire) && !self.lost() {
            std::thread::sleep(LOOK);
            if self.device.poll(wgpu::PollType::Poll).is_err() {
                return;
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
                // Of a row that runs instead this tells the end as well.
                let (told, done) = futures::channel::oneshot::channel();
                gpu.queue.on_submitted_work_done(move || {
                    // Nobody else drops the other end.
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
