//! Test cases for each kernel: odd shapes, ties, several pages, missing experts.

use potluck_plan::{AllowedTokens, LogitBias};
use potluck_shaders::{Format, Glu, Kernel, NO_SLOT, Operand, SEGMENT, Strategy, params, reference};

use super::case::{SLOTS, by_row, case, floats};
use super::data::{Matrices, Random, Weights, raw, zeros};
use super::{Case, Expected, attention, fused, general, recurrent, sample, split_attention};
use crate::runtime::sizes::tile_count;

/// The cases of a kernel; none for the kernel that only measures bandwidth.
pub fn of(kernel: Kernel) -> Vec<Case> {
    with(kernel, &Matrices::ODD)
}

/// The same with given matrices.
pub fn with(kernel: Kernel, m: &Matrices<'_>) -> Vec<Case> {
    match kernel {
        Kernel::Embed(format) => vec![embed(kernel, format, m)],
        Kernel::Norm(strategy) => vec![norm(kernel, strategy)],
        Kernel::Quantize => vec![quantize(kernel)],
        Kernel::Halve => vec![halve(kernel)],
        Kernel::MatVec { format, operand: Operand::Expert, .. }
        | Kernel::MatMul { format, operand: Operand::Expert, .. }
        | Kernel::Packed { format, operand: Operand::Expert, .. }
        | Kernel::Matrix { format, operand: Operand::Expert, .. } => {
            vec![expert(kernel, format, m, false), expert(kernel, format, m, true)]
        }
        Kernel::MatVec { format, operand, .. }
        | Kernel::MatMul { format, operand, .. }
        | Kernel::Packed { format, operand, .. }
        | Kernel::Matrix { format, operand, .. } => {
            vec![matrix(kernel, format, m, operand)]
        }
        Kernel::Fused { format, rows, job, .. } => fused::of(kernel, format, &m.long(format), rows, job),
        Kernel::Joined { first, .. } => [0, 1].map(|lead| fused::joined(kernel, &m.long(first), lead)).to_vec(),
        Kernel::Split { kv_type, quads, heads, .. } => split_attention::split(kernel, kv_type, quads, heads),
        Kernel::Merge { quads } => vec![split_attention::merge(kernel, quads)],
        Kernel::Groups(_) => vec![groups(kernel, 2), groups(kernel, 3)],
        Kernel::Rope { kv_type, pairs, qk_norm, factors } => {
            attention::ropes(kernel, kv_type, pairs, (qk_norm, factors))
        }
        Kernel::Attention { kv_type, strategy, quads, .. } => attention::both(kernel, kv_type, Some(strategy), quads),
        Kernel::FlashAttention { kv_type, quads, .. } => attention::both(kernel, kv_type, None, quads),
        Kernel::NormPart(strategy) => vec![general::norm_part(kernel, strategy)],
        Kernel::Residual { strategy, addition } => vec![general::residual(kernel, strategy, addition)],
        Kernel::Beside => [false, true].map(|scaled| general::beside(kernel, scaled)).to_vec(),
        Kernel::Choose { strategy, sigmoid, biased } => {
            let case = |(i, few, groups): (usize, bool, (usize, usize))| {
                let rule = general::ChoiceRule { sigmoid, biased, normalize: i % 2 == 0, few, groups };
                general::choose(kernel, strategy, &rule, i / 2)
            };
            let usual = (0..4).flat_map(|i| [(i, false, (1, 1)), (i, false, (11, 3))]);
            usual.chain((0..4).filter(|_| biased).map(|i| (i, true, (1, 1)))).map(case).collect()
        }
        Kernel::ExpertBias => vec![general::expert_bias(kernel)],
        Kernel::ScaleLogits => vec![general::scale_logits(kernel, 0.0), general::scale_logits(kernel, 3.0)],
        Kernel::Glu(_) => vec![glu(kernel)],
        Kernel::QueryGates => vec![recurrent::query_gates(kernel)],
        Kernel::GateInput => vec![general::gate_input(kernel)],
        Kernel::Conv { kind, taps } => [false, true].map(|state| recurrent::conv(kernel, kind, taps, state)).to_vec(),
        Kernel::Scan { strategy, rule, width, state } => {
            let of = |of_state| recurrent::scan(kernel, strategy, rule, width, state, of_state);
            vec![of(false), of(true)]
        }
        Kernel::Router(strategy) => (0..4).map(|i| router(kernel, strategy, i % 2 == 0, i / 2)).collect(),
        Kernel::Route => (0..12).map(|i| route(kernel, i % 2 == 0, i % 4 < 2, i / 4)).collect(),
        Kernel::Combine => {
            vec![combine(kernel, true, true), combine(kernel, false, true), combine(kernel, true, false)]
        }
        Kernel::ScaleBy { expert } => vec![general::scale_by(kernel, expert)],
        Kernel::BiasLogits => vec![bias_logits(kernel)],
        Kernel::MaskLogits => vec![mask_logits(kernel)],
        Kernel::LogSumExp(strategy) => vec![log_sum_exp(kernel, strategy)],
        Kernel::Segments(strategy) => vec![segments(kernel, strategy)],
        Kernel::Sample => sample::of(kernel),
        Kernel::Top(strategy) => vec![
            top(kernel, strategy, 1001, 70, 2),
            top(kernel, strategy, 1001, 70, 3),
            top(kernel, strategy, 1001, 1, 2),
            // More segments than candidates, so that the best of them give a threshold; and too many logits to rank at once.
            top(kernel, strategy, 12_345, 70, 2),
            top(kernel, strategy, 2_345, 70, 2),
        ],
        Kernel::Stream | Kernel::Peak { .. } => Vec::new(),
    }
}

