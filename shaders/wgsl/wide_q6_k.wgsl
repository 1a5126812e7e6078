// Q6_K for `fused.wgsl`: 32 values at a time, 16 in the low nibbles and 16 in the high nibbles of the same bytes. Their
// upper bit pairs share bytes as well, so each word is read half as often as by `fetch16`.

// Words as they lie, to be loaded ahead: five that hold 16 bytes at an even offset, twice, and those of the scales.
struct Raw { q: vec4<u32>, q_end: u32, h: vec4<u32>, h_end: u32, d: u32, low: u32, high: u32 }

struct Values {
    q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>,
    q4: vec4<f32>, q5: vec4<f32>, q6: vec4<f32>, q7: vec4<f32>,
}

// Index of the first of a unit's two runs of 16 values, among the 16 runs in a block; the second is four runs further
// on.
fn run_of(i: u32) -> u32 { return 2u * (i & 4u) + (i & 3u); }

fn words(at: u32) -> vec4<u32> {
    return vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
}

// Unit i: 32 values of block i / 8.
fn fetch(base: u32, i: u32) -> Raw {
    let block = base + 210u * (i >> 3u);
    let q = (block + 64u * ((i >> 2u) & 1u) + 16u * (i & 3u)) >> 2u;
    let h = (block + 128u + 32u * ((i >> 2u) & 1u) + 16u * (i & 1u)) >> 2u;
    let scale = block + 192u + run_of(i);
    return Raw(words(q), weights[q + 4u], words(h), weights[h + 4u],
               weights[(block + 208u) >> 2u], weights[scale >> 2u], weights[(scale + 4u) >> 2u]);
}

// The 16 bytes at an even offset, from the five words that hold them.
fn joined(words: vec4<u32>, end: u32, shift: u32) -> vec4<u32> {
    let next = vec4<u32>(words.yzw, end);
    return (words >> vec4<u32>(shift)) | ((next << vec4<u32>(1u)) << vec4<u32>(31u - shift));
}

fn signed_byte(word: u32, offset: u32) -> f32 {
    return f32(bitcast<i32>(word << (24u - 8u * (offset & 3u))) >> 24u);
}

// The quad of a vector that quad k of a unit is multiplied with.
fn quad(i: u32, k: u32) -> u32 {
    return 64u * (i >> 3u) + 4u * run_of(i) + k + 3u * (k & 4u);
}

// Where a staged quad lies, so that neighbouring threads read from different banks.
fn staged_at(q: u32) -> u32 { return q ^ (((q >> 3u) & 1u) | ((q >> 4u) & 2u)); }

// `sixes` gives every second value times 256; the inverse goes into the vector, which many rows share.
fn prepared(q: u32, v: vec4<f32>) -> vec4<f32> { return v * vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625); }

// Four values of low nibbles and upper bit pairs: in the mantissa of 2²³ integers need no conversion.
fn sixes(low: u32, high: u32) -> vec4<f32> {
    let word = (low & 0x0f0f0f0fu) | ((high & 0x03030303u) << 4u);
    let upper = word >> 16u;
    let bits = vec4<u32>(word & 0xffu, word & 0xff00u, upper & 0xffu, upper & 0xff00u);
    return bitcast<vec4<f32>>(bits | vec4<u32>(0x4b000000u)) - vec4<f32>(8388640.0, 8396800.0, 8388640.0, 8396800.0);
}

// Adds the product of a unit with a vector. Four blocks further on the bytes lie alike in their words, so the unit may
// be counted from the start of a chunk.
fn product(w: Raw, base: u32, i: u32, v: Values, sums: vec2<f32>, acc: f32) -> f32 {
    let block = base + 210u * (i >> 3u);
    let shift = (block & 2u) * 8u;
    let q = joined(w.q, w.q_end, shift);
    let h = joined(w.h, w.h_end, shift) >> vec4<u32>(i & 2u);
    let scale = block + 192u + run_of(i);
    // The block's scale follows 208 bytes, a multiple of four.
    let d = half_bits((w.d >> shift) & 0xffffu);
    var low = sixes(q.x, h.x) * v.q0;
    low = fma(sixes(q.y, h.y), v.q1, low);
    low = fma(sixes(q.z, h.z), v.q2, low);
    low = fma(sixes(q.w, h.w), v.q3, low);
    var high = sixes(q.x >> 4u, h.x >> 4u) * v.q4;
    high = fma(sixes(q.y >> 4u, h.y >> 4u), v.q5, high);
    high = fma(sixes(q.z >> 4u, h.z >> 4u), v.q6, high);
    high = fma(sixes(q.w >> 4u, h.w >> 4u), v.q7, high);
    let sum = fma(d * signed_byte(w.low, scale), across(low), acc);
    return fma(d * signed_byte(w.high, scale), across(high), sum);
}
