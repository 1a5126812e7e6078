//! The buffers of a layout, and ranges within them.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::runtime::layout::{Key, Layout, Purpose};

/// A buffer with a number that identifies it in cached bind groups.
#[derive(Debug)]
pub struct Slab {
    pub id: u32,
    pub buffer: wgpu::Buffer,
}

impl Drop for Slab {
    /// On the web, dropping a buffer does not free its memory.
    fn drop(&mut self) {
        self.buffer.destroy();
    }
}

/// A buffer range to bind.
#[derive(Clone, Debug)]
pub struct Slice {
    pub slab: Rc<Slab>,
    pub offset: u64,
    pub size: u64,
}

/// The layout in force, and all its buffers of weights, KV cache and scratch.
#[derive(Debug)]
pub struct Memory {
    layout: Rc<Layout>,
    buffers: BTreeMap<Key, Rc<Slab>>,
    next_id: u32,
}

impl Memory {
    /// Memory without any buffer yet.
    pub fn new(layout: Layout) -> Self {
        Self { layout: Rc::new(layout), buffers: BTreeMap::new(), next_id: 0 }
    }

    /// The layout in force.
    pub fn layout(&self) -> &Rc<Layout> {
        &self.layout
    }

    /// Creates a buffer outside any layout.
    pub fn create(&mut self, device: &wgpu::Device, name: &str, size: u64, usage: wgpu::BufferUsages) -> Rc<Slab> {
        self.next_id += 1;
        let buffer =
            device.create_buffer(&wgpu::BufferDescriptor { label: Some(name), size, usage, mapped_at_creation: false });
        Rc::new(Slab { id: self.next_id, buffer })
    }

    /// Puts `layout` in force, and changes the buffers to it: frees first, and keeps buffers with the same key and size
    /// except those in `renewed`. Returns the old buffers of `renewed`.
    pub fn adopt(
        &mut self,
        device: &wgpu::Device,
        layout: Layout,
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
        self.layout = Rc::new(layout);
        old
    }

    /// The buffer of a key in the current layout.
    pub fn slab(&self, key: Key) -> &Rc<Slab> {
        self.buffers.get(&key).expect("every key of the layout in force has a buffer")
    }

    /// The buffer of a key, if the layout in force has one.
    pub fn find(&self, key: Key) -> Option<&Rc<Slab>> {
        self.buffers.get(&key)
    }

    /// Part of a buffer. `size` is rounded up into the padding that alignment leaves behind it.
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

    /// Frees all buffers.
    pub fn clear(&mut self) {
        self.buffers.clear();
    }
}
