//! Test cases for the fused decode kernels.

mod experts;
mod joined;

use potluck_shaders::{Format, Glu, Job, Kernel, params, reference};

pub use self::experts::summed;
use self::experts::{CHOSEN, expert_down, expert_sum, gated_expert};
pub use self::joined::{joined, lead};
use super::Case;
use super::case::{case, floats};
use super::data::{Matrices, Random, Weights, raw, zeros};

const EPSILON: f32 = 1e-5;
/// Factor of normalized vectors.
const SCALE: f32 = 0.75;

/// The cases of a fused kernel.
pub fn of(kernel: Kernel, format: Format, m: &Matrices<'_>, rows: u8, job: Job) -> Vec<Case> {
    match job {
        Job::Normed | Job::NormedBias | Job::Added | Job::AddedBias | Job::Scored => {
            vec![products(kernel, format, m, rows, job)]
        }
        Job::Gated | Job::GatedGelu => vec![gated(kernel, format, m, rows, job)],
        Job::GatedExpert | Job::GeluExpert | Job::ClampedExpert => vec![gated_expert(kernel, format, m, job)],
        Job::ExpertDown | Job::BiasedDown => vec![expert_down(kernel, format, m, job)],
        // All ten pairs of one token are more than a workgroup's teams take at once.
        Job::ExpertSum | Job::BiasedSum => {
            [1, 2, CHOSEN.len()].map(|used| expert_sum(kernel, format, m, used, job)).to_vec()
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
fn with_gain(kernel: Kernel, random: &mut Random, count: usize, cols: usize) -> (Vec<f32>, Vec<f32>) {
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
fn products(kernel: Kernel, format: Format, m: &Matrices<'_>, rows: u8, job: Job) -> Case {
    let mut random = Random(12);
    let w = m.weights(&mut random, format, 37);
    let (cols, n, stride, offset) = (w.cols as usize, 9usize, 41usize, 2usize);
    let (x, gain) = if job.norms() {
        with_gain(kernel, &mut random, n + 1, cols)
    } else {
        (vectors(kernel, &mut random, (n + 1) * cols), Vec::new())
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

/// Stores up before gate.
fn gated(kernel: Kernel, format: Format, m: &Matrices<'_>, rows: u8, job: Job) -> Case {
    let mut random = Random(13);
    let w = m.weights(&mut random, format, 2 * 21);
    let (cols, n) = (w.cols as usize, 9usize);
    let (x, gain) = with_gain(kernel, &mut random, n, cols);
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
