//! Test cases for the decode attention over splits of the context, and for merging them.

use potluck_plan::KvCacheType;
use potluck_shaders::{Extras, Kernel, OCTAVE, SPLIT, params, reference, split_count, split_start};

use super::Case;
use super::case::{CAP, case, floats};
use super::data::{Cache, Random, raw, zeros};

/// Three batch rows over two key heads; the second and third have several splits, the third also some of two tiles.
struct Attention {
    /// Query heads, and how many share a key head.
    heads: usize,
    queries: usize,
    positions: [u32; 3],
    tables: Vec<u32>,
    keys: Cache,
    values: Cache,
    q: Vec<f32>,
    dim: usize,
    sinks: Vec<f32>,
    extras: Extras,
    chunked: bool,
}

const KEY_HEADS: usize = 2;
/// Window of the split kernels' cases: longer than a split of the far rows, and no multiple of a tile.
const SPLIT_WINDOW: u32 = 700;
/// Position of the third row: from twice the first octave on, a split has two tiles.
const FAR: u32 = 2 * SPLIT * OCTAVE + 2 * SPLIT + 99;

fn splits() -> usize {
    split_count(FAR + 1) as usize
}

impl Attention {
    fn new(kv_type: KvCacheType, quads: u16, queries: usize, extras: Extras) -> Self {
        let mut random = Random(16);
        let dim = usize::from(quads) * 4;
        let heads = KEY_HEADS * queries;
        let positions = [SPLIT - 11, SPLIT, FAR];
        // Five physical pages, reused in turn.
        let tables = (0..=FAR / 64).map(|page| page * 3 % 5).collect();
        let mut cache = || Cache::new(kv_type, dim, &random.floats(5 * 64 * KEY_HEADS * dim));
        let (keys, values) = (cache(), cache());
        let q = random.floats(3 * heads * dim);
        let sinks = random.floats(heads);
        Self { heads, queries, positions, tables, keys, values, q, dim, sinks, extras, chunked: false }
    }

    fn params(&self) -> params::Split {
        let scale = 1.0 / (self.dim as f32).sqrt();
        params::Split {
            heads: self.heads as u32,
            kv_heads: KEY_HEADS as u32,
            scale,
            splits: splits() as u32,
            window: SPLIT_WINDOW,
            cap: CAP,
            chunked: u32::from(self.chunked),
        }
    }

    fn rows(&self) -> Vec<u8> {
        raw(&self.positions.map(|position| [position, 0, 0, 0]))
    }

