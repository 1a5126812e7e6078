//! The ring of mapped staging buffers through which weights reach the GPU. It exists only during a load: buffers are
//! created on first use and freed when the load ends.

use std::rc::Rc;

use potluck_plan::WeightUnit;

use crate::runtime::core::{Core, Event};
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Key, Segment};
use crate::runtime::memory::Slab;
use crate::runtime::notify::Notify;
use crate::runtime::settings::Settings;

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

/// The buffers of the ring.
#[derive(Debug)]
pub struct StagingRing {
    /// `None` for buffers not created yet.
    buffers: Vec<Option<Rc<Slab>>>,
    /// Mapped buffers that are available.
    free: Vec<usize>,
    /// Returned buffers are freed instead of kept.
    closed: bool,
    size: u64,
    /// The mapped ranges in force. A browser hands out a mapped range only once. A buffer returned without an upload is
    /// still mapped, so it must be filled through its existing range.
    #[cfg(target_arch = "wasm32")]
    ranges: Vec<Option<js_sys::ArrayBuffer>>,
}

impl StagingRing {
    /// Creates a ring without buffers.
    pub fn new(settings: &Settings) -> Self {
        let count = settings.staging_count.max(1) as usize;
        Self {
            buffers: vec![None; count],
            free: Vec::new(),
            closed: true,
            size: u64::from(settings.staging_bytes).next_multiple_of(256).max(256),
            #[cfg(target_arch = "wasm32")]
            ranges: vec![None; count],
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

    /// Number of existing buffers.
    pub fn count(&self) -> usize {
        self.buffers.iter().flatten().count()
    }

    /// True if no buffer is in use or in flight.
    pub fn is_whole(&self) -> bool {
        self.free.len() == self.count()
    }

    /// Takes back a buffer that is mapped again.
    pub fn give_back(&mut self, index: usize) {
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
        self.buffers[index] = Some(Rc::new(Slab { id: index as u32, buffer }));
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
    pub fn take(&mut self, device: &wgpu::Device, notify: &Notify) -> Option<Staging> {
        self.closed = false;
        if self.free.is_empty() {
            self.grow(device);
        }
        let index = self.free.pop()?;
        let slab = self.buffers[index].clone()?;
        #[cfg(target_arch = "wasm32")]
        if self.ranges[index].is_none() {
            self.ranges[index] = mapped_range(&slab);
        }
        Some(Staging {
            index,
            size: self.size,
            used: false,
            notify: notify.clone(),
            #[cfg(target_arch = "wasm32")]
            mapped: self.ranges[index].clone(),
            slab,
        })
    }
}

/// A mapped staging buffer. It returns to the ring after its upload, or when it is dropped.
pub struct Staging {
    index: usize,
    slab: Rc<Slab>,
    size: u64,
    used: bool,
    notify: Notify,
    #[cfg(target_arch = "wasm32")]
    mapped: Option<js_sys::ArrayBuffer>,
}

/// The raw mapped range, so that file reads write straight into it.
#[cfg(target_arch = "wasm32")]
fn mapped_range(slab: &Slab) -> Option<js_sys::ArrayBuffer> {
    use wasm_bindgen::{JsCast, JsValue};
    let buffer: &JsValue = slab.buffer.as_webgpu()?.as_ref();
    let get = js_sys::Reflect::get(buffer, &"getMappedRange".into()).ok()?;
    get.dyn_into::<js_sys::Function>().ok()?.call0(buffer).ok()?.dyn_into().ok()
}

impl Staging {
    /// Capacity in bytes.
    pub fn len(&self) -> u64 {
        self.size
    }

    /// Always false: a staging buffer has a fixed non-zero capacity.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Copies bytes in. Bytes beyond the end are dropped, and their upload is rejected.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = (offset + bytes.len() as u64).min(self.size);
        if offset >= end {
            return;
        }
        // Mapped views start at multiples of 8 and contain whole words.
        let first = offset / 8 * 8;
        let Ok(mut view) = self.slab.buffer.get_mapped_range_mut(first..end.next_multiple_of(4)) else { return };
        let skip = (offset - first) as usize;
        let len = (end - offset) as usize;
        view.slice(skip..skip + len).copy_from_slice(&bytes[..len]);
    }

    /// Copies bytes in. Bytes beyond the end are dropped, and their upload is rejected.
    #[cfg(target_arch = "wasm32")]
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = (offset + bytes.len() as u64).min(self.size);
        if offset < end {
            let len = end - offset;
            self.js_view(offset, len).copy_from(&bytes[..len as usize]);
        }
    }

    /// A view of the mapped range itself. The upload detaches it.
    #[cfg(target_arch = "wasm32")]
    pub fn js_view(&self, offset: u64, len: u64) -> js_sys::Uint8Array {
        match &self.mapped {
            Some(buffer) => js_sys::Uint8Array::new_with_byte_offset_and_length(buffer, offset as u32, len as u32),
            None => js_sys::Uint8Array::new_with_length(len as u32),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.used {
            self.notify.event(Event::Staging(self.index, true));
        }
    }
}

impl Core {
    /// Copies pieces to their tensors. The copies precede any work submitted later.
    pub fn upload(&mut self, mut staging: Staging, pieces: &[Piece]) -> Result<(), EngineError> {
        self.check_alive()?;
        #[cfg(target_arch = "wasm32")]
        if staging.mapped.is_none() {
            return Err(EngineError::Gpu("The browser gave no access to a staging buffer.".to_owned()));
        }
        let mut copies = Vec::new();
        for piece in pieces {
            self.locate(piece, staging.size, &mut copies)?;
        }
        staging.used = true;
        // Drop the view before unmapping the range.
        let Staging { slab, index, notify, .. } = &staging;
        slab.buffer.unmap();
        #[cfg(target_arch = "wasm32")]
        self.staging.forget_range(*index);
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        for (from, key, to, len) in copies {
            encoder.copy_buffer_to_buffer(&slab.buffer, from, &self.memory.slab(key).buffer, to, len);
        }
        self.gpu.queue.submit([encoder.finish()]);
        let (index, notify) = (*index, notify.clone());
        slab.buffer.map_async(wgpu::MapMode::Write, .., move |result| {
            notify.event(Event::Staging(index, result.is_ok()));
        });
        Ok(())
    }

    /// Splits a piece at the boundaries of its tensor's segments into (source offset, buffer, destination offset,
    /// length).
    fn locate(&self, piece: &Piece, staging: u64, copies: &mut Vec<(u64, Key, u64, u64)>) -> Result<(), EngineError> {
        let unit = piece.unit;
        if !self.held.contains(&unit) && !self.is_loading(unit) {
            return Err(EngineError::NotHeld(unit));
        }
        let bad = EngineError::BadPiece(unit);
        let tensor = self.units.tensors(unit).get(piece.tensor).ok_or(bad.clone())?;
        let end = piece.tensor_offset.checked_add(piece.len).ok_or(bad.clone())?;
        let staging_end = piece.staging_offset.checked_add(piece.len.next_multiple_of(4)).ok_or(bad.clone())?;
        let aligned = piece.tensor_offset.is_multiple_of(4) && piece.staging_offset.is_multiple_of(4);
        let whole = piece.len.is_multiple_of(4) || end == tensor.range.len;
        if end > tensor.range.len || staging_end > staging || !aligned || !whole {
            return Err(bad);
        }
        if let WeightUnit::Expert(block, expert) = unit {
            let places = self.layout.experts.get(&block).ok_or(EngineError::NotHeld(unit))?;
            let slot = self.expert_slot(&self.layout, (block, expert)).ok_or(EngineError::NotHeld(unit))?;
            let matrix = places.all().find(|(role, _)| *role == tensor.role).map(|(_, matrix)| matrix).ok_or(bad)?;
            let (key, at) = matrix.slot(slot);
            copies.push((piece.staging_offset, key, at + piece.tensor_offset, piece.len.next_multiple_of(4)));
            return Ok(());
        }
        let place = self.layout.places.get(&(unit, piece.tensor)).ok_or(EngineError::NotHeld(unit))?;
        let row_bytes = u64::from(place.shape.row_bytes);
        for &Segment { key, offset, first_row, bytes, .. } in &place.segments {
            let start = u64::from(first_row) * row_bytes;
            let from = piece.tensor_offset.max(start);
            let to = end.min(start + bytes);
            if from < to {
                let source = piece.staging_offset + (from - piece.tensor_offset);
                copies.push((source, key, offset + (from - start), (to - from).next_multiple_of(4)));
            }
        }
        Ok(())
    }
}
