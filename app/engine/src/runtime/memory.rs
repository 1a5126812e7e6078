//! The buffers of a layout, and ranges in them.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::runtime::layout::{Key, Layout, Purpose};

/// A buffer with a number, by which bind groups are found again.
#[derive(Debug)]
pub struct Slab {
    pub id: u32,
    pub buffer: wgpu::Buffer,
}

impl Drop for Slab {
    /// Dropping a buffer frees nothing on the web.
    fn drop(&mut self) {
        self.buffer.destroy();
    }
}

/// A range of a buffer, as it is bound.
#[derive(Clone, Debug)]
pub struct Slice {
    pub slab: Rc<Slab>,
    pub offset: u64,
    pub size: u64,
}

/// Every buffer of weights, KV cache and scratch.
#[derive(Debug, Default)]
pub struct Memory {
    buffers: BTreeMap<Key, Rc<Slab>>,
    next_id: u32,
}

impl Memory {
    /// Creates a buffer outside any layout.
    pub fn create(&mut self, device: &wgpu::Device, name: &str, size: u64, usage: wgpu::BufferUsages) -> Rc<Slab> {
        self.next_id += 1;
        let buffer =
            device.create_buffer(&wgpu::BufferDescriptor { label: Some(name), size, usage, mapped_at_creation: false });
        Rc::new(Slab { id: self.next_id, buffer })
    }

    /// Makes the buffers what `layout` says: frees first, keeps what has the same key and size, except `renewed`.
    /// Returns the renewed buffers as they were.
    pub fn adopt(
        &mut self,
        device: &wgpu::Device,
        layout: &Layout,
        renewed: impl Fn(&Key) -> bool,
    ) -> BTreeMap<Key, Rc<Slab>> {
        let mut old = BTreeMap::new();
        let before = std::mem::take(&mut self.buffers);
        for (key, slab) in before {
            if renewed(&key) {
                old.insert(key, slab);
            } else if layout.sizes.get(&key) == Some(&slab.buffer.size()) {
                self.buffers.insert(key, slab);
            }
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        for (&key, &size) in &layout.sizes {
            if !self.buffers.contains_key(&key) {
                let slab = self.create(device, &key.name(), size, usage);
                self.buffers.insert(key, slab);
            }
        }
        old
    }

    /// The buffer of a key that the layout has.
    pub fn slab(&self, key: Key) -> &Rc<Slab> {
        self.buffers.get(&key).expect("every key of the layout in force has a buffer")
    }

    /// Part of a buffer; `size` is rounded up to what alignment leaves free behind it.
    pub fn slice(&self, key: Key, offset: u64, size: u64) -> Slice {
        Slice { slab: self.slab(key).clone(), offset, size: size.next_multiple_of(256) }
    }

    /// A whole buffer.
    pub fn whole(&self, key: Key) -> Slice {
        let slab = self.slab(key).clone();
        Slice { offset: 0, size: slab.buffer.size(), slab }
    }

    /// The largest buffer of weights.
    pub fn largest_weights(&self) -> Option<&Rc<Slab>> {
        let weights = self.buffers.iter().filter(|(key, _)| key.purpose() == Purpose::Weights);
        weights.map(|(_, slab)| slab).max_by_key(|slab| slab.buffer.size())
    }

    /// Frees everything.
    pub fn clear(&mut self) {
        self.buffers.clear();
    }
}
