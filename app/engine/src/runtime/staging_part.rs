//! Parts of a mapped staging buffer: owned, so that natively another thread can fill them. The buffer returns to its ring
//! when nobody has any of it.

use std::collections::BTreeMap;
#[cfg(target_arch = "wasm32")]
use std::rc::Rc as Shared;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc as Shared;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::runtime::events::Event;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::gpu::Closed;
use crate::runtime::notify::Notify;

/// A staging buffer, freed when its ring and all parts of it are gone: a thread may be writing into one.
#[derive(Debug)]
pub struct StagingBuffer(pub wgpu::Buffer);

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        self.0.destroy();
    }
}

/// The ranges of a buffer that are out as parts.
#[derive(Debug, Default)]
struct PartsOut(BTreeMap<u64, u64>);

impl PartsOut {
    /// Parts start here: mapped ranges do.
    const ALIGNMENT: u64 = 8;

    /// Takes a range of a buffer of `size` bytes, up to the next place where a part may start; `None` if it lies outside,
    /// starts elsewhere or overlaps another.
    fn take(&mut self, offset: u64, len: u64, size: u64) -> Option<u64> {
        let end = offset.checked_add(len)?.checked_next_multiple_of(Self::ALIGNMENT)?;
        let before = self.0.range(..end).next_back();
        let overlaps = before.is_some_and(|(_, before)| *before > offset);
        if len == 0 || !offset.is_multiple_of(Self::ALIGNMENT) || end > size || overlaps {
            return None;
        }
        self.0.insert(offset, end);
        Some(end)
    }
}

/// What a staging buffer and its parts share. Gone with the last of them; then the buffer returns to its ring, unless it
/// was uploaded.
pub struct BufferHold {
    pub buffer: Shared<StagingBuffer>,
    pub index: usize,
    pub notify: Notify,
    size: u64,
    uploaded: AtomicBool,
    out: Mutex<PartsOut>,
    /// The first bytes of each write, by where it begins: natively mapped memory cannot be read.
    #[cfg(not(target_arch = "wasm32"))]
    written: Mutex<BTreeMap<u64, Sample>>,
}

/// The first bytes of a piece, with which the GPU's copy is compared.
pub type Sample = [u8; SAMPLE_BYTES];

/// Bytes of a [`Sample`].
pub const SAMPLE_BYTES: usize = 16;

impl BufferHold {
    /// Of a mapped buffer of `size` bytes, the ring's number `index`.
    pub fn new(buffer: Shared<StagingBuffer>, index: usize, size: u64, notify: Notify) -> Shared<Self> {
        let (uploaded, out) = (AtomicBool::new(false), Mutex::default());
        #[cfg(not(target_arch = "wasm32"))]
        let written = Mutex::default();
        Shared::new(Self {
            buffer,
            index,
            notify,
            size,
            uploaded,
            out,
            #[cfg(not(target_arch = "wasm32"))]
            written,
        })
    }

    /// Bytes are written at `offset`.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn note(&self, offset: u64, bytes: &[u8]) {
        if let (Some(sample), Ok(mut written)) = (bytes.first_chunk(), self.written.lock()) {
            written.insert(offset, *sample);
        }
    }

    /// The first bytes of the write that began at `offset`.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn noted(&self, offset: u64) -> Option<Sample> {
        self.written.lock().ok()?.get(&offset).copied()
    }

    /// The upload has begun: the buffer returns when it is mapped again.
    pub fn upload(&self) {
        self.uploaded.store(true, Ordering::SeqCst);
    }

    /// True if a part is out.
    pub fn has_parts_out(&self) -> bool {
        self.out.lock().is_ok_and(|out| !out.0.is_empty())
    }

    /// Takes a range as a part.
    fn take(self: &Shared<Self>, offset: u64, len: u64) -> Option<(u64, Range)> {
        let end = self.out.lock().ok()?.take(offset, len, self.size)?;
        Some((end, Range { hold: self.clone(), offset }))
    }
}

impl Drop for BufferHold {
    fn drop(&mut self) {
        if !self.uploaded.load(Ordering::SeqCst) {
            self.notify.event(Event::Staging(self.index, true));
        }
    }
}

/// A range that is out; it comes back when this is dropped.
struct Range {
    hold: Shared<BufferHold>,
    offset: u64,
}

impl Drop for Range {
    fn drop(&mut self) {
        if let Ok(mut out) = self.hold.out.lock() {
            out.0.remove(&self.offset);
        }
    }
}

/// An owned part of a mapped staging buffer. Natively it may be sent to another thread to be filled. It comes back when it is
/// dropped, filled or not.
pub struct StagingPart {
    /// Gone before the range comes back.
    #[cfg(not(target_arch = "wasm32"))]
    view: wgpu::BufferViewMut,
    #[cfg(not(target_arch = "wasm32"))]
    closed: Closed,
    #[cfg(target_arch = "wasm32")]
    view: js_sys::Uint8Array,
    len: u64,
    inspector: Option<Inspector>,
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "it comes back when it is dropped"))]
    range: Range,
}