    fn cached<'a>(&self, cache: &'a [f32], head: usize, position: u32) -> &'a [f32] {
        let page = self.tables[(position / 64) as usize];
        let row = (page * 64 + position % 64) as usize * KEY_HEADS + head / self.queries;
        &cache[row * self.dim..][..self.dim]
    }

    /// Scores of one head of a row at some positions.
    fn scores(&self, row: usize, head: usize, positions: std::ops::Range<u32>) -> Vec<f64> {
        let q = &self.q[(row * self.heads + head) * self.dim..][..self.dim];
        let scale = 1.0 / (self.dim as f64).sqrt();
        let dot = |k: &[f32]| q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum::<f64>() * scale;
        let cap = if self.extras.cap { f64::from(CAP) } else { 0.0 };
        let score = |position| reference::soft_cap(dot(self.cached(&self.keys.values, head, position)), cap);
        positions.map(score).collect()
    }

    /// Maximum, sum and weighted values over some positions.
    fn part(&self, row: usize, head: usize, positions: std::ops::Range<u32>) -> (f64, f64, Vec<f64>) {
        let is_first = positions.start == 0;
        let seen = match (self.extras.window, self.chunked) {
            (false, _) => 0,
            (true, false) => (self.positions[row] + 1).saturating_sub(SPLIT_WINDOW),
            (true, true) => self.positions[row] / SPLIT_WINDOW * SPLIT_WINDOW,
        };
        let positions = positions.start.max(seen).min(positions.end)..positions.end;
        let scores = self.scores(row, head, positions.clone());
        let sink = (self.extras.sinks && is_first).then(|| f64::from(self.sinks[head]));
        // The kernel's smallest maximum, for a split that sees nothing.
        let max = scores.iter().copied().chain(sink).fold(-1.0e30, f64::max);
        let mut total = sink.map_or(0.0, |sink| (sink - max).exp());
        let mut weighted = vec![0.0; self.dim];
        for (position, score) in positions.zip(scores) {
            let weight = (score - max).exp();
            total += weight;
            let value = self.cached(&self.values.values, head, position);
            weighted.iter_mut().zip(value).for_each(|(sum, v)| *sum += weight * f64::from(*v));
        }
        (max, total, weighted)
    }

    /// Partial results of the rows with several splits; zeros elsewhere.
    fn parts(&self) -> Vec<f32> {
        let width = self.dim + 4;
        let mut parts = vec![0.0; 3 * self.heads * splits() * width];
        for (row, &position) in self.positions.iter().enumerate().filter(|(_, position)| **position >= SPLIT) {
            for head in 0..self.heads {
                for split in 0..split_count(position + 1) {
                    let positions = split_start(split)..split_start(split + 1).min(position + 1);
                    let (max, total, weighted) = self.part(row, head, positions);
                    let to = &mut parts[((row * self.heads + head) * splits() + split as usize) * width..][..width];
                    to.iter_mut().zip(weighted).for_each(|(to, v)| *to = v as f32);
                    (to[self.dim], to[self.dim + 1]) = (max as f32, total as f32);
                }
            }
        }
        parts
    }

    /// The result of rows with one split, or of those with several; zeros for the others.
    fn attended(&self, several: bool) -> Vec<f32> {
        let mut all = Vec::new();
        for (row, &position) in self.positions.iter().enumerate() {
            for head in 0..self.heads {
                let (_, total, weighted) = self.part(row, head, 0..position + 1);
                let here = several == (position >= SPLIT);
                all.extend(weighted.iter().map(|v| if here { (v / total) as f32 } else { 0.0 }));
            }
        }
        all
    }
}

/// Finished rows (output 5), and parts left to merge (output 6); kernels with windows also with chunks.
pub fn split(kernel: Kernel, kv_type: KvCacheType, quads: u16, heads: u8) -> Vec<Case> {
    let chunks = kernel.extras().window.then_some(true);
    [false].into_iter().chain(chunks).flat_map(|chunked| split_of(kernel, kv_type, quads, heads, chunked)).collect()
}

fn split_of(kernel: Kernel, kv_type: KvCacheType, quads: u16, heads: u8, chunked: bool) -> [Case; 2] {
    // Query heads that do not fill the last workgroup: 1, 3 or 6 per key head.
    let queries = usize::from(heads) + usize::from(heads) / 2;
    let a = Attention { chunked, ..Attention::new(kv_type, quads, queries, kernel.extras()) };
    let (attended, parts) = (a.attended(false), a.parts());
    let mut bindings = vec![
        a.rows(),
        raw(&a.tables),
        raw(&a.q),
        a.keys.bytes.clone(),
        a.values.bytes.clone(),
        zeros(attended.len()),
        zeros(parts.len()),
    ];
    bindings.extend(a.extras.sinks.then(|| raw(&a.sinks)));
    // A grid with the splits in y, which `fold` would not produce.
    let size = ((KEY_HEADS * queries.div_ceil(usize::from(heads))) as u32, 3);
    [(5, attended), (6, parts)].map(|(output, expected)| {
        let mut case = case(kernel, bindings.clone(), a.params(), size, output, floats(expected));
        case.probe.y = splits() as u32;
        case
    })
}

/// The case of rows with several splits.
pub fn merge(kernel: Kernel, quads: u16) -> Case {
    let a = Attention::new(KvCacheType::F32, quads, 1, Extras::NONE);
    let bindings = vec![a.rows(), raw(&a.parts()), zeros(3 * a.heads * a.dim)];
    case(kernel, bindings, a.params(), (a.heads as u32, 3), 2, floats(a.attended(true)))
}