fn embed(kernel: Kernel, format: Format, m: &Matrices<'_>) -> Case {
    let mut random = Random(1);
    let w = m.weights(&mut random, format, m.rows);
    let last = 4 + w.rows;
    let tokens = [5u32, last, 0, 12, last];
    // The binding holds the table from row 5 on; token 0 is in another binding.
    let mut expected = vec![0.25; 5 * w.cols as usize];
    for (row, token) in expected.chunks_exact_mut(w.cols as usize).zip(tokens) {
        if token >= 5 {
            row.copy_from_slice(w.row(token - 5));
        }
    }
    let chunks = w.cols.div_ceil(16);
    let params = params::Embed {
        n: 5,
        first: 5,
        rows: w.rows,
        row_bytes: w.bytes.len() as u32 / w.rows,
        cols: w.cols,
        chunks,
        scale: 1.0,
    };
    let y = raw(&vec![0.25f32; expected.len()]);
    let x = (5 * chunks).div_ceil(kernel.threads());
    case(kernel, vec![w.bytes, raw(&tokens), y], params, (x, 1), 2, floats(expected))
}

fn norm(kernel: Kernel, strategy: Strategy) -> Case {
    let mut random = Random(2);
    let (width, n) = (300usize, 3usize);
    let x = random.floats(5 * width);
    let gain = random.floats(width);
    let rows = x.chunks_exact(width).skip(2).take(n);
    let expected = rows.flat_map(|row| reference::norm(row, &gain, 1e-5)).map(|v| 0.5 * v).collect();
    let params = params::Norm { n: n as u32, first: 2, width: width as u32 / 4, epsilon: 1e-5, factor: 0.5 };
    let bindings = vec![raw(&x), raw(&gain), zeros(n * width)];
    case(kernel, bindings, params, by_row(kernel, strategy, n as u32), 2, floats(expected))
}

/// Vectors as a matrix kernel reads them, the values it reads, and the distance from one vector to the next in its
/// elements.
fn read_by(kernel: Kernel, x: Vec<f32>, cols: usize) -> (Vec<u8>, Vec<f32>, u32) {
    if matches!(kernel, Kernel::Matrix { .. }) {
        let rows: Vec<Vec<u16>> = x.chunks_exact(cols).map(reference::halve).collect();
        let stride = rows[0].len() as u32 / 4;
        return (raw(&rows.concat()), x.chunks_exact(cols).flat_map(reference::halved).collect(), stride);
    }
    if !matches!(kernel, Kernel::Packed { .. }) {
        return (raw(&x), x, cols as u32 / 4);
    }
    let rows: Vec<Vec<u32>> = x.chunks_exact(cols).map(reference::quantize).collect();
    let stride = rows[0].len() as u32 / 4;
    (raw(&rows.concat()), x.chunks_exact(cols).flat_map(reference::quantized).collect(), stride)
}

