//! Test cases for fused products with matrices of chosen experts.

use potluck_shaders::{Format, Job, Kernel, NO_SLOT, params, reference};

use super::{activated, sizes, vectors};
use crate::lab::selftest::Case;
use crate::lab::selftest::case::{SLOTS, case, floats};
use crate::lab::selftest::data::{Matrices, Random, Weights, raw};

/// Experts of a token in a case of [`Job::ExpertSum`] or [`Job::BiasedSum`].
pub fn summed(case: &Case) -> Option<u32> {
    let is_sum = matches!(case.probe.kernel, Kernel::Fused { job, .. } if job.sums());
    is_sum.then(|| bytemuck::pod_read_unaligned::<params::Fused>(&case.probe.params).used)
}

/// Matrices of 21 rows, each padded to a multiple of 256 bytes.
fn padded(w: &Weights) -> (Vec<u8>, usize) {
    let bytes = w.bytes.len() / (w.rows as usize / 21);
    let stride = bytes.next_multiple_of(256);
    let matrices = w.bytes.chunks_exact(bytes);
    (matrices.flat_map(|m| m.iter().copied().chain(std::iter::repeat_n(0, stride - bytes))).collect(), stride)
}

/// Chosen experts of five tokens, two each; slots 1 to 3 are in the binding.
pub(super) const CHOSEN: [u32; 10] = [0, 3, 1, 4, 2, 0, NO_SLOT, 3, 4, 0];

/// The binding's slot that a pair uses.
fn slot(pair: usize) -> Option<usize> {
    let slot = SLOTS.get(CHOSEN[pair] as usize).copied().unwrap_or(NO_SLOT);
    (slot != NO_SLOT && slot >= 1).then(|| slot as usize - 1)
}

/// Biases of each slot: of the first matrix, and of the second.
const BIASES: [usize; 2] = [3, 30];
const BIAS_STRIDE: usize = 64;

/// Biases of slots 0 to 3.
fn biases() -> Vec<f32> {
    Random(18).floats(4 * BIAS_STRIDE)
}

/// Adds the biases of a job's matrix in one of the binding's slots.
fn add_bias(y: &mut [f32], job: Job, slot: usize, matrix: usize) {
    let biases = biases();
    let biases = &biases[(slot + 1) * BIAS_STRIDE + BIASES[matrix]..];
    y.iter_mut().zip(biases).filter(|_| job.is_biased()).for_each(|(y, bias)| *y += bias);
}

pub(super) fn gated_expert(kernel: Kernel, format: Format, m: &Matrices<'_>, job: Job) -> Case {
    let mut random = Random(14);
    let w = m.weights(&mut random, format, 3 * 2 * 21);
    let (cols, pairs) = (w.cols as usize, CHOSEN.len());
    let x = vectors(kernel, &mut random, pairs / 2 * cols);
    let mut expected = vec![0.5f32; pairs * 21];
    for (pair, y) in expected.chunks_exact_mut(21).enumerate() {
        let Some(slot) = slot(pair) else { continue };
        let matrix = |i: usize| &w.values[i * 21 * cols..][..21 * cols];
        let x = &x[pair / 2 * cols..][..cols];
        let [gate, up] = [0, 1].map(|i| {
            let mut sums = reference::matvec(matrix(2 * slot + i), x);
            add_bias(&mut sums, job, slot, i);
            sums
        });
        y.copy_from_slice(&activated(job, &gate, &up));
    }
    let (bytes, stride) = padded(&w);
    let params = params::Fused {
        rows: 21,
        end_0: 21,
        end_1: 21,
        n: pairs as u32,
        y_stride: 21,
        up: stride as u32,
        expert_bytes: 2 * stride as u32,
        ..experts(kernel, &w)
    };
    let mut bindings = vec![bytes, raw(&x), raw(&vec![0.5f32; pairs * 21]), raw(&SLOTS), raw(&CHOSEN)];
    bindings.extend(job.is_biased().then(|| raw(&biases())));
    case(kernel, bindings, params, (21u32.div_ceil(kernel.matrix_rows()), pairs as u32), 2, floats(expected))
}

fn experts(kernel: Kernel, w: &Weights) -> params::Fused {
    let [bias_0, bias_1, bias_stride] = [BIASES[0], BIASES[1], BIAS_STRIDE].map(|at| at as u32);
    params::Fused { experts: 6, used: 2, slot_first: 1, slot_count: 3, bias_0, bias_1, bias_stride, ..sizes(kernel, w) }
}

