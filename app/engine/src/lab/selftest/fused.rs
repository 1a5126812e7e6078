//! Test cases for the fused decode kernels.

use potluck_shaders::{Format, Glu, Job, Kernel, NO_SLOT, joined_params, params, reference};

use super::cases::{SLOTS, case, floats};
use super::data::{Matrices, Random, Weights, raw, zeros};
use super::{Case, Expected};

const EPSILON: f32 = 1e-5;
/// Factor of normalized vectors.
const SCALE: f32 = 0.75;

/// The cases of a fused kernel.
pub fn of(kernel: Kernel, format: Format, m: &Matrices<'_>, (rows, job): (u8, Job)) -> Vec<Case> {
    match job {
        Job::Normed | Job::NormedBias | Job::Added | Job::AddedBias | Job::Scored => {
            vec![products(kernel, format, m, (rows, job))]
        }
        Job::Gated | Job::GatedGelu => vec![gated(kernel, format, m, (rows, job))],
        Job::GatedExpert | Job::GeluExpert | Job::ClampedExpert => vec![gated_expert(kernel, format, m, job)],
        Job::ExpertDown | Job::BiasedDown => vec![expert_down(kernel, format, m, job)],
        // All ten pairs of one token are more than a workgroup's teams take at once.
        Job::ExpertSum | Job::BiasedSum => {
            [1, 2, CHOSEN.len()].map(|used| expert_sum(kernel, format, m, (used, job))).to_vec()
        }
    }
}

/// The activation of a job's gate.
fn activated(job: Job, gate: &[f32], up: &[f32]) -> Vec<f32> {
    match job.activation() {
        Some(Glu::Gelu) => reference::geglu(gate, up),
        Some(Glu::Clamped) => reference::clamped_swiglu(gate, up),
        _ => reference::swiglu(gate, up),
    }
}

/// Experts of a token in a case of [`Job::ExpertSum`] or [`Job::BiasedSum`].
pub fn summed(case: &Case) -> Option<u32> {
    let is_sum = matches!(case.probe.kernel, Kernel::Fused { job, .. } if job.sums());
    is_sum.then(|| bytemuck::pod_read_unaligned::<params::Fused>(&case.probe.params).used)
}

/// Values of vectors. Where they are quantized nothing of them gets lost: a block has multiples of a power of two, the largest 127,
/// so that the reference need not quantize, and no device rounds a value to another integer.
fn vectors(kernel: Kernel, random: &mut Random, count: usize) -> Vec<f32> {
    let mut all = random.floats(count);
    for (number, block) in all.chunks_mut(32).enumerate().filter(|_| kernel.quantizes()) {
        let step = [0.0078125, 0.03125, 0.001953125][number % 3];
        block.iter_mut().for_each(|v| *v = (*v * 126.0).round() * step);
        block[number % block.len()] = -127.0 * step;
    }
    all
}

/// Vectors and a gain; where vectors are quantized the gain's values are powers of two.
fn with_gain(kernel: Kernel, random: &mut Random, (count, cols): (usize, usize)) -> (Vec<f32>, Vec<f32>) {
    let mut x = vectors(kernel, random, count * cols);
    let mut gain = random.floats(cols);
    if kernel.quantizes() {
        gain.iter_mut().for_each(|v| *v = if *v < 0.0 { -0.5 } else { 2.0 });
        x.iter_mut().zip(gain.iter().cycle()).for_each(|(x, gain)| *x /= gain);
    }
    (x, gain)
}

fn sizes(kernel: Kernel, w: &Weights) -> params::Fused {
    params::Fused {
        rows: w.rows,
        row_bytes: w.bytes.len() as u32 / w.rows,
        cols: w.cols,
        units: w.cols.div_ceil(kernel.unit_values()),
        x_stride: w.cols / 4,
        epsilon: EPSILON,
        scale: SCALE,
        end_0: w.rows,
        end_1: w.rows,
        ..Default::default()
    }
}

/// Uses rows 20 to 36, 12 to 19 and 0 to 11 of one matrix as if they were three matrices.
fn products(kernel: Kernel, format: Format, m: &Matrices<'_>, (rows, job): (u8, Job)) -> Case {
    let mut random = Random(12);
    let w = m.weights(&mut random, format, 37);
    let (cols, n, stride, offset) = (w.cols as usize, 9usize, 41usize, 2usize);
    let (x, gain) = match job.norms() {
        true => with_gain(kernel, &mut random, (n + 1, cols)),
        false => (vectors(kernel, &mut random, (n + 1) * cols), Vec::new()),
    };
    let bias = random.floats(37);
    let before = random.floats(n * stride);
    let mut expected = before.clone();
    // The sigmoid of each vector's score, as a factor; the scores begin where the second matrix's biases do.
    let scores = random.floats(20 + n);
    for (i, (y, x)) in expected.chunks_exact_mut(stride).zip(x.chunks_exact(cols).skip(1)).enumerate() {
        let factor = SCALE * reference::sigmoid(f64::from(scores[20 + i])) as f32;
        let x = if job.norms() { normed(x, &gain) } else { x.to_vec() };
        let sums = reference::matvec(&w.values, &x);
        for (at, row) in (20..37).chain(12..20).chain(0..12).enumerate() {
            y[offset + at] = match job {
                Job::Added => y[offset + at] + sums[row],
                Job::AddedBias => y[offset + at] + sums[row] + bias[row],
                Job::Scored => y[offset + at] + sums[row] * factor,
                Job::NormedBias => sums[row] + bias[row],
                _ => sums[row],
            };
        }
    }
    let all = sizes(kernel, &w);
    let params = params::Fused {
        n: n as u32,
        x_first: 1,
        y_stride: stride as u32,
        add: u32::from(!job.norms()),
        base_0: 20 * all.row_bytes,
        base_1: 12 * all.row_bytes,
        end_0: 17,
        end_1: 25,
        y_0: 2,
        y_1: 19,
        y_2: 27,
        bias_0: 20,
        bias_1: 12,
        ..all
    };
    let mut bindings = vec![w.bytes, raw(&x), raw(&before)];
    if job.norms() {
        bindings.push(raw(&gain));
    }
    if job.is_biased() {
        bindings.push(raw(&bias));
    }
    if job == Job::Scored {
        bindings.push(raw(&scores));
    }
    let size = (37u32.div_ceil(kernel.matrix_rows()), 9u32.div_ceil(u32::from(rows)));
    case(kernel, bindings, params, size, 2, floats(expected))
}

