//! GPU keep-alive: short work for a GPU that waits for its next token. Most GPUs lower their clock within a second or
//! two when they are busy less than about two fifths of the time, and a shared model then takes several times as long
//! per token. On an H200, a third of a model's blocks took 8 ms instead of 2.4 ms (`e2e/bench/keep-alive.mjs`). One
//! workgroup that counts is enough load.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::runtime::clock;

/// Rounds per dispatch. Work that arrives meanwhile waits for half a dispatch on average, so a dispatch lasts no longer
/// than the delay until its end is noticed: one millisecond in a browser, a fifth of that natively.
const ROUNDS: u32 = if cfg!(target_arch = "wasm32") { 30_000 } else { 6_000 };
/// Size of the kernel's buffer in bytes.
const BYTES: u64 = 4 * 34;
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
    /// Sets the deadline.
    pub fn set(&self, until: f64) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Whether the deadline lies ahead.
    pub fn is_wanted(&self) -> bool {
        clock::now() < *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the loop as running; false if it runs already.
    pub fn begin(&self) -> bool {
        !self.runs.swap(true, Ordering::AcqRel)
    }

    /// Marks the loop as ended.
    pub fn end(&self) {
        self.runs.store(false, Ordering::Release);
    }

    /// Number of dispatches so far.
    pub fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Acquire)
    }

    /// Keeps the thread that runs the loop. A previous one has already ended.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn keep_thread(&self, thread: std::thread::JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Waits until the thread that runs the loop has ended.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn join(&self) {
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The thread panics only if the driver does.
            let _ = thread.join();
        }
    }

    /// Submits one dispatch.
    pub fn submit(&self, device: &wgpu::Device, queue: &wgpu::Queue) {
        let (pipeline, group) = self.made.get_or_init(|| create_pipeline(device, queue));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("warm") });
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
        queue.submit([encoder.finish()]);
        self.rounds.fetch_add(1, Ordering::AcqRel);
    }
}

fn create_pipeline(device: &wgpu::Device, queue: &wgpu::Queue) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
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
    queue.write_buffer(&buffer, 0, &ROUNDS.to_le_bytes());
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("warm"),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
    });
    (pipeline, group)
}