/// Weights as a matrix kernel multiplies them.
fn multiplied(kernel: Kernel, mut weights: Weights) -> Weights {
    if matches!(kernel, Kernel::Matrix { .. }) {
        weights.values.iter_mut().for_each(|v| *v = half::f16::from_f32(*v).to_f32());
    }
    weights
}

/// Vectors whose values are no matter of rounding, of every magnitude, among them nothing but zeros, and what is no number.
fn halve(kernel: Kernel) -> Case {
    let mut random = Random(7);
    let (n, cols) = (6usize, 596usize);
    let mut x: Vec<f32> = (0..n * cols).map(|_| (random.next() % 2047) as f32 - 1023.0).collect();
    for (row, scale) in x.chunks_exact_mut(cols).zip([1.0, 2f32.powi(-70), 2f32.powi(100), 1.0, 0.0, 1.0]) {
        row.iter_mut().for_each(|v| *v *= scale);
    }
    (x[3 * cols + 9], x[5 * cols + 400]) = (f32::NAN, f32::NEG_INFINITY);
    let expected: Vec<u16> = x.chunks_exact(cols).flat_map(reference::halve).collect();
    let words: Vec<u32> = expected.chunks_exact(2).map(|two| u32::from(two[0]) | u32::from(two[1]) << 16).collect();
    let quads = cols as u32 / 4;
    let params = params::Halve { n: n as u32, quads, x_stride: quads, y_stride: (expected.len() / n / 4) as u32 };
    let bindings = vec![raw(&x), zeros(words.len())];
    case(kernel, bindings, params, (n as u32, 1), 1, Expected::Words(words))
}

/// Vectors of three blocks whose values are no matter of rounding, among them nothing but zeros, and what is no number.
fn quantize(kernel: Kernel) -> Case {
    let mut random = Random(6);
    let (n, cols) = (5usize, 96usize);
    let mut x: Vec<f32> = (0..n * cols).map(|_| ((random.next() % 253) as f32 - 126.0 + 0.25) / 16.0).collect();
    x.chunks_exact_mut(32).for_each(|block| block[7] = -127.0 / 16.0);
    x[32..64].fill(0.0);
    (x[100], x[200]) = (f32::NAN, f32::NEG_INFINITY);
    let expected: Vec<u32> = x.chunks_exact(cols).flat_map(reference::quantize).collect();
    let stride = expected.len() as u32 / n as u32 / 4;
    let params = params::Quantize { n: n as u32, blocks: 3, x_stride: cols as u32 / 4, y_stride: stride };
    let bindings = vec![raw(&x), zeros(expected.len())];
    case(kernel, bindings, params, (15u32.div_ceil(kernel.threads()), 1), 1, Expected::Words(expected))
}

fn matrix(kernel: Kernel, format: Format, m: &Matrices<'_>, operand: Operand) -> Case {
    // Every variant of a format gets the same data, so that variants can be compared bit by bit.
    let mut random = Random(3);
    // Tiled kernels get more rows and vectors than fit in a tile.
    let tiled = kernel.is_tiled();
    let (all_rows, max) = if tiled { (m.rows + 33, 131) } else { (m.rows, 9) };
    let w = multiplied(kernel, m.weights(&mut random, format, all_rows));
    let (rows, cols) = (w.rows as usize, w.cols as usize);
    let vectors = kernel.vectors();
    let n = if tiled { vectors as usize + 3 } else { 9 };
    let (stride, offset) = (rows + 5, 2);
    let x = random.floats(max * cols);
    let (read, x, x_stride) = read_by(kernel, x[..n * cols].to_vec(), cols);
    let before = random.floats(max * stride);
    let bias = random.floats(rows);
    let mut expected = before[..n * stride].to_vec();
    for (y, x) in expected.chunks_exact_mut(stride).zip(x.chunks_exact(cols)) {
        for (row, sum) in reference::matvec(&w.values, x).into_iter().enumerate() {
            y[offset + row] += sum + if operand == Operand::Bias { bias[row] } else { 0.0 };
        }
    }
    let params = params::MatVec {
        rows: w.rows,
        row_bytes: w.bytes.len() as u32 / w.rows,
        cols: w.cols,
        chunks: w.cols.div_ceil(16),
        n: n as u32,
        x_stride,
        y_stride: stride as u32,
        y_offset: offset as u32,
        add: 1,
        ..Default::default()
    };
    let mut bindings = vec![w.bytes, read, raw(&before[..n * stride])];
    if operand == Operand::Bias {
        bindings.push(raw(&bias));
    }
    let size = (w.rows.div_ceil(kernel.matrix_rows()), (n as u32).div_ceil(vectors));
    case(kernel, bindings, params, size, 2, floats(expected))
}

