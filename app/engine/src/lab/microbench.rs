//! Single dispatches on their own buffers, for the self-test and for measurements.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use potluck_shaders::Kernel;

use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::gpu::Gpu;
use crate::runtime::memory::{Slab, Slice};
use crate::runtime::model::Model;
use crate::runtime::recorder::{BindGroups, Program, Recorder, Size, Tools, fold};
use crate::runtime::submit::{BufferCopy, Run, Submitter};

/// A dispatch with all its inputs.
#[derive(Clone, Debug)]
pub struct Probe {
    pub kernel: Kernel,
    /// Initial contents of each storage binding.
    pub bindings: Vec<Vec<u8>>,
    pub params: Vec<u8>,
    pub x: u32,
    /// Above 1 for splits; otherwise `x` is folded into x and y.
    pub y: u32,
    pub z: u32,
    /// The binding to read back.
    pub output: usize,
}

#[derive(Default)]
struct Mapped {
    done: Option<bool>,
    waker: Option<Waker>,
}

/// Waits until a buffer is mapped. Native builds poll the device here.
pub async fn map(gpu: &Gpu, buffer: &wgpu::Buffer) -> Result<(), EngineError> {
    let shared = Arc::new(Mutex::new(Mapped::default()));
    let told = shared.clone();
    buffer.map_async(wgpu::MapMode::Read, .., move |result| {
        if let Ok(mut mapped) = told.lock() {
            mapped.done = Some(result.is_ok());
            if let Some(waker) = mapped.waker.take() {
                waker.wake();
            }
        }
    });
    #[cfg(not(target_arch = "wasm32"))]
    if gpu.device.poll(wgpu::PollType::wait_indefinitely()).is_err() {
        gpu.mark_lost();
        return Err(EngineError::Lost);
    }
    let mapped = std::future::poll_fn(|context| match shared.lock() {
        Ok(mut mapped) => match mapped.done {
            Some(done) => Poll::Ready(done),
            None => {
                mapped.waker = Some(context.waker().clone());
                Poll::Pending
            }
        },
        Err(_) => Poll::Ready(false),
    })
    .await;
    if mapped {
        Ok(())
    } else {
        gpu.mark_lost();
        Err(EngineError::Lost)
    }
}

/// A dispatch to time. Its buffers (zeros, or weights to read) are reused between launches without uploads, so only the
/// kernel takes time.
pub struct Microbench {
    kernel: Kernel,
    params: Vec<u8>,
    groups: [u32; 3],
    buffers: Vec<Slice>,
}

/// A submitted set of probes whose outputs are not read back yet.
pub struct Launched {
    gpu: Gpu,
    result: Rc<Slab>,
    sizes: Vec<u64>,
    _buffers: Vec<Slice>,
}

impl Launched {
    /// The bytes of each probe's output.
    pub async fn outputs(self) -> Result<Vec<Vec<u8>>, EngineError> {
        map(&self.gpu, &self.result.buffer).await?;
        let view = self.result.buffer.get_mapped_range(..).map_err(|error| EngineError::Gpu(error.to_string()))?;
        let mut at = 0;
        Ok(self
            .sizes
            .iter()
            .map(|&size| {
                let bytes = view[at..at + size as usize].to_vec();
                at += size as usize;
                bytes
            })
            .collect())
    }
}

impl Core {
    fn probe_buffer(&mut self, size: u64) -> Slice {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let size = size.next_multiple_of(256).max(256);
        let (Model { gpu, memory, .. }, _) = self.parts();
        Slice { slab: memory.create(&gpu.device, "probe", size, usage), offset: 0, size }
    }

