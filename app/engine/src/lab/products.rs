//! Times products with many vectors, one kernel beside the other, to judge tiles.

use std::rc::Rc;

use potluck_shaders::{Format, Kernel, Operand, params};

use crate::lab::bench::kernels::Part;
use crate::lab::microbench::Microbench;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::sizes::{halved_row_bytes, packed_row_bytes, tile_count};

/// Experts per token of a product of chosen experts.
const USED: u32 = 8;
/// Warm-ups before the first measurement, of 150 ms and more.
const WARM_UPS: usize = 6;

/// A product of a prompt's vectors: matrix rows and columns, and how many vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductSize {
    /// The format of the matrix.
    pub format: Format,
    /// Rows of the matrix.
    pub rows: u32,
    /// Columns of the matrix.
    pub cols: u32,
    /// Vectors. Each is multiplied by the matrices of 8 experts, if there are any.
    pub n: u32,
    /// 0, or as many matrices of that size as there are experts.
    pub experts: u32,
}

impl ProductSize {
    fn row_bytes(&self) -> u32 {
        self.format.row_bytes(self.cols).unwrap_or(self.cols * 4)
    }

    /// Vectors, counted once for each expert that they choose.
    pub fn pairs(&self) -> u32 {
        if self.experts == 0 { self.n } else { self.n * USED }
    }

    /// Operations: two for each multiplication.
    pub fn operations(&self) -> f64 {
        2.0 * f64::from(self.rows) * f64::from(self.cols) * f64::from(self.pairs())
    }

    /// Quads (or their likes) from one vector to the next, and its bytes.
    fn vector(&self, kernel: Kernel) -> (u32, u64) {
        let cols = u64::from(self.cols);
        match kernel {
            Kernel::Packed { .. } => ((packed_row_bytes(cols) / 16) as u32, packed_row_bytes(cols)),
            Kernel::Matrix { .. } => ((halved_row_bytes(cols) / 8) as u32, halved_row_bytes(cols)),
            _ => (self.cols / 4, cols * 4),
        }
    }

    fn params(&self, kernel: Kernel) -> params::MatVec {
        params::MatVec {
            rows: self.rows,
            row_bytes: self.row_bytes(),
            cols: self.cols,
            chunks: self.cols / 16,
            n: self.pairs(),
            x_stride: self.vector(kernel).0,
            y_stride: self.rows,
            experts: self.experts,
            used: USED,
            slot_count: self.experts,
            expert_bytes: self.rows * self.row_bytes(),
            ..Default::default()
        }
    }

    /// The (token, expert) pairs by expert, and the tiles of `vectors` of them: all experts are chosen about as often.
    fn lists(&self, vectors: u32) -> (Vec<[u32; 4]>, Vec<u32>) {
        let mut state = 1;
        let mut by_expert = vec![Vec::new(); self.experts as usize];
        for pair in 0..self.pairs() {
            by_expert[(potluck_plan::random::step(&mut state) % u64::from(self.experts)) as usize].push(pair);
        }
        let mut tiles = Vec::new();
        let mut first = 0;
        for (slot, pairs) in by_expert.iter().enumerate() {
            for tile in pairs.chunks(vectors as usize) {
                tiles.push([first, tile.len() as u32, slot as u32, 0]);
                first += tile.len() as u32;
            }
        }
        tiles.resize(tile_count(vectors, u64::from(self.pairs()), u64::from(self.experts)) as usize, [0; 4]);
        (tiles, by_expert.concat())
    }
}

impl Engine {
    /// Milliseconds of each product with its kernel, on zeros, at a warm clock: everything is compiled before the first one is
    /// measured.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn product_times(&self, products: &[(Kernel, ProductSize)]) -> Result<Vec<f64>, EngineError> {
        let parts: Vec<(Part, Microbench)> =
            products.iter().map(|&(kernel, size)| self.product(kernel, size)).collect();
        // Compiling took long enough for the clock to fall, and no warm-up brings it back in one go.
        for _ in 0..WARM_UPS {
            if let Some((part, _)) = parts.last() {
                self.warm_up(part, f64::INFINITY).await?;
            }
        }
        let mut times = Vec::with_capacity(parts.len());
        for (part, _) in &parts {
            times.push(self.clock(part).await?.1);
        }
        Ok(times)
    }

    /// A product to time, and its buffers, which must outlive it.
    fn product(&self, kernel: Kernel, size: ProductSize) -> (Part, Microbench) {
        let mut core = self.inner.core.borrow_mut();
        let params = size.params(kernel);
        let matrices = u64::from(params.expert_bytes) * u64::from(size.experts.max(1));
        let (inputs, outputs) = (u64::from(size.n), u64::from(size.pairs()) * u64::from(size.rows) * 4);
        let mut sizes = vec![matrices, inputs * size.vector(kernel).1, outputs];
        let mut lists = None;
        let mut z = size.n.div_ceil(kernel.vectors());
        if let Kernel::MatMul { operand: Operand::Expert, .. } | Kernel::Packed { operand: Operand::Expert, .. } =
            kernel
        {
            let (tiles, pairs) = size.lists(kernel.vectors());
            z = tiles.len() as u32;
            sizes.extend([16 * tiles.len() as u64, 4 * pairs.len() as u64]);
            lists = Some((tiles, pairs));
        }
        let groups = [size.rows.div_ceil(kernel.matrix_rows()), z];
        let microbench = core.microbench(kernel, &sizes, bytemuck::bytes_of(&params), groups);
        if let Some((tiles, pairs)) = lists {
            core.fill(&microbench, 3, bytemuck::cast_slice(&tiles));
            core.fill(&microbench, 4, bytemuck::cast_slice(&pairs));
        }
        (Part::whole(Rc::new(core.microbench_program(&microbench))), microbench)
    }
}