fn expert(kernel: Kernel, format: Format, m: &Matrices<'_>, by_pair: bool) -> Case {
    let mut random = Random(4);
    let w = multiplied(kernel, m.weights(&mut random, format, 3 * m.expert_rows));
    let (rows, cols, used) = (m.expert_rows as usize, w.cols as usize, 2usize);
    let row_bytes = w.bytes.len() / (3 * rows);
    // Slots 1 to 3 are in this binding, each aligned to 256 bytes.
    let stride = (rows * row_bytes).next_multiple_of(256);
    let bytes: Vec<u8> = w
        .bytes
        .chunks_exact(rows * row_bytes)
        .flat_map(|slot| slot.iter().copied().chain(std::iter::repeat_n(0, stride - rows * row_bytes)))
        .collect();
    let mut chosen = vec![0u32, 3, 1, 4, 2, 0, NO_SLOT, 3, 4, 0];
    if kernel.is_tiled() {
        // More pairs than fit in a tile.
        chosen.extend([3; 140]);
    }
    let pairs = chosen.len();
    let (read, x, x_stride) = read_by(kernel, random.floats(pairs * cols), cols);
    let mut expected = vec![0.5f32; pairs * rows];
    for (pair, y) in expected.chunks_exact_mut(rows).enumerate() {
        let slot = SLOTS.get(chosen[pair] as usize).copied().unwrap_or(NO_SLOT);
        if slot != NO_SLOT && slot >= 1 {
            let source = if by_pair { pair } else { pair / used };
            let matrix = &w.values[(slot as usize - 1) * rows * cols..][..rows * cols];
            y.copy_from_slice(&reference::matvec(matrix, &x[source * cols..][..cols]));
        }
    }
    let params = params::MatVec {
        rows: rows as u32,
        row_bytes: row_bytes as u32,
        cols: w.cols,
        chunks: w.cols.div_ceil(16),
        n: pairs as u32,
        x_stride,
        y_stride: rows as u32,
        y_offset: 0,
        add: 0,
        experts: 6,
        used: used as u32,
        by_pair: u32::from(by_pair),
        slot_first: 1,
        slot_count: 3,
        expert_bytes: stride as u32,
    };
    let grouped = kernel.is_tiled();
    let (first, second, z) = if grouped {
        let (tiles, list) = group(&chosen, kernel.vectors());
        let z = tiles.len() as u32 / 4;
        (raw(&tiles), raw(&list), z)
    } else {
        (raw(&SLOTS), raw(&chosen), pairs as u32)
    };
    let bindings = vec![bytes, read, raw(&vec![0.5f32; pairs * rows]), first, second];
    let size = ((rows as u32).div_ceil(kernel.matrix_rows()), z);
    case(kernel, bindings, params, size, 2, floats(expected))
}

