// Quantized weights: `fetch16(base, i)` gives values 16i..16i+15 of the row that starts at byte `base`.
// Uses `weights: array<u32>` and `params.cols`. Values past the end of a row are zero (F32 and F16 only; the other
// formats have whole blocks).

struct W16 { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// The four bytes at an even byte offset: blocks of 18, 34 and 210 bytes are only aligned to 2. Without a branch: software
// adapters take minutes to compile many of them.
fn word_at(offset: u32) -> u32 {
    let at = offset >> 2u;
    let shift = (offset & 2u) * 8u;
    return (weights[at] >> shift) | ((weights[at + 1u] << 1u) << (31u - shift));
}

// The half float at an even byte offset. By bits: `unpack2x16float` may flush subnormal scales to zero.
fn half_bits(bits: u32) -> f32 {
    let magnitude = bits & 0x7fffu;
    let normal = bitcast<f32>((magnitude << 13u) + 0x38000000u);
    let value = select(normal, f32(magnitude) * 5.9604644775390625e-8, magnitude < 0x400u);
    return select(value, -value, (bits & 0x8000u) != 0u);
}

fn half_at(offset: u32) -> f32 {
    return half_bits((weights[offset >> 2u] >> ((offset & 2u) * 8u)) & 0xffffu);
}

fn byte_at(offset: u32) -> u32 {
    return (weights[offset >> 2u] >> ((offset & 3u) * 8u)) & 0xffu;
}

fn unsigned_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(f32(word & 0xffu), f32((word >> 8u) & 0xffu), f32((word >> 16u) & 0xffu), f32(word >> 24u));
}

fn signed_bytes(word: u32) -> vec4<f32> {
    let w = bitcast<i32>(word);
    return vec4<f32>(f32((w << 24u) >> 24u), f32((w << 16u) >> 24u), f32((w << 8u) >> 24u), f32(w >> 24u));
}

#if FORMAT == F32
fn four(at: u32, col: u32) -> vec4<f32> {
    let v = vec4<f32>(bitcast<f32>(weights[at]), bitcast<f32>(weights[at + 1u]), bitcast<f32>(weights[at + 2u]),
                      bitcast<f32>(weights[at + 3u]));
    return select(vec4<f32>(0.0), v, vec4<bool>(col < params.cols));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let at = (base >> 2u) + 16u * i;
    let col = 16u * i;
    return W16(four(at, col), four(at + 4u, col + 4u), four(at + 8u, col + 8u), four(at + 12u, col + 12u));
}
#endif
#if FORMAT == F16
fn four(at: u32, col: u32) -> vec4<f32> {
    let v = vec4<f32>(unpack2x16float(weights[at]), unpack2x16float(weights[at + 1u]));
    return select(vec4<f32>(0.0), v, vec4<bool>(col < params.cols));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let at = (base >> 2u) + 8u * i;
    let col = 16u * i;
    return W16(four(at, col), four(at + 2u, col + 4u), four(at + 4u, col + 8u), four(at + 6u, col + 12u));
}
#endif
#if FORMAT == Q8_0
// Blocks of 34 bytes: scale (half), 32 signed bytes.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 34u * (i >> 1u);
    let d = half_at(block);
    let q = block + 2u + 16u * (i & 1u);
    return W16(d * signed_bytes(word_at(q)), d * signed_bytes(word_at(q + 4u)), d * signed_bytes(word_at(q + 8u)),
               d * signed_bytes(word_at(q + 12u)));
}
#endif
#if FORMAT == Q4_0
// Blocks of 18 bytes: scale (half), 16 bytes with values j in the low and 16 + j in the high nibbles.
fn four(word: u32, d: f32) -> vec4<f32> {
    return d * (unsigned_bytes(word & 0x0f0f0f0fu) - vec4<f32>(8.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 18u * (i >> 1u);
    let d = half_at(block);
    let shift = 4u * (i & 1u);
    let q = block + 2u;
    return W16(four(word_at(q) >> shift, d), four(word_at(q + 4u) >> shift, d), four(word_at(q + 8u) >> shift, d),
               four(word_at(q + 12u) >> shift, d));
}
#endif
#if FORMAT == Q4_K
// Blocks of 144 bytes, 256 values: scale and minimum (halves), eight 6-bit pairs of them in 12 bytes, 128 bytes of
// nibbles: each 32 bytes hold 32 values in the low and the next 32 in the high nibbles.
fn four(word: u32, scale: f32, least: f32) -> vec4<f32> {
    return fma(vec4<f32>(scale), unsigned_bytes(word & 0x0f0f0f0fu), vec4<f32>(-least));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 144u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let shift = (part & 3u) * 8u;
    let low = weights[block + 1u];
    let mid = weights[block + 2u];
    var scale = (low >> shift) & 63u;
    var least = (mid >> shift) & 63u;
    if (part >= 4u) {
        let high = weights[block + 3u] >> shift;
        scale = (high & 15u) | (((low >> shift) & 0xc0u) >> 2u);
        least = ((high >> 4u) & 15u) | (((mid >> shift) & 0xc0u) >> 2u);
    }
    let halves = weights[block];
    let d = half_bits(halves & 0xffffu) * f32(scale);
    let m = half_bits(halves >> 16u) * f32(least);
    let nibble = 4u * (part & 1u);
    let q = block + 4u + 8u * (part >> 1u) + 4u * (i & 1u);
    return W16(four(weights[q] >> nibble, d, m), four(weights[q + 1u] >> nibble, d, m),
               four(weights[q + 2u] >> nibble, d, m), four(weights[q + 3u] >> nibble, d, m));
}
#endif
#if FORMAT == Q6_K
// Blocks of 210 bytes, 256 values: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales, one half.
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
    let nibble = 4u * (group >> 1u);
    let pair = 2u * group;
    let scale = f32(bitcast<i32>(byte_at(block + 192u + sub) << 24u) >> 24u);
    let d = half_at(block + 208u) * scale;
    return W16(four(word_at(ql) >> nibble, word_at(qh) >> pair, d),
               four(word_at(ql + 4u) >> nibble, word_at(qh + 4u) >> pair, d),
               four(word_at(ql + 8u) >> nibble, word_at(qh + 8u) >> pair, d),
               four(word_at(ql + 12u) >> nibble, word_at(qh + 12u) >> pair, d));
}
#endif
