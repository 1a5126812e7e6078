//! Test cases for RoPE and for attention, per row and tiled.

use std::ops::Range;

use potluck_plan::{KV_PAGE_TOKENS, KvCacheType};
use potluck_shaders::{Kernel, Pairs, Strategy, params, reference};

use super::case::{CAP, WINDOW, case, floats};
use super::data::{Cache, Random, raw, zeros};
use super::{Case, Expected};

/// Factor of rotated values, and growth of the queries with the position.
const MAGNITUDE: f32 = 1.25;
const GROWTH: f32 = 0.1;
const SHIFT: u32 = 30;
/// Values of a head before the rotated ones.
const START: usize = 4;
const STEP: u32 = 50;

/// All outputs of a kernel, for heads whose threads lie in one workgroup and, where that matters, for others.
pub fn ropes(kernel: Kernel, kv_type: KvCacheType, pairs: Pairs, extras: (bool, bool)) -> Vec<Case> {
    let sizes: &[(usize, usize)] = match (kv_type.is_quantized(), extras.0) {
        // Three blocks, so the last scale has no neighbour.
        (true, _) => &[(96, 72)],
        (false, true) => &[(32, 24), (80, 56)],
        (false, false) => &[(32, 24)],
    };
    let (qk_norm, factors) = extras;
    let how = Rotation { kv_type, pairs, qk_norm, factors };
    let of = |&(dim, dims): &(usize, usize)| (0..3).map(move |output| rope(kernel, how, dim, dims, output));
    sizes.iter().flat_map(of).collect()
}

/// What a RoPE kernel does.
#[derive(Clone, Copy)]
struct Rotation {
    kv_type: KvCacheType,
    pairs: Pairs,
    qk_norm: bool,
    factors: bool,
}

/// Tests an output: queries, keys or values.
fn rope(kernel: Kernel, how: Rotation, dim: usize, dims: usize, output: usize) -> Case {
    let Rotation { kv_type, pairs, qk_norm, factors } = how;
    let mut random = Random(6);
    let (heads, kv_heads) = (4usize, 2usize);
    let all = heads + 2 * kv_heads;
    let positions = [0u32, 77, 30_000];
    let cache_rows = [1u32, 64 + 13, 3];
    let qkv = random.floats(3 * all * dim);
    let (q_gain, k_gain) = (random.floats(dim), random.floats(dim));
    let divisors: Vec<f32> = (0..dims / 2).map(|i| if i < 4 { 1.0 } else { 2.0 + i as f32 / 3.0 }).collect();
    let none: [f32; 0] = [];
    let frequency = |pair: usize| 10_000f64.powf(-2.0 * pair as f64 / dims as f64) / 2.0;
    let frequencies: Vec<f64> = (0..dims / 2).map(frequency).collect();
    let divisors_used = if factors { &divisors[..] } else { &none[..] };
    let mut expected = if output == 0 { vec![0.0f32; 3 * heads * dim] } else { vec![0.0f32; 128 * kv_heads * dim] };
    for row in 0..3 {
        for head in 0..all {
            let mut values = qkv[(row * all + head) * dim..][..dim].to_vec();
            let kind = if head < heads { 0 } else { 1 + (head - heads) / kv_heads };
            if kind != output {
                continue;
            }
            if kind < 2 {
                if qk_norm {
                    values = reference::norm(&values, if kind == 0 { &q_gain } else { &k_gain }, 1e-5);
                }
                let turned = &mut values[START..];
                reference::rotate_by(turned, positions[row], &frequencies, MAGNITUDE, pairs, divisors_used);
            }
            if kind == 2 && qk_norm {
                values = reference::norm(&values, &vec![1.0; dim], 1e-5);
            }
            if kind == 0 {
                let warmth = 1.0 + GROWTH * (1.0 + ((positions[row] + SHIFT) / STEP) as f32).ln();
                values.iter_mut().for_each(|v| *v *= warmth);
            }
            let at = if kind == 0 {
                (row * heads + head) * dim
            } else {
                (cache_rows[row] as usize * kv_heads + (head - heads) % kv_heads) * dim
            };
            expected[at..at + dim].copy_from_slice(&values);
        }
    }
    let rows: Vec<[u32; 4]> = (0..3).map(|row| [positions[row], cache_rows[row], 0, 0]).collect();
    let cache = 128 * kv_heads * kv_type.head_words(dim as u32) as usize;
    let rope_table = reference::rope_table_of(&frequencies);
    let mut bindings =
        vec![raw(&rows), raw(&qkv), raw(&rope_table), zeros(3 * heads * dim), zeros(cache), zeros(cache)];
    match (qk_norm, factors) {
        (true, true) => bindings.push([raw(&[q_gain, k_gain].concat()), raw(&divisors)].concat()),
        (true, false) => bindings.extend([raw(&q_gain), raw(&k_gain)]),
        (false, true) => bindings.push(raw(&divisors)),
        (false, false) => {}
    }
    let params = params::Rope {
        n: 3,
        heads: heads as u32,
        kv_heads: kv_heads as u32,
        value_heads: kv_heads as u32,
        head_dim: dim as u32,
        start: START as u32,
        dims: dims as u32,
        epsilon: 1e-5,
        magnitude: MAGNITUDE,
        growth: GROWTH,
        step: STEP,
        q_gain: 0,
        k_gain: dim as u32,
        factors: 2 * dim as u32,
        value_norm: 1,
        gated: 0,
        shift: SHIFT,
        gainless: 0,
    };
    let expected = if output > 0 && kv_type != KvCacheType::F32 {
        Expected::Cached(kv_type, dim, expected)
    } else {
        // Fixed-point turns and 32-bit divisors cause a small angle error at position 30,000.
        Expected::Floats(expected, 1e-3)
    };
    let threads = (3 * all) as u32 * Kernel::rope_threads(kv_type, dim as u32);
    case(kernel, bindings, params, (threads.div_ceil(kernel.threads()), 1), 3 + output, expected)
}