/// Expected output of the grouping kernel for chosen experts: tiles (with unused ones), and pairs.
fn group(chosen: &[u32], vectors: u32) -> (Vec<u32>, Vec<u32>) {
    let mut tiles = Vec::new();
    let mut list = Vec::new();
    for (expert, &slot) in SLOTS.iter().enumerate().filter(|(_, slot)| **slot != NO_SLOT) {
        let pairs: Vec<u32> = (0..).zip(chosen).filter(|(_, e)| **e == expert as u32).map(|(pair, _)| pair).collect();
        for tile in pairs.chunks(vectors as usize) {
            tiles.extend([list.len() as u32, tile.len() as u32, slot, 0]);
            list.extend_from_slice(tile);
        }
    }
    tiles.resize(4 * tile_count(vectors, chosen.len() as u64, SLOTS.len() as u64) as usize, 0);
    list.resize(chosen.len(), 0);
    (tiles, list)
}

fn groups(kernel: Kernel, output: usize) -> Case {
    let mut random = Random(5);
    let chosen: Vec<u32> = (0..1100).map(|_| (random.next() % 7) as u32).collect();
    let (tiles, list) = group(&chosen, 32);
    let count = tiles.len() as u32 / 4;
    let params = params::Groups { experts: 6, pairs: 1100, tiles: count, tile: 32 };
    let junk = vec![7u32; tiles.len()];
    let bindings = vec![raw(&SLOTS), raw(&chosen), raw(&junk), zeros(list.len())];
    case(kernel, bindings, params, (1, 1), output, Expected::Words(if output == 2 { tiles } else { list }))
}

fn glu(kernel: Kernel) -> Case {
    let mut random = Random(8);
    let mut gate = random.floats(300);
    // Extremes on both sides, where an exponential would overflow.
    gate[..4].copy_from_slice(&[-200.0, 200.0, -90.0, 0.0]);
    let up = random.floats(300);
    let expected = match kernel {
        Kernel::Glu(Glu::Gelu) => reference::geglu(&gate, &up),
        Kernel::Glu(Glu::Clamped) => reference::clamped_swiglu(&gate, &up),
        Kernel::Glu(Glu::Sigmoid) => {
            gate.iter().zip(&up).map(|(&gate, up)| reference::sigmoid(f64::from(gate)) as f32 * up).collect()
        }
        _ => reference::swiglu(&gate, &up),
    };
    let bindings = vec![raw(&gate), raw(&up)];
    let x = 75u32.div_ceil(kernel.threads());
    case(kernel, bindings, params::Glu { quads: 75 }, (x, 1), 1, floats(expected))
}

fn router(kernel: Kernel, strategy: Strategy, normalize: bool, what: usize) -> Case {
    let mut random = Random(9);
    let (n, experts, used) = (3usize, 131usize, 5usize);
    // Few distinct values, so that there are ties, but never one where rounding would decide which expert is chosen.
    let scores: Vec<f32> = (0..n * experts).map(|_| (random.next() % 40) as f32 / 8.0).collect();
    let routes: Vec<(u32, f32)> =
        scores.chunks_exact(experts).flat_map(|row| reference::router(row, used, normalize)).collect();
    let params =
        params::Router { n: n as u32, experts: experts as u32, used: used as u32, normalize: u32::from(normalize) };
    let expected = if what == 0 {
        Expected::Words(routes.iter().map(|(id, _)| *id).collect())
    } else {
        floats(routes.iter().map(|(_, gate)| *gate).collect())
    };
    let bindings = vec![raw(&scores), zeros(n * used), zeros(n * used)];
    case(kernel, bindings, params, by_row(kernel, strategy, n as u32), 1 + what, expected)
}

