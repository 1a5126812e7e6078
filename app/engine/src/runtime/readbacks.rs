//! The buffers in which results come back.

use std::rc::Rc;

use potluck_plan::Outcome;

use crate::runtime::gpu::Gpu;
use crate::runtime::layout::Layout;
use crate::runtime::memory::{Memory, Slab};
use crate::runtime::result_kind::Kind;

/// A buffer for results.
#[derive(Debug)]
struct Readback {
    slab: Rc<Slab>,
    busy: bool,
}

impl Readback {
    fn bytes(&self) -> u64 {
        self.slab.buffer.size()
    }
}

/// Buffers for as many results as may be in flight, and one for logits. A busy one stays until its result is read.
#[derive(Debug)]
pub struct Readbacks {
    /// Number of the buffers of ordinary results.
    ordinary: usize,
    all: Vec<Readback>,
}

impl Readbacks {
    /// No buffers yet, for results of so much work at a time.
    pub fn new(in_flight: u32) -> Self {
        Self { ordinary: in_flight.max(1) as usize, all: Vec::new() }
    }

    /// Adjusts the buffers to the layout. Ordinary buffers begin at the size that most results need; [`Self::free`] makes
    /// one as large as planned when a result wants it.
    pub fn adjust(&mut self, gpu: &Gpu, memory: &mut Memory) {
        let layout = memory.layout().clone();
        for index in 0..=self.ordinary {
            let bytes = if index < self.ordinary { layout.usual_readback_bytes } else { layout.logits_bytes.max(256) };
            let fits = self.all.get(index).is_some_and(|readback| readback.bytes() >= bytes || readback.busy);
            if !fits {
                self.create(index, bytes, gpu, memory);
            }
        }
    }

    fn create(&mut self, index: usize, bytes: u64, gpu: &Gpu, memory: &mut Memory) {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let slab = memory.create(&gpu.device, "readback", bytes, usage);
        let readback = Readback { slab, busy: false };
        match self.all.get_mut(index) {
            Some(smaller) => *smaller = readback,
            None => self.all.push(readback),
        }
    }

    /// Finds a free buffer with room for `bytes`, or gives a smaller free one that room, if the plan has it.
    pub fn free(&mut self, bytes: u64, gpu: &Gpu, memory: &mut Memory) -> Option<usize> {
        let found = self.all.iter().position(|readback| !readback.busy && readback.bytes() >= bytes);
        let most = memory.layout().readback_bytes;
        if found.is_some() || bytes > most {
            return found;
        }
        let smaller = self.all.iter().take(self.ordinary).position(|readback| !readback.busy)?;
        self.create(smaller, most, gpu, memory);
        Some(smaller)
    }

    /// True if some buffer has room for `bytes`, or may get it, free or busy.
    pub fn can_read(&self, bytes: u64, layout: &Layout) -> bool {
        bytes <= layout.readback_bytes || self.all.iter().any(|readback| readback.bytes() >= bytes)
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.all.iter().map(Readback::bytes).sum()
    }

    /// The first buffer with room for `bytes`, free or busy.
    pub fn first(&self, bytes: u64) -> Option<&wgpu::Buffer> {
        self.all.iter().find(|readback| readback.bytes() >= bytes).map(|readback| &readback.slab.buffer)
    }

    /// A buffer.
    pub fn buffer(&self, index: usize) -> &wgpu::Buffer {
        &self.all[index].slab.buffer
    }

    /// Marks a buffer as busy until it is read.
    pub fn begin(&mut self, index: usize) {
        self.all[index].busy = true;
    }

    /// Reads the result of a mapped buffer, and frees the buffer.
    pub fn read(&mut self, index: usize, bytes: u64, kind: Kind, gpu: &Gpu) -> Outcome {
        let Some(readback) = self.all.get_mut(index) else { return Outcome::DeviceLost };
        let outcome = match readback.slab.buffer.get_mapped_range(..bytes) {
            Ok(view) => kind.read(&view),
            Err(_) if gpu.lost() => Outcome::DeviceLost,
            Err(error) => Outcome::Failed(format!("A result could not be read: {error}")),
        };
        readback.slab.buffer.unmap();
        readback.busy = false;
        outcome
    }

    /// Frees all buffers.
    pub fn clear(&mut self) {
        self.all.clear();
    }
}