/// A case, and one with chunks instead of windows for kernels with those.
pub fn both(kernel: Kernel, kv_type: KvCacheType, strategy: Option<Strategy>, quads: u16) -> Vec<Case> {
    let chunks = kernel.extras().window.then_some(true);
    let of = |chunked| attention(kernel, kv_type, strategy, quads, chunked);
    [false].into_iter().chain(chunks).map(of).collect()
}

/// Batch rows of three conversations; the last has a run longer than a tile. No strategy means tiled attention.
fn attention(kernel: Kernel, kv_type: KvCacheType, strategy: Option<Strategy>, quads: u16, chunked: bool) -> Case {
    grouped(kernel, kv_type, strategy, quads, 2, chunked)
}

/// The same with this many query heads per key head.
pub(super) fn grouped(
    kernel: Kernel,
    kv_type: KvCacheType,
    strategy: Option<Strategy>,
    quads: u16,
    queries: usize,
    chunked: bool,
) -> Case {
    let last = if strategy.is_none() { 115..151 } else { 150..151 };
    of_rows(kernel, kv_type, strategy, quads, Rows { queries, chunked, last })
}

/// What the rows of a case see.
struct Rows {
    /// Query heads per key head.
    queries: usize,
    /// Windows are chunks.
    chunked: bool,
    /// Positions of the last conversation.
    last: Range<u32>,
}