/// Tests the chosen experts, their weights, or the normed vectors.
fn route(kernel: Kernel, normalize: bool, scaled: bool, what: usize) -> Case {
    let mut of_router = router(kernel, Strategy::Workgroup, normalize, what.min(1));
    let params: params::Router = bytemuck::pod_read_unaligned(&of_router.probe.params);
    let mut random = Random(2);
    // More quads than a workgroup holds at a time.
    let (n, width) = (params.n as usize, 4 * 1100usize);
    let x = random.floats(n * width);
    let gain = random.floats(width);
    let normed = x.chunks_exact(width).flat_map(|row| reference::norm(row, &gain, 1e-5)).collect();
    let factors = random.floats(params.experts as usize);
    let chosen = router(kernel, Strategy::Workgroup, normalize, 0).expected;
    if let (Expected::Floats(gates, _), Expected::Words(ids), true) = (&mut of_router.expected, chosen, scaled) {
        gates.iter_mut().zip(ids).for_each(|(gate, id)| *gate *= factors[id as usize]);
    }
    let params = params::Route {
        n: params.n,
        experts: params.experts,
        used: params.used,
        normalize: params.normalize,
        width: width as u32 / 4,
        epsilon: 1e-5,
        scaled: u32::from(scaled),
    };
    let mut bindings = of_router.probe.bindings;
    bindings.extend([raw(&x), raw(&gain), zeros(n * width), raw(&factors)]);
    let (output, expected) = if what < 2 { (1 + what, of_router.expected) } else { (5, floats(normed)) };
    case(kernel, bindings, params, (n as u32, 2), output, expected)
}

fn combine(kernel: Kernel, add: bool, weighted: bool) -> Case {
    let mut random = Random(10);
    let (n, width, used) = (3usize, 52usize, 3usize);
    let chosen = [0u32, 1, 2, 3, 4, 5, NO_SLOT, 2, 4];
    let gates = random.floats(n * used);
    let parts = random.floats(n * used * width);
    let before = random.floats(n * width);
    let mut expected = if add { before.clone() } else { vec![0.0; before.len()] };
    for (pair, &expert) in chosen.iter().enumerate() {
        if expert < 6 {
            for i in 0..width {
                let weight = if weighted { gates[pair] } else { 1.0 };
                expected[pair / used * width + i] += 0.5 * weight * parts[pair * width + i];
            }
        }
    }
    let params = params::Combine {
        n: n as u32,
        width: width as u32 / 4,
        experts: 6,
        used: used as u32,
        scale: 0.5,
        add: u32::from(add),
        weighted: u32::from(weighted),
    };
    let bindings = vec![raw(&chosen), raw(&gates), raw(&parts), raw(&before)];
    let x = (n * width / 4).div_ceil(kernel.threads() as usize) as u32;
    case(kernel, bindings, params, (x, 1), 3, floats(expected))
}

/// Three rows of logits with many ties.
fn logits(vocabulary: u32) -> Vec<f32> {
    let mut random = Random(11);
    (0..3 * vocabulary).map(|_| (random.next() % 300) as f32 / 8.0 - 20.0).collect()
}

/// The segment maxima of a row.
fn maxima(row: &[f32]) -> Vec<u32> {
    let mut first = 0;
    row.chunks(SEGMENT as usize)
        .flat_map(|segment| {
            let (id, value) = reference::top(segment, 1)[0];
            first += SEGMENT;
            [value.to_bits(), first - SEGMENT + id]
        })
        .collect()
}

fn segments(kernel: Kernel, strategy: Strategy) -> Case {
    let logits = logits(1001);
    let expected: Vec<u32> = logits.chunks_exact(1001).flat_map(maxima).collect();
    let params = params::Segments { n: 3, vocabulary: 1001, segments: 8 };
    let threads = 24 * if strategy == Strategy::Workgroup { Kernel::SEGMENT_LANES } else { 1 };
    let bindings = vec![raw(&logits), zeros(expected.len())];
    case(kernel, bindings, params, (threads.div_ceil(kernel.threads()), 1), 1, Expected::Words(expected))
}

