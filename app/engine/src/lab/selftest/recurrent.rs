//! Test cases of recurrences: two runs of rows, one from a kept state and one from nothing, and a copy on the way.

use potluck_shaders::{ConvKind, Kernel, ScanRule, Strategy, params, reference};

use super::Case;
use super::case::{case, floats};
use super::data::{Random, raw, zeros};

/// Rows of both runs.
const ROWS: usize = 5;
/// Slots of state.
const SLOTS: usize = 4;
/// Rows of a run, the slot it begins from, its live slot, and a slot to copy to after its second row.
type Run = (std::ops::Range<usize>, Option<usize>, usize, Option<usize>);
const RUNS: [Run; 2] = [(0..3, Some(1), 0, Some(3)), (3..5, None, 2, None)];

/// The rows as kernels read them.
fn rows() -> Vec<[u32; 4]> {
    let mut rows = vec![[0; 4]; ROWS];
    for (run, from, live, copy) in RUNS {
        for (nth, row) in run.clone().enumerate() {
            let begins = (from.map_or(0, |from| from as u32 + 1) << 14) | (run.len() as u32) << 21;
            let copy = copy.filter(|_| nth == 1).map_or(0, |copy| copy as u32 + 1);
            rows[row][3] = live as u32 | copy << 7 | if nth == 0 { begins } else { 0 };
        }
    }
    rows
}

/// Takes every run through `step`, which changes a state for a row, except its first values. Returns the slots afterwards.
fn run(slots: &[f32], first: usize, mut step: impl FnMut(usize, &mut Vec<f64>)) -> Vec<f32> {
    let size = slots.len() / SLOTS;
    let mut after = slots.to_vec();
    let mut keep = |slot: usize, state: &[f64]| {
        after[slot * size..][first..size].iter_mut().zip(&state[first..]).for_each(|(to, v)| *to = *v as f32);
    };
    for (rows, from, live, copy) in RUNS {
        let mut state: Vec<f64> = match from {
            Some(from) => slots[from * size..][..size].iter().map(|&v| f64::from(v)).collect(),
            None => vec![0.0; size],
        };
        for (nth, row) in rows.enumerate() {
            step(row, &mut state);
            copy.filter(|_| nth == 1).into_iter().for_each(|copy| keep(copy, &state));
        }
        keep(live, &state);
    }
    after
}

/// A convolution: its output, or its states.
pub fn conv(kernel: Kernel, kind: ConvKind, taps: u8, of_state: bool) -> Case {
    let mut random = Random(31);
    let (channels, taps, offset) = (70usize, usize::from(taps), 3usize);
    let stride = if kind == ConvKind::Gated { 3 * channels + offset } else { channels + 5 };
    let x = random.floats(ROWS * stride);
    let filters = random.floats(channels * taps);
    let bias = random.floats(channels);
    let slots = random.floats(SLOTS * (taps - 1) * channels);
    let mut expected = if kind == ConvKind::Gated { vec![0.0; ROWS * channels] } else { x.clone() };
    let after = run(&slots, 0, |row, past| {
        let part = |which: usize| &x[row * stride + offset + which * channels..][..channels];
        if kind == ConvKind::Gated {
            let input: Vec<f32> = part(0).iter().zip(part(2)).map(|(b, x)| b * x).collect();
            let out = reference::convolve(past, &filters, &input);
            let gated = out.iter().zip(part(1)).map(|(v, c)| v * c);
            expected[row * channels..][..channels].iter_mut().zip(gated).for_each(|(to, v)| *to = v);
            return;
        }
        let out = reference::convolve(past, &filters, part(0));
        for (channel, v) in out.into_iter().enumerate() {
            let added = if kind == ConvKind::Biased { bias[channel] } else { 0.0 };
            expected[row * stride + offset + channel] = reference::silu(f64::from(v + added)) as f32;
        }
    });
    let slot = ((taps - 1) * channels) as u32;
    let params = params::Conv { channels: channels as u32, stride: stride as u32, offset: offset as u32, slot };
    let mut bindings = vec![raw(&rows()), raw(&filters), raw(&slots), raw(&x)];
    match kind {
        ConvKind::Gated => bindings.push(zeros(ROWS * channels)),
        ConvKind::Silu => {}
        ConvKind::Biased => bindings.push(raw(&bias)),
    }
    let (output, expected) = match (of_state, kind) {
        (true, _) => (2, after),
        (false, ConvKind::Gated) => (4, expected),
        (false, _) => (3, expected),
    };
    let size = ((channels as u32).div_ceil(kernel.threads()), ROWS as u32);
    case(kernel, bindings, params, size, output, floats(expected))
}

