//! The ring of mapped staging buffers through which weights reach the GPU. It exists only during a load: buffers are
//! created on first use and freed when the load ends.

#[cfg(target_arch = "wasm32")]
use std::rc::Rc as Shared;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc as Shared;

use potluck_plan::WeightUnit;

use crate::runtime::error::EngineError;
use crate::runtime::events::Event;
use crate::runtime::gpu::Gpu;
use crate::runtime::layout::Key;
use crate::runtime::memory::Memory;
use crate::runtime::notify::Notify;
use crate::runtime::settings::Settings;
use crate::runtime::staging_part::{BufferHold, Sample, StagingBuffer, StagingPart};
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::upload_wait::UploadWait;

/// A range of a tensor's bytes in a staging buffer. `tensor_offset` and `staging_offset` are multiples of 4; so is
/// `len`, except at the end of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The tensor's unit.
    pub unit: WeightUnit,
    /// The tensor, as an index into `UnitMap::tensors(unit)`.
    pub tensor: usize,
    /// Destination offset in the tensor.
    pub tensor_offset: u64,
    /// Source offset in the staging buffer.
    pub staging_offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Bytes of a staging buffer on their way to a tensor.
pub struct StagedCopy {
    /// Offset in the staging buffer.
    pub from: u64,
    /// The buffer of the tensor.
    pub key: Key,
    /// Offset in that buffer.
    pub to: u64,
    /// Number of bytes.
    pub len: u64,
}

/// The buffers of the ring.
pub struct StagingRing {
    /// `None` for buffers not created yet.
    buffers: Vec<Option<Shared<StagingBuffer>>>,
    /// Mapped buffers that are available.
    free: Vec<usize>,
    /// Buffers whose bytes are being copied to tensors.
    uploads: Vec<usize>,
    /// Returned buffers are freed instead of kept.
    closed: bool,
    size: u64,
    /// The mapped ranges in force. A browser hands out a mapped range only once. A buffer returned without an upload is
    /// still mapped, so it must be filled through its existing range.
    #[cfg(target_arch = "wasm32")]
    ranges: Vec<Option<js_sys::ArrayBuffer>>,
    #[cfg(not(target_arch = "wasm32"))]
    wait: UploadWait,
}

impl StagingRing {
    /// Creates a ring without buffers.
    pub fn new(settings: &Settings) -> Self {
        let count = settings.staging_count.max(1) as usize;
        Self {
            buffers: vec![None; count],
            free: Vec::new(),
            uploads: Vec::new(),
            closed: true,
            size: u64::from(settings.staging_bytes).next_multiple_of(256).max(256),
            #[cfg(target_arch = "wasm32")]
            ranges: vec![None; count],
            #[cfg(not(target_arch = "wasm32"))]
            wait: UploadWait::default(),
        }
    }

    /// Frees the buffers. Those in use or in flight are freed when they return.
    pub fn close(&mut self) {
        self.closed = true;
        while let Some(index) = self.free.pop() {
            self.drop_buffer(index);
        }
    }

    fn drop_buffer(&mut self, index: usize) {
        if let Some(buffer) = self.buffers.get_mut(index) {
            *buffer = None;
        }
        #[cfg(target_arch = "wasm32")]
        self.forget_range(index);
    }

    /// Bytes of a buffer.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of existing buffers.
    pub fn count(&self) -> usize {
        self.buffers.iter().flatten().count()
    }

    /// True if no buffer is in use or in flight.
    pub fn is_whole(&self) -> bool {
        self.free.len() == self.count()
    }

    /// Number of buffers whose bytes are being copied to tensors.
    pub fn uploads(&self) -> usize {
        self.uploads.len()
    }

    /// Takes back a buffer that is mapped again.
    pub fn give_back(&mut self, index: usize) {
        self.uploads.retain(|upload| *upload != index);
        if self.closed {
            self.drop_buffer(index);
        } else if self.buffers.get(index).is_some_and(Option::is_some) {
            self.free.push(index);
        }
    }

    /// Creates one more buffer, if the ring has room.
    fn grow(&mut self, device: &wgpu::Device) {
        let Some(index) = self.buffers.iter().position(Option::is_none) else { return };
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("staging"),
            size: self.size,
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        self.buffers[index] = Some(Shared::new(StagingBuffer(buffer)));
        self.free.push(index);
    }

    /// Drops the range of a buffer whose unmapping detached it.
    #[cfg(target_arch = "wasm32")]
    fn forget_range(&mut self, index: usize) {
        if let Some(range) = self.ranges.get_mut(index) {
            *range = None;
        }
    }

    /// Returns a free buffer, creating one if the ring has room.
    pub fn take(&mut self, gpu: &Gpu, notify: &Notify) -> Option<Staging> {
        self.closed = false;
        if self.free.is_empty() {
            self.grow(&gpu.device);
        }
        let index = self.free.pop()?;
        let buffer = self.buffers[index].clone()?;
        #[cfg(target_arch = "wasm32")]
        if self.ranges[index].is_none() {
            self.ranges[index] = mapped_range(&buffer);
        }
        Some(Staging {
            size: self.size,
            #[cfg(not(target_arch = "wasm32"))]
            closed: gpu.closed().clone(),
            #[cfg(target_arch = "wasm32")]
            mapped: self.ranges[index].clone(),
            hold: BufferHold::new(buffer, index, self.size, notify.clone()),
        })
    }