fn of_rows(kernel: Kernel, kv_type: KvCacheType, strategy: Option<Strategy>, quads: u16, rows: Rows) -> Case {
    let Rows { queries, chunked, last } = rows;
    let mut random = Random(7);
    let (kv_heads, dim) = (2usize, usize::from(quads) * 4);
    let heads = queries * kv_heads;
    // A page for each of the first two conversations, and those of the last.
    let pages = 2 + last.end.div_ceil(KV_PAGE_TOKENS);
    let tables: Vec<u32> = (0..pages).rev().collect();
    let positions: Vec<u32> = [0, 63].into_iter().chain(last).collect();
    let n = positions.len();
    let starts: Vec<u32> = [0, 1].into_iter().chain(std::iter::repeat_n(2, n - 2)).collect();
    let mut cache =
        || Cache::new(kv_type, dim, &random.floats(pages as usize * KV_PAGE_TOKENS as usize * kv_heads * dim));
    let (keys, values) = (cache(), cache());
    let q: Vec<f32> = random.floats(n * heads * dim).into_iter().map(|v| v * 3.0).collect();
    let sinks = random.floats(heads);
    let extras = kernel.extras();
    let mut expected = Vec::new();
    for row in 0..n {
        for head in 0..heads {
            let at = |j: u32| {
                let page = tables[(starts[row] + j / KV_PAGE_TOKENS) as usize];
                ((page * KV_PAGE_TOKENS + j % KV_PAGE_TOKENS) as usize * kv_heads + head / (heads / kv_heads)) * dim
            };
            let of = |cache: &'_ [f32]| -> Vec<Vec<f32>> {
                let first = match (extras.window, chunked) {
                    (false, _) => 0,
                    (true, false) => (positions[row] + 1).saturating_sub(WINDOW),
                    (true, true) => positions[row] / WINDOW * WINDOW,
                };
                (first..=positions[row]).map(|j| cache[at(j)..at(j) + dim].to_vec()).collect()
            };
            let (k, v) = (of(&keys.values), of(&values.values));
            let k: Vec<&[f32]> = k.iter().map(Vec::as_slice).collect();
            let v: Vec<&[f32]> = v.iter().map(Vec::as_slice).collect();
            let how = reference::Scores {
                cap: if extras.cap { f64::from(CAP) } else { 0.0 },
                sink: extras.sinks.then_some(sinks[head]),
                ..reference::Scores::of(dim)
            };
            expected.extend(reference::attention_with(&q[(row * heads + head) * dim..][..dim], &k, &v, how));
        }
    }
    let rows: Vec<[u32; 4]> = (0..n).map(|row| [positions[row], 0, starts[row], 0]).collect();
    let params = params::Attention {
        n: n as u32,
        heads: heads as u32,
        kv_heads: kv_heads as u32,
        scale: 1.0 / (dim as f32).sqrt(),
        window: WINDOW,
        cap: CAP,
        chunked: u32::from(chunked),
    };
    let size = match strategy {
        None => (kv_heads as u32, ((n * heads / kv_heads) as u32).div_ceil(Kernel::flash_rows(quads))),
        Some(Strategy::Workgroup) => (heads as u32, n as u32),
        Some(Strategy::PerThread) => (((n * heads) as u32).div_ceil(kernel.threads()), 1),
    };
    let mut bindings = vec![raw(&rows), raw(&tables), raw(&q), keys.bytes, values.bytes, zeros(expected.len())];
    bindings.extend(extras.sinks.then(|| raw(&sinks)));
    case(kernel, bindings, params, size, 5, floats(expected))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::KvCacheType;
    use potluck_shaders::{Extras, Kernel, Strategy};

    use super::super::{Case, outside, split_attention};
    use super::{Rows, grouped, of_rows};

    /// Runs cases on this machine's adapter.
    fn judge(engine: &crate::Engine, name: &str, cases: Vec<Case>) {
        let probes: Vec<_> = cases.iter().map(|case| case.probe.clone()).collect();
        for (case, output) in cases.iter().zip(outside::run(engine, &probes)) {
            let (error, tolerance) = case.expected.judge(&output);
            assert!(error <= tolerance, "{name}, output {}: {error} > {tolerance}", case.probe.output);
        }
    }

    /// Lavapipe ends all loops of a thread after 65,535 iterations in total, without an error.
    #[test]
    fn a_thread_alone_reads_thousands_of_positions() {
        let engine = outside::engine();
        let kv_type = KvCacheType::F32;
        for (quads, last) in [(16, 4_000..4_001), (64, 4_000..4_001), (144, 2_000..2_001)] {
            let kernel = Kernel::Attention { kv_type, strategy: Strategy::PerThread, quads, extras: Extras::NONE };
            let rows = Rows { queries: 1, chunked: false, last };
            let case = of_rows(kernel, kv_type, Some(Strategy::PerThread), quads, rows);
            judge(&engine, &kernel.name(), vec![case]);
        }
    }

    #[test]
    fn attention_of_any_width_and_group_agrees_with_the_reference() {
        let engine = outside::engine();
        let all = Extras { window: true, cap: true, sinks: true };
        let some = [(20, 3, 1), (16, 4, 4), (24, 8, 2), (32, 4, 4), (64, 2, 2), (128, 2, 2), (80, 1, 1)];
        for (at, (quads, queries, heads)) in (0..).zip(some) {
            let kv_type = if at % 3 == 2 && quads % 8 == 0 {
                KvCacheType::Q8_0
            } else {
                [KvCacheType::F32, KvCacheType::F16][at % 2]
            };
            let extras = if at % 2 == 0 { all } else { Extras::NONE };
            let flash = Kernel::FlashAttention { kv_type, quads, extras };
            if quads <= Kernel::MAX_SHARED_QUADS {
                let name = format!("{} of {queries}", flash.name());
                judge(&engine, &name, vec![grouped(flash, kv_type, None, quads, queries, false)]);
            }
            let split = Kernel::Split { kv_type, quads, heads, extras };
            judge(&engine, &split.name(), split_attention::split(split, kv_type, quads, heads));
            let merge = Kernel::Merge { quads };
            judge(&engine, &merge.name(), vec![split_attention::merge(merge, quads)]);
        }
    }
}
