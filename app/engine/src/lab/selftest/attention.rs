//! Test cases for RoPE and for attention, per row and tiled.

use potluck_plan::{KV_PAGE_TOKENS, KvCacheType};
use potluck_shaders::{Kernel, Pairs, Strategy, params, reference};

use super::cases::{case, floats};
use super::data::{Cache, Random, raw, zeros};
use super::{Case, Expected};

pub fn rope(
    kernel: Kernel,
    kv_type: KvCacheType,
    pairs: Pairs,
    (qk_norm, factors): (bool, bool),
    output: usize,
) -> Case {
    let mut random = Random(6);
    // Three blocks, so the last scale has no neighbour.
    let (dim, dims) = if kv_type.is_quantized() { (96usize, 72usize) } else { (32, 24) };
    let (heads, kv_heads) = (4usize, 2usize);
    let all = heads + 2 * kv_heads;
    let positions = [0u32, 77, 30_000];
    let cache_rows = [1u32, 64 + 13, 3];
    let qkv = random.floats(3 * all * dim);
    let (q_gain, k_gain) = (random.floats(dim), random.floats(dim));
    let divisors: Vec<f32> = (0..dims / 2).map(|i| if i < 4 { 1.0 } else { 2.0 + i as f32 / 3.0 }).collect();
    let none: [f32; 0] = [];
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
                reference::rotate(&mut values, positions[row], 10_000.0, 2.0, dims, pairs, divisors_used);
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
    let rope_table = reference::rope_table(dims as u32, 10_000.0, 2.0);
    let mut bindings =
        vec![raw(&rows), raw(&qkv), raw(&rope_table), zeros(3 * heads * dim), zeros(cache), zeros(cache)];
    if qk_norm {
        bindings.extend([raw(&q_gain), raw(&k_gain)]);
    }
    if factors {
        bindings.push(raw(&divisors));
    }
    let params = params::Rope {
        n: 3,
        heads: heads as u32,
        kv_heads: kv_heads as u32,
        head_dim: dim as u32,
        dims: dims as u32,
        epsilon: 1e-5,
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

/// Batch rows of three conversations; the last has a run longer than a tile. No strategy means tiled attention.
pub fn attention(kernel: Kernel, kv_type: KvCacheType, strategy: Option<Strategy>, quads: u16) -> Case {
    let mut random = Random(7);
    let (heads, kv_heads, dim) = (4usize, 2usize, usize::from(quads) * 4);
    let last = if strategy.is_none() { 115..151 } else { 150..151 };
    let positions: Vec<u32> = [0, 63].into_iter().chain(last).collect();
    let tables = [3u32, 1, 2, 0, 4];
    let n = positions.len();
    let starts: Vec<u32> = [0, 1].into_iter().chain(std::iter::repeat_n(2, n - 2)).collect();
    let mut cache = || Cache::new(kv_type, dim, &random.floats(5 * 64 * kv_heads * dim));
    let (keys, values) = (cache(), cache());
    let q: Vec<f32> = random.floats(n * heads * dim).into_iter().map(|v| v * 3.0).collect();
    let mut expected = Vec::new();
    for row in 0..n {
        for head in 0..heads {
            let at = |j: u32| {
                let page = tables[(starts[row] + j / KV_PAGE_TOKENS) as usize];
                ((page * KV_PAGE_TOKENS + j % KV_PAGE_TOKENS) as usize * kv_heads + head / (heads / kv_heads)) * dim
            };
            let of = |cache: &'_ [f32]| -> Vec<Vec<f32>> {
                (0..=positions[row]).map(|j| cache[at(j)..at(j) + dim].to_vec()).collect()
            };
            let (k, v) = (of(&keys.values), of(&values.values));
            let k: Vec<&[f32]> = k.iter().map(Vec::as_slice).collect();
            let v: Vec<&[f32]> = v.iter().map(Vec::as_slice).collect();
            expected.extend(reference::attention(&q[(row * heads + head) * dim..][..dim], &k, &v));
        }
    }
    let rows: Vec<[u32; 4]> = (0..n).map(|row| [positions[row], 0, starts[row], 0]).collect();
    let params = params::Attention {
        n: n as u32,
        heads: heads as u32,
        kv_heads: kv_heads as u32,
        scale: 1.0 / (dim as f32).sqrt(),
    };
    let size = match strategy {
        None => (heads as u32, (n as u32).div_ceil(Kernel::FLASH_QUERIES)),
        Some(Strategy::Workgroup) => (heads as u32, n as u32),
        Some(Strategy::PerThread) => (((n * heads) as u32).div_ceil(kernel.threads()), 1),
    };
    let bindings = vec![raw(&rows), raw(&tables), raw(&q), keys.bytes, values.bytes, zeros(expected.len())];
    case(kernel, bindings, params, size, 5, floats(expected))
}