    /// Submits probes.
    pub fn launch_probes(&mut self, probes: &[Probe]) -> Launched {
        let mut rec = Recorder::default();
        let mut groups = BindGroups::default();
        let mut buffers = Vec::new();
        let mut outputs: Vec<(Slice, u64)> = Vec::new();
        for probe in probes {
            let mut bound = Vec::new();
            for content in &probe.bindings {
                let slice = self.probe_buffer(content.len() as u64);
                let mut padded = content.clone();
                padded.resize(content.len().next_multiple_of(4), 0);
                self.model.gpu.queue.write_buffer(&slice.slab.buffer, 0, &padded);
                bound.push(slice);
            }
            let [x, y] = if probe.y > 1 { [probe.x, probe.y] } else { fold(probe.x) };
            let refs: Vec<&Slice> = bound.iter().collect();
            let size = Size::Fixed([x, y, probe.z]);
            rec.dispatch_sized(&mut self.probe_tools(&mut groups), probe.kernel, &refs, &probe.params, size);
            let size = (probe.bindings[probe.output].len() as u64).next_multiple_of(4);
            outputs.push((bound[probe.output].clone(), size));
            buffers.extend(bound);
        }
        self.launch(rec, &outputs, buffers)
    }

    /// Creates the buffers of a dispatch to time, with the given sizes in bytes for its storage bindings.
    pub fn microbench(&mut self, kernel: Kernel, sizes: &[u64], params: &[u8], [x, z]: [u32; 2]) -> Microbench {
        let [x, y] = fold(x);
        let buffers = sizes.iter().map(|&size| self.probe_buffer(size)).collect();
        Microbench { kernel, params: params.to_vec(), groups: [x, y, z], buffers }
    }

    /// The same for a kernel that reads `bytes` of weights first. Uses the loaded weights if one buffer holds that many
    /// bytes.
    pub fn microbench_on_weights(
        &mut self,
        kernel: Kernel,
        bytes: u64,
        sizes: &[u64],
        params: &[u8],
        groups: [u32; 2],
    ) -> Microbench {
        let mut microbench = self.microbench(kernel, sizes, params, groups);
        let known = self.model.memory.largest_weights().filter(|slab| slab.buffer.size() >= bytes).cloned();
        let weights = match known {
            Some(slab) => Slice { slab, offset: 0, size: bytes },
            None => self.probe_buffer(bytes),
        };
        microbench.buffers.insert(0, weights);
        microbench
    }

    /// Writes into a storage binding of a dispatch to time.
    pub fn fill(&self, microbench: &Microbench, binding: usize, bytes: &[u8]) {
        self.model.gpu.queue.write_buffer(&microbench.buffers[binding].slab.buffer, 0, bytes);
    }

    /// The dispatch of a microbenchmark as a program.
    pub fn microbench_program(&mut self, microbench: &Microbench) -> Program {
        let mut rec = Recorder::default();
        let mut groups = BindGroups::default();
        let refs: Vec<&Slice> = microbench.buffers.iter().collect();
        let size = Size::Fixed(microbench.groups);
        rec.dispatch_sized(&mut self.probe_tools(&mut groups), microbench.kernel, &refs, &microbench.params, size);
        rec.finish()
    }

    fn probe_tools<'a>(&'a mut self, groups: &'a mut BindGroups) -> Tools<'a> {
        let (_, recording) = self.parts();
        recording.tools_with(groups)
    }

    fn launch(&mut self, rec: Recorder, outputs: &[(Slice, u64)], buffers: Vec<Slice>) -> Launched {
        let total: u64 = outputs.iter().map(|(_, size)| size).sum();
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let (Model { gpu, memory, .. }, _) = self.parts();
        let result = memory.create(&gpu.device, "probe result", total.max(4), usage);
        let mut to = 0;
        let mut copies = Vec::new();
        for (slice, size) in outputs {
            let from = Slice { slab: slice.slab.clone(), offset: 0, size: *size };
            copies.push(BufferCopy { from, to: result.buffer.clone(), at: to });
            to += size;
        }
        let run = Run { before: Vec::new(), program: Rc::new(rec.finish()), reach: 0, after: copies };
        let gpu = self.model.gpu.clone();
        Submitter::new(&gpu.device, &gpu.queue, self.recording().arena(), u64::MAX).submit(&[run]);
        let sizes = outputs.iter().map(|(_, size)| *size).collect();
        Launched { gpu, result, sizes, _buffers: buffers }
    }
}