/// What a product with a matrix of each chosen expert reads, for the pairs of [`CHOSEN`].
struct Downs {
    weights: Weights,
    x: Vec<f32>,
    /// The weights as they are bound, and bytes from one expert to the next.
    bytes: Vec<u8>,
    stride: usize,
    job: Job,
}

impl Downs {
    fn new(kernel: Kernel, format: Format, m: &Matrices<'_>, job: Job) -> Self {
        let mut random = Random(15);
        let weights = m.weights(&mut random, format, 3 * 21);
        let x = vectors(kernel, &mut random, CHOSEN.len() * weights.cols as usize);
        let (bytes, stride) = padded(&weights);
        Self { weights, x, bytes, stride, job }
    }

    /// Vector of a pair whose expert is here.
    fn output(&self, pair: usize) -> Option<Vec<f32>> {
        let cols = self.weights.cols as usize;
        let matrix = &self.weights.values[slot(pair)? * 21 * cols..][..21 * cols];
        let mut output = reference::matvec(matrix, &self.x[pair * cols..][..cols]);
        add_bias(&mut output, self.job, slot(pair)?, 0);
        Some(output)
    }

    /// `used` experts of each of `n` tokens.
    fn params(&self, kernel: Kernel, n: usize, used: usize) -> params::Fused {
        params::Fused {
            rows: 21,
            end_0: 21,
            end_1: 21,
            n: n as u32,
            y_stride: 21,
            used: used as u32,
            expert_bytes: self.stride as u32,
            ..experts(kernel, &self.weights)
        }
    }
}

/// Values where a product is not computed.
const BEFORE: f32 = 0.5;

pub(super) fn expert_down(kernel: Kernel, format: Format, m: &Matrices<'_>, job: Job) -> Case {
    let (downs, pairs) = (Downs::new(kernel, format, m, job), CHOSEN.len());
    let before = vec![BEFORE; pairs * 21];
    let expected = (0..pairs).flat_map(|pair| downs.output(pair).unwrap_or_else(|| vec![BEFORE; 21])).collect();
    let params = downs.params(kernel, pairs, 1);
    let mut bindings = vec![downs.bytes, raw(&downs.x), raw(&before), raw(&SLOTS), raw(&CHOSEN)];
    bindings.extend(job.is_biased().then(|| raw(&biases())));
    case(kernel, bindings, params, (21u32.div_ceil(kernel.matrix_rows()), pairs as u32), 2, floats(expected))
}

/// Adds the weighted outputs of all experts of each token, or with ten experts stores their sum. With one expert of weight 1, which is added to zeros, these
/// are the products alone: the case must give the bits of [`expert_down`].
pub(super) fn expert_sum(kernel: Kernel, format: Format, m: &Matrices<'_>, used: usize, job: Job) -> Case {
    let (downs, tokens) = (Downs::new(kernel, format, m, job), CHOSEN.len() / used);
    let mut random = Random(17);
    let (gates, before, scale) = if used == 1 {
        let before = |pair| [if slot(pair).is_some() { 0.0 } else { BEFORE }; 21];
        (vec![1.0; tokens], (0..tokens).flat_map(before).collect(), 1.0)
    } else {
        (random.floats(CHOSEN.len()), random.floats(tokens * 21), 0.5f32)
    };
    let add = used < CHOSEN.len();
    let mut expected: Vec<f32> = if add { before.clone() } else { vec![0.0; before.len()] };
    for (pair, gate) in gates.iter().enumerate() {
        let y = &mut expected[pair / used * 21..][..21];
        y.iter_mut().zip(downs.output(pair).unwrap_or_default()).for_each(|(y, v)| *y += scale * gate * v);
    }
    let params = params::Fused { scale, add: u32::from(add), ..downs.params(kernel, tokens, used) };
    let mut bindings = vec![downs.bytes, raw(&downs.x), raw(&before), raw(&SLOTS), raw(&CHOSEN), raw(&gates)];
    bindings.extend(job.is_biased().then(|| raw(&biases())));
    case(kernel, bindings, params, (21u32.div_ceil(kernel.matrix_rows()), tokens as u32), 2, floats(expected))
}