/// Sees bytes and where in the part they lie.
#[cfg(not(target_arch = "wasm32"))]
type Inspector = Box<dyn FnMut(u64, &[u8]) + Send + Sync>;
#[cfg(target_arch = "wasm32")]
type Inspector = Box<dyn FnMut(u64, &[u8])>;

impl StagingPart {
    /// From now on `inspector` sees the bytes that are written, and where in the part. What a browser reads straight into
    /// [`StagingPart::js_view`] it does not see.
    #[cfg(target_arch = "wasm32")]
    pub fn inspect(&mut self, inspector: impl FnMut(u64, &[u8]) + 'static) {
        self.inspector = Some(Box::new(inspector));
    }

    /// From now on `inspector` sees the bytes that are written, and where in the part.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn inspect(&mut self, inspector: impl FnMut(u64, &[u8]) + Send + Sync + 'static) {
        self.inspector = Some(Box::new(inspector));
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always false: nobody gets an empty part.
    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl StagingPart {
    /// Bytes that pass a buffer at a time: they stay in a processor's cache. Mapped memory can only be written to, and files are
    /// read into ordinary memory.
    const CHUNK: usize = 512 << 10;

    pub(super) fn new(hold: &Shared<BufferHold>, closed: &Closed, offset: u64, len: u64) -> Option<Self> {
        let (end, range) = hold.take(offset, len)?;
        let view = hold.buffer.0.get_mapped_range_mut(offset..end).ok()?;
        Some(Self { view, closed: closed.clone(), len, inspector: None, range })
    }

    /// Fills the part from its beginning: `read` is given buffers to fill, one after the other, and where in the part they lie.
    ///
    /// # Errors
    /// The first error of `read`.
    pub fn fill<E>(&mut self, mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>) -> Result<(), E> {
        thread_local! {
            static CHUNK: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        // Taken, not borrowed: `read` may be anything.
        let mut chunk = CHUNK.take();
        chunk.resize(Self::CHUNK, 0);
        let mut at = 0;
        let mut filled = Ok(());
        while at < self.len && filled.is_ok() {
            let bytes = &mut chunk[..(self.len - at).min(Self::CHUNK as u64) as usize];
            filled = read(at, bytes);
            if filled.is_ok() {
                self.write(at, bytes);
            }
            at += bytes.len() as u64;
        }
        CHUNK.set(chunk);
        filled
    }

    /// Copies bytes in. Bytes beyond the end are dropped.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        if let Some(inspector) = &mut self.inspector {
            inspector(at, bytes);
        }
        let end = (at + bytes.len() as u64).min(self.len);
        if at < end && self.closed.read().is_ok_and(|closed| !*closed) {
            self.range.hold.note(self.range.offset + at, &bytes[..(end - at) as usize]);
            self.view.slice(at as usize..end as usize).copy_from_slice(&bytes[..(end - at) as usize]);
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl StagingPart {
    pub(super) fn new(hold: &Shared<BufferHold>, mapped: &js_sys::ArrayBuffer, offset: u64, len: u64) -> Option<Self> {
        let (_, range) = hold.take(offset, len)?;
        let view = js_sys::Uint8Array::new_with_byte_offset_and_length(mapped, offset as u32, len as u32);
        Some(Self { view, len, inspector: None, range })
    }

    /// Copies bytes in. Bytes beyond the end are dropped.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        if let Some(inspector) = &mut self.inspector {
            inspector(at, bytes);
        }
        let end = (at + bytes.len() as u64).min(self.len);
        if at < end {
            self.view.subarray(at as u32, end as u32).copy_from(&bytes[..(end - at) as usize]);
        }
    }

    /// The mapped range itself, so that file reads write straight into it.
    pub fn js_view(&self) -> &js_sys::Uint8Array {
        &self.view
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_part_can_be_sent_to_a_thread() {
        fn is_send<T: Send>() {}
        is_send::<StagingPart>();
    }

    #[test]
    fn parts_that_overlap_leave_the_buffer_or_start_in_between_are_refused() {
        let mut out = PartsOut::default();
        assert_eq!(out.take(16, 10, 64), Some(32), "up to where the next part may start");
        for (offset, len) in [(16, 8), (24, 8), (8, 9), (0, 64), (24, 1)] {
            assert_eq!(out.take(offset, len, 64), None, "{len} bytes at {offset} overlap 16 to 32");
        }
        for (offset, len) in [(60, 4), (4, 4), (56, 9), (64, 8), (40, 0), (u64::MAX - 7, 8), (8, u64::MAX)] {
            assert_eq!(out.take(offset, len, 64), None, "{len} bytes at {offset}");
        }
        assert_eq!(out.take(32, 32, 64), Some(64));
        assert_eq!(out.take(8, 8, 64), Some(16));
        assert_eq!(out.take(0, 1, 64), Some(8));
        out.0.remove(&16);
        assert_eq!(out.take(16, 16, 64), Some(32), "it came back");
    }
}