/// A rule: its output, or its states.
pub fn scan(kernel: Kernel, strategy: Strategy, rule: ScanRule, width: u16, state: u16, of_state: bool) -> Case {
    let mut random = Random(32);
    let (width, size, tail, epsilon) = (usize::from(width), usize::from(state), 8usize, 1e-5);
    let (heads, shared, grouped) = (4usize, 2usize, rule == ScanRule::Space);
    let inner = heads * width;
    let (reads, writes, values) = (0, shared * size, 2 * shared * size);
    let (gate, beta) = (values + inner, values + 2 * inner);
    let stride = beta + 2 * heads;
    let x = random.floats(ROWS * stride);
    let time_bias = random.floats(heads);
    let decay: Vec<f32> = random.floats(heads).iter().map(|v| v - 1.5).collect();
    let last = random.floats(width.max(heads));
    let slot = tail + inner * size;
    let slots = random.floats(SLOTS * slot);
    let mut expected = vec![0.0; ROWS * inner];
    let after = run(&slots, tail, |row, states| {
        let row_of = |at: usize, count: usize| &x[row * stride + at..][..count];
        for head in 0..heads {
            let from = if grouped { head / (heads / shared) } else { head % shared };
            let (read, written) = (row_of(reads + from * size, size), row_of(writes + from * size, size));
            let value = row_of(values + head * width, width);
            let state = &mut states[tail + head * size * width..][..size * width];
            let number = |at: usize| f64::from(row_of(beta + at, 1)[0]);
            let (time_bias, decay) = (f64::from(time_bias[head]), f64::from(decay[head]));
            let out = match rule {
                ScanRule::Delta => {
                    let fade = (decay * reference::softplus(number(heads + head) + time_bias)).exp();
                    let amount = reference::sigmoid(number(head));
                    let out = reference::delta(state, (written, read, value), (fade, amount), epsilon);
                    reference::norm(&out, &last[..width], epsilon)
                }
                ScanRule::Space => {
                    let time = reference::softplus(number(head) + time_bias);
                    let skip = f64::from(last[head]);
                    reference::space(state, (written, read, value), ((decay * time).exp(), time, skip))
                }
            };
            let gates = row_of(gate + head * width, width);
            let gated =
                out.iter().zip(gates).map(|(v, gate)| (f64::from(*v) * reference::silu(f64::from(*gate))) as f32);
            expected[row * inner + head * width..].iter_mut().zip(gated).for_each(|(to, v)| *to = v);
        }
    });
    let params = params::Scan {
        n: ROWS as u32,
        heads: heads as u32,
        shared_heads: shared as u32,
        grouped: u32::from(grouped),
        stride: stride as u32,
        writes: writes as u32,
        reads: reads as u32,
        values: values as u32,
        gate: gate as u32,
        beta: beta as u32,
        slot: slot as u32,
        tail: tail as u32,
        epsilon,
    };
    let out = zeros(ROWS * inner);
    let bindings = vec![raw(&rows()), raw(&x), raw(&time_bias), raw(&decay), raw(&last), raw(&slots), out];
    let size = match strategy {
        Strategy::Workgroup => (heads as u32, ROWS as u32),
        Strategy::PerThread => (((ROWS * heads) as u32).div_ceil(kernel.threads()), 1),
    };
    let (output, expected) = if of_state { (5, after) } else { (6, expected) };
    case(kernel, bindings, params, size, output, floats(expected))
}

/// The gates of query heads.
pub fn query_gates(kernel: Kernel) -> Case {
    let mut random = Random(33);
    let (n, heads, dim, stride) = (3usize, 3usize, 20usize, 130usize);
    let qkv = random.floats(n * stride);
    let gate = |index: usize| {
        let (row, head, i) = (index / (heads * dim), index / dim % heads, index % dim);
        qkv[row * stride + (2 * head + 1) * dim + i]
    };
    let expected = (0..n * heads * dim).map(gate).collect();
    let params = params::QueryGates { n: n as u32, heads: heads as u32, head_dim: dim as u32, stride: stride as u32 };
    let groups = ((n * heads * dim) as u32).div_ceil(kernel.threads());
    case(kernel, vec![raw(&qkv), zeros(n * heads * dim)], params, (groups, 1), 1, floats(expected))
}