fn normed(x: &[f32], gain: &[f32]) -> Vec<f32> {
    reference::norm(x, gain, EPSILON).into_iter().map(|v| SCALE * v).collect()
}

/// Values of all results of [`products`] with one matrix.
const RESULTS: u32 = 9 * 41;

/// Two products in one dispatch: the one that leads is the case of the fused kernel, and its results come first.
pub fn joined(kernel: Kernel, m: &Matrices<'_>, lead: usize) -> Case {
    let parts = kernel.parts().expect("the kernel is joined");
    let formats = parts.map(|part| part.format().expect("a product has a format"));
    let [first, second] = [lead, 1 - lead];
    let mut case = products(parts[first], formats[first], m, (1, Job::Normed));
    let Expected::Floats(expected, _) = &mut case.expected else { return case };
    let w = m.weights(&mut Random(15), formats[second], 37);
    let cols = w.cols as usize;
    let [x, gain] = [1, 3].map(|binding| bytemuck::pod_collect_to_vec::<u8, f32>(&case.probe.bindings[binding]));
    let before = expected.len();
    expected.resize(2 * before, 0.0);
    for (y, x) in expected[before..].chunks_exact_mut(41).zip(x.chunks_exact(cols).skip(1)) {
        y[..37].copy_from_slice(&reference::matvec(&w.values, &normed(x, &gain)));
    }
    case.probe.bindings[2].resize(8 * before, 0);
    let its: params::Fused = bytemuck::pod_read_unaligned(&case.probe.params);
    let other = params::Fused { n: 9, x_first: 1, y_stride: 41, y_0: RESULTS, ..sizes(parts[second], &w) };
    let mut weights = [std::mem::take(&mut case.probe.bindings[0]), w.bytes];
    let mut both = [its, other];
    if lead == 1 {
        weights.reverse();
        both.reverse();
    }
    let [one, two] = weights;
    case.probe.bindings[0] = one;
    case.probe.bindings.push(two);
    case.probe.params = joined_params(&both[0], &both[1]);
    case.probe.kernel = kernel;
    case.probe.x = 2 * 37u32.div_ceil(kernel.matrix_rows());
    case
}

/// The format of the product that leads in a case of [`joined`], and whether its vectors are quantized.
pub fn lead(case: &Case) -> Option<(Format, bool)> {
    let parts = case.probe.kernel.parts()?;
    let first: params::Fused = bytemuck::pod_read_unaligned(case.probe.params.get(..size_of::<params::Fused>())?);
    let lead = parts[usize::from(first.y_0 == RESULTS)];
    Some((lead.format()?, lead.quantizes()))
}

/// Stores up before gate.
fn gated(kernel: Kernel, format: Format, m: &Matrices<'_>, (rows, job): (u8, Job)) -> Case {
    let mut random = Random(13);
    let w = m.weights(&mut random, format, 2 * 21);
    let (cols, n) = (w.cols as usize, 9usize);
    let (x, gain) = with_gain(kernel, &mut random, (n, cols));
    let (up, gate) = w.values.split_at(21 * cols);
    let expected = x.chunks_exact(cols).flat_map(|x| {
        let x = normed(x, &gain);
        activated(job, &reference::matvec(gate, &x), &reference::matvec(up, &x))
    });
    let expected: Vec<f32> = expected.collect();
    let all = sizes(kernel, &w);
    let first = 21 * all.row_bytes;
    let (rows_here, up) = (21, 0u32.wrapping_sub(first));
    let params = params::Fused {
        rows: rows_here,
        end_0: rows_here,
        end_1: rows_here,
        n: n as u32,
        y_stride: rows_here,
        base_0: first,
        up,
        ..all
    };
    let bindings = vec![w.bytes, raw(&x), zeros(n * 21), raw(&gain)];
    let size = (rows_here.div_ceil(kernel.matrix_rows()), 9u32.div_ceil(u32::from(rows)));
    case(kernel, bindings, params, size, 2, floats(expected))
}

/// Matrices of 21 rows, each padded to a multiple of 256 bytes.
fn padded(w: &Weights) -> (Vec<u8>, usize) {
    let bytes = w.bytes.len() / (w.rows as usize / 21);
    let stride = bytes.next_multiple_of(256);
    let matrices = w.bytes.chunks_exact(bytes);
    (matrices.flat_map(|m| m.iter().copied().chain(std::iter::repeat_n(0, stride - bytes))).collect(), stride)
}

/// Chosen experts of five tokens, two each; slots 1 to 3 are in the binding.
const CHOSEN: [u32; 10] = [0, 3, 1, 4, 2, 0, NO_SLOT, 3, 4, 0];

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

fn gated_expert(kernel: Kernel, format: Format, m: &Matrices<'_>, job: Job) -> Case {
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

fn expert_down(kernel: Kernel, format: Format, m: &Matrices<'_>, job: Job) -> Case {
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
fn expert_sum(kernel: Kernel, format: Format, m: &Matrices<'_>, (used, job): (usize, Job)) -> Case {
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
