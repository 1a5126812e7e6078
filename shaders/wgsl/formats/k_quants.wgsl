// Q2_K, Q3_K, Q4_K, Q5_K, Q6_K: blocks of 256 values, divided into parts with their own quantized scales.

#if FORMAT == Q2_K
// Blocks of 84 bytes: a scale and a minimum for each 16 values (nibbles of one byte), 64 bytes of bit pairs (each 32
// bytes hold four runs of 32 values), scale and minimum (halves).
fn four(word: u32, scale: f32, least: f32) -> vec4<f32> {
    return fma(vec4<f32>(scale), unsigned_bytes(word & 0x03030303u), vec4<f32>(-least));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 84u * (i >> 4u);
    let sub = i & 15u;
    let both = byte_at(block + sub);
    let halves = weights[(block >> 2u) + 20u];
    let d = half_bits(halves & 0xffffu) * f32(both & 15u);
    let m = half_bits(halves >> 16u) * f32(both >> 4u);
    let shift = sub & 6u;
    let q = (block >> 2u) + 4u + 8u * (sub >> 3u) + 4u * (sub & 1u);
    return W16(four(weights[q] >> shift, d, m), four(weights[q + 1u] >> shift, d, m),
               four(weights[q + 2u] >> shift, d, m), four(weights[q + 3u] >> shift, d, m));
}
#endif
#if FORMAT == Q3_K
// Blocks of 110 bytes: 32 bytes of third bits, 64 bytes of bit pairs (each 32 bytes hold four runs of 32 values),
// sixteen 6-bit scales in 12 bytes (8 bytes of low nibbles, then 4 bytes of upper bit pairs), scale (half).
fn four(word: u32, third: u32, d: f32) -> vec4<f32> {
    return d * (unsigned_bytes((word & 0x03030303u) | ((third & 0x01010101u) << 2u)) - vec4<f32>(4.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 110u * (i >> 4u);
    let sub = i & 15u;
    let low = (byte_at(block + 96u + (sub & 7u)) >> (4u * (sub >> 3u))) & 15u;
    let high = (byte_at(block + 104u + (sub & 3u)) >> (2u * (sub >> 2u))) & 3u;
    let d = half_at(block + 108u) * (f32(low | (high << 4u)) - 32.0);
    let column = 16u * (sub & 1u);
    let h = words_at(block + column) >> vec4<u32>(sub >> 1u);
    let q = words_at(block + 32u + 32u * (sub >> 3u) + column) >> vec4<u32>(sub & 6u);
    return W16(four(q.x, h.x, d), four(q.y, h.y, d), four(q.z, h.z, d), four(q.w, h.w, d));
}
#endif
#if FORMAT == Q4_K
#include k_scales
// Blocks of 144 bytes: scale and minimum (halves), eight pairs of 6-bit scales and minimums in 12 bytes, 128 bytes of
// nibbles: each 32 bytes hold 32 values in the low nibbles and the next 32 in the high nibbles.
fn four(word: u32, scale: f32, least: f32) -> vec4<f32> {
    return fma(vec4<f32>(scale), unsigned_bytes(word & 0x0f0f0f0fu), vec4<f32>(-least));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 144u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let s = scale_and_least(block, part);
    let nibble = 4u * (part & 1u);
    let q = block + 4u + 8u * (part >> 1u) + 4u * (i & 1u);
    return W16(four(weights[q] >> nibble, s.x, s.y), four(weights[q + 1u] >> nibble, s.x, s.y),
               four(weights[q + 2u] >> nibble, s.x, s.y), four(weights[q + 3u] >> nibble, s.x, s.y));
}
#endif
#if FORMAT == Q5_K
#include k_scales
// Blocks of 176 bytes: scale and minimum (halves), eight pairs of 6-bit scales and minimums in 12 bytes, 32 bytes of
// fifth bits (one bit of each byte for every 32 values), 128 bytes of nibbles as in Q4_K.
fn four(word: u32, fifth: u32, scale: f32, least: f32) -> vec4<f32> {
    let q = (word & 0x0f0f0f0fu) | ((fifth & 0x01010101u) << 4u);
    return fma(vec4<f32>(scale), unsigned_bytes(q), vec4<f32>(-least));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 176u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let s = scale_and_least(block, part);
    let nibble = 4u * (part & 1u);
    let h = block + 4u + 4u * (i & 1u);
    let q = block + 12u + 8u * (part >> 1u) + 4u * (i & 1u);
    return W16(four(weights[q] >> nibble, weights[h] >> part, s.x, s.y),
               four(weights[q + 1u] >> nibble, weights[h + 1u] >> part, s.x, s.y),
               four(weights[q + 2u] >> nibble, weights[h + 2u] >> part, s.x, s.y),
               four(weights[q + 3u] >> nibble, weights[h + 3u] >> part, s.x, s.y));
}
#endif
#if FORMAT == Q6_K
// Blocks of 210 bytes: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales, scale of the block
// (half).
fn four(low: u32, high: u32, d: f32) -> vec4<f32> {
    let q = (low & 0x0f0f0f0fu) | ((high & 0x03030303u) << 4u);
    return d * (unsigned_bytes(q) - vec4<f32>(32.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 210u * (i >> 4u);
    let sub = i & 15u;
    let half = sub >> 3u;
    let group = (sub & 7u) >> 1u;
    let ql = block + 64u * half + 32u * (group & 1u) + 16u * (sub & 1u);
    let qh = block + 128u + 32u * half + 16u * (sub & 1u);
    let low = words_at(ql) >> vec4<u32>(4u * (group >> 1u));
    let high = words_at(qh) >> vec4<u32>(2u * group);
    let scale = f32(bitcast<i32>(byte_at(block + 192u + sub) << 24u) >> 24u);
    let d = half_at(block + 208u) * scale;
    return W16(four(low.x, high.x, d), four(low.y, high.y, d), four(low.z, high.z, d), four(low.w, high.w, d));
}
#endif
