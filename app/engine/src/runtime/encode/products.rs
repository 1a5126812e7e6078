//! Products of batches of vectors with matrices, whose weights may lie in several buffers.

use potluck_plan::KernelClass;
use potluck_shaders::{Kernel, params};

use super::{Batch, Encoder, Product};
use crate::runtime::layout::{Place, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::sizes::{halved_row_bytes, packed_row_bytes};

impl Encoder<'_> {
    /// Matrix times the batch.
    pub(super) fn product(&mut self, place: &Place, batch: Batch, to: Product<'_>) {
        match batch.class {
            KernelClass::Decode => self.decode_product(place, batch, to),
            KernelClass::Prefill => self.prefill_product(place, batch, to),
        }
    }

    /// `n` vectors as a kernel reads them, and the distance from one to the next in its elements: quantized for a packed
    /// product or halved for the matrix units, unless the product before needed them too.
    pub(super) fn input(&mut self, kernel: Kernel, x: &Slice, n: u32, cols: u32) -> (Slice, u32) {
        match kernel {
            Kernel::Packed { .. } => self.quantized(x, n, cols),
            Kernel::Matrix { .. } => self.halved(x, n, cols),
            _ => (x.clone(), cols / 4),
        }
    }

    /// `n` vectors in blocks of signed bytes, and the distance from one to the next in fours of words.
    fn quantized(&mut self, x: &Slice, n: u32, cols: u32) -> (Slice, u32) {
        let packed = self.model.scratch(Scratch::Packed);
        let stride = (packed_row_bytes(u64::from(cols)) / 16) as u32;
        if !self.rec.is_quantized(x) {
            let params = params::Quantize { n, blocks: cols / 32, x_stride: cols / 4, y_stride: stride };
            let groups = Self::groups(Kernel::Quantize, n * params.blocks);
            self.dispatch(Kernel::Quantize, &[x, &packed], &params, groups, 1);
            self.rec.quantized(x);
        }
        (packed, stride)
    }

    /// `n` vectors as scaled half floats, and the distance from one to the next in fours of them.
    fn halved(&mut self, x: &Slice, n: u32, cols: u32) -> (Slice, u32) {
        let halved = self.model.scratch(Scratch::Packed);
        let stride = (halved_row_bytes(u64::from(cols)) / 8) as u32;
        if !self.rec.is_quantized(x) {
            let params = params::Halve { n, quads: cols / 4, x_stride: cols / 4, y_stride: stride };
            self.dispatch(Kernel::Halve, &[x, &halved], &params, n, 1);
            self.rec.quantized(x);
        }
        (halved, stride)
    }

    /// Matrix times `n` vectors, segment by segment, with a kernel that takes `vectors` at a time.
    pub(super) fn segments_product(&mut self, kernel: Kernel, vectors: u32, place: &Place, n: u32, to: Product<'_>) {
        let shape = place.shape;
        let (x, x_stride) = self.input(kernel, to.x, n, shape.cols);
        for segment in &place.segments {
            let params = params::MatVec {
                rows: segment.rows,
                row_bytes: shape.row_bytes,
                cols: shape.cols,
                chunks: shape.chunks(),
                n,
                x_stride,
                y_stride: to.y_stride,
                y_offset: to.y_offset + segment.first_row,
                add: u32::from(to.add),
                ..Default::default()
            };
            let weights = self.model.memory.slice(segment.key, segment.offset, segment.bytes);
            let bias = to.bias.as_ref().map(|bias| Slice {
                slab: bias.slab.clone(),
                offset: bias.offset + u64::from(segment.first_row) * 4,
                size: bias.size - u64::from(segment.first_row) * 4,
            });
            let mut bindings = vec![&weights, &x, to.y];
            bindings.extend(&bias);
            let x = segment.rows.div_ceil(kernel.matrix_rows());
            let z = n.div_ceil(vectors);
            self.dispatch(kernel, &bindings, &params, x, z);
            self.rec.cost(segment.bytes * u64::from(z));
        }
    }
}