/// Biases of the second row of four and of the third, which are the first two here; the last row has none.
fn bias_logits(kernel: Kernel) -> Case {
    const ROWS: usize = 4;
    const MOST: usize = 5;
    let before = logits(1001);
    let row = |pairs: &[(u32, f32)]| LogitBias::new(pairs.iter().copied()).expect("a bias within its limits");
    let rows = [
        row(&[(0, 1.5), (77, -100.0), (1000, -2.25)]),
        row(&[(1, 100.0), (5, -99.5), (6, 0.0), (998, 3.0), (999, 4.0)]),
    ];
    let mut biases = [[0u32; 2]; ROWS + ROWS * MOST];
    let mut expected = before.clone();
    for ((at, bias), logits) in (1..).zip(&rows).zip(expected.chunks_exact_mut(1001)) {
        biases[at][0] = bias.tokens().len() as u32;
        let pairs = bias.tokens().iter().map(|(id, bias)| [*id, bias.to_bits()]);
        biases[ROWS + at * MOST..].iter_mut().zip(pairs).for_each(|(place, pair)| *place = pair);
        bias.apply(logits);
    }
    let (rows, most) = (ROWS as u32, MOST as u32);
    let params = params::BiasLogits { n: 3, first: 1, vocabulary: 1001, rows, most };
    let expected = expected.iter().map(|logit| logit.to_bits()).collect();
    let x = (3 * most).div_ceil(kernel.threads());
    case(kernel, vec![raw(&biases.concat()), raw(&before)], params, (x, 1), 1, Expected::Words(expected))
}

/// Masks of the second row of four and of the last, which are the first and the last here; the third row has none.
fn mask_logits(kernel: Kernel) -> Case {
    const ROWS: usize = 4;
    const WORDS: usize = 32;
    let before = logits(1001);
    let of_row = |is_allowed: fn(&u32) -> bool| AllowedTokens::only(1001, (0..1001).filter(is_allowed));
    let rows = [
        (1, of_row(|id| id % 3 == 1).expect("tokens of a vocabulary")),
        (3, of_row(|id| matches!(id, 0 | 31 | 32 | 1000)).expect("tokens of a vocabulary")),
    ];
    let mut masks = [0u32; ROWS + ROWS * WORDS];
    // What is left of an earlier row does not count.
    masks[ROWS + 2 * WORDS..][..WORDS].fill(7);
    let mut expected = before.clone();
    for (row, allowed) in &rows {
        masks[*row] = 1;
        masks[ROWS + row * WORDS..][..WORDS].copy_from_slice(&allowed.words());
        allowed.apply(&mut expected[(row - 1) * 1001..row * 1001]);
    }
    let params = params::MaskLogits { n: 3, first: 1, vocabulary: 1001, rows: ROWS as u32, words: WORDS as u32 };
    let expected = expected.iter().map(|logit| logit.to_bits()).collect();
    let x = (3 * 1001u32).div_ceil(kernel.threads());
    case(kernel, vec![raw(&masks), raw(&before)], params, (x, 1), 1, Expected::Words(expected))
}

/// Rows whose sum is nearly all in one logit, spread over many, and with banned tokens.
fn log_sum_exp(kernel: Kernel, strategy: Strategy) -> Case {
    let mut logits = logits(1001);
    logits[7] = 60.0;
    logits[1001..2002].iter_mut().for_each(|logit| *logit /= 64.0);
    logits[2002..2400].fill(LogitBias::BANNED);
    let sums = logits.chunks_exact(1001).map(|row| reference::log_sum_exp(row) as f32);
    let expected = [0.0].into_iter().chain(sums).collect();
    let params = params::LogSumExp { n: 3, first: 1, vocabulary: 1001 };
    case(kernel, vec![raw(&logits), zeros(4)], params, by_row(kernel, strategy, 3), 1, floats(expected))
}

/// Tests binding 2, the candidates, or binding 3, the last row's best token.
fn top(kernel: Kernel, strategy: Strategy, vocabulary: u32, count: usize, output: usize) -> Case {
    let logits = logits(vocabulary);
    let rows = || logits.chunks_exact(vocabulary as usize);
    let best: Vec<u32> = rows().flat_map(maxima).collect();
    let mut expected = vec![0; count * 2];
    for row in rows() {
        expected.extend(reference::top(row, count).into_iter().flat_map(|(id, value)| [id, value.to_bits()]));
    }
    let segments = vocabulary.div_ceil(SEGMENT);
    let params = params::Top { n: 3, first: 1, vocabulary, segments, count: count as u32 };
    let bindings = vec![raw(&logits), raw(&best), zeros(expected.len()), zeros(1)];
    let expected = if output == 2 { expected } else { vec![expected[6 * count]] };
    case(kernel, bindings, params, by_row(kernel, strategy, 3), output, Expected::Words(expected))
}