    /// Copies bytes to their tensors. The copies precede any work submitted later; the buffer returns after them.
    pub fn upload(&mut self, staging: &Staging, copies: &[StagedCopy], gpu: &Gpu, memory: &Memory) {
        let hold = &staging.hold;
        hold.upload();
        let (buffer, index, notify) = (hold.buffer.0.clone(), hold.index, hold.notify.clone());
        buffer.unmap();
        #[cfg(target_arch = "wasm32")]
        self.forget_range(index);
        self.uploads.push(index);
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        for copy in copies {
            let to = &memory.slab(copy.key).buffer;
            encoder.copy_buffer_to_buffer(&buffer, copy.from, to, copy.to, copy.len);
        }
        let submission = gpu.queue.submit([encoder.finish()]);
        let mapped = notify.clone();
        buffer.map_async(wgpu::MapMode::Write, .., move |result| {
            mapped.event(Event::Staging(index, result.is_ok()));
        });
        #[cfg(not(target_arch = "wasm32"))]
        self.wait.until(gpu, submission, notify);
        #[cfg(target_arch = "wasm32")]
        drop((submission, notify));
    }
}

/// A mapped staging buffer. It returns to the ring after its upload, or when it and all parts of it are dropped.
pub struct Staging {
    size: u64,
    #[cfg(not(target_arch = "wasm32"))]
    closed: crate::runtime::gpu::Closed,
    #[cfg(target_arch = "wasm32")]
    mapped: Option<js_sys::ArrayBuffer>,
    hold: Shared<BufferHold>,
}

/// The raw mapped range, so that file reads write straight into it.
#[cfg(target_arch = "wasm32")]
fn mapped_range(buffer: &StagingBuffer) -> Option<js_sys::ArrayBuffer> {
    use wasm_bindgen::{JsCast, JsValue};
    let buffer: &JsValue = buffer.0.as_webgpu()?.as_ref();
    let get = js_sys::Reflect::get(buffer, &"getMappedRange".into()).ok()?;
    get.dyn_into::<js_sys::Function>().ok()?.call0(buffer).ok()?.dyn_into().ok()
}

impl Staging {
    /// Capacity in bytes.
    pub fn len(&self) -> u64 {
        self.size
    }

    /// Whether its bytes can be uploaded.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if self.hold.has_parts_out() {
            return Err(EngineError::PartsOut);
        }
        #[cfg(target_arch = "wasm32")]
        if self.mapped.is_none() {
            return Err(EngineError::Gpu("The browser gave no access to a staging buffer.".to_owned()));
        }
        Ok(())
    }

    /// The first bytes of the piece at `offset`, as they were written.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn sample(&self, offset: u64) -> Option<Sample> {
        self.hold.noted(offset)
    }

    /// The first bytes of the piece at `offset`: a browser's mapped memory can be read.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn sample(&self, offset: u64) -> Option<Sample> {
        let mut sample = Sample::default();
        if offset + sample.len() as u64 > self.size {
            return None;
        }
        let mapped = self.mapped.as_ref()?;
        let len = sample.len() as u32;
        js_sys::Uint8Array::new_with_byte_offset_and_length(mapped, offset as u32, len).copy_to(&mut sample);
        Some(sample)
    }

    /// Always false: a staging buffer has a fixed non-zero capacity.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// An owned part of the buffer, to be filled elsewhere. `offset` must be a multiple of 8. `None` if the part does not lie in
    /// the buffer, or overlaps one that is not back: up to the next multiple of 8 the bytes behind a part belong to it.
    pub fn part(&self, offset: u64, len: u64) -> Option<StagingPart> {
        #[cfg(not(target_arch = "wasm32"))]
        let part = StagingPart::new(&self.hold, &self.closed, offset, len);
        #[cfg(target_arch = "wasm32")]
        let part = StagingPart::new(&self.hold, self.mapped.as_ref()?, offset, len);
        part
    }

    /// Copies bytes in, where no part is out. Bytes beyond the end are dropped, and their upload is rejected.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = (offset + bytes.len() as u64).min(self.size);
        if offset >= end {
            return;
        }
        // Mapped views start at multiples of 8 and contain whole words.
        let first = offset / 8 * 8;
        let Ok(mut view) = self.hold.buffer.0.get_mapped_range_mut(first..end.next_multiple_of(4)) else { return };
        let skip = (offset - first) as usize;
        let len = (end - offset) as usize;
        self.hold.note(offset, &bytes[..len]);
        view.slice(skip..skip + len).copy_from_slice(&bytes[..len]);
    }

    /// Copies bytes in, where no part is out. Bytes beyond the end are dropped, and their upload is rejected.
    #[cfg(target_arch = "wasm32")]
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = (offset + bytes.len() as u64).min(self.size);
        if let (Some(buffer), true) = (&self.mapped, offset < end) {
            let len = (end - offset) as u32;
            let view = js_sys::Uint8Array::new_with_byte_offset_and_length(buffer, offset as u32, len);
            view.copy_from(&bytes[..len as usize]);
        }
    }
}
