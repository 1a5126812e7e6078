// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: one scale per 32 values. In the 4- and 5-bit formats, the last 16 bytes of a block hold
// values 0 to 15 in the low nibbles and values 16 to 31 in the high nibbles.

#if FORMAT == Q8_0
// Blocks of 34 bytes: scale (half), 32 signed bytes.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 34u * (i >> 1u);
    let d = half_at(block);
    let q = words_at(block + 2u + 16u * (i & 1u));
    return W16(d * signed_bytes(q.x), d * signed_bytes(q.y), d * signed_bytes(q.z), d * signed_bytes(q.w));
}
#endif
#if FORMAT == Q4_0
// Blocks of 18 bytes: scale (half), nibbles.
fn four(word: u32, d: f32) -> vec4<f32> {
    return d * (unsigned_bytes(word & 0x0f0f0f0fu) - vec4<f32>(8.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = block18_at(base + 18u * (i >> 1u));
    let q = block.q >> vec4<u32>(4u * (i & 1u));
    return W16(four(q.x, block.d), four(q.y, block.d), four(q.z, block.d), four(q.w, block.d));
}
#endif
#if FORMAT == Q4_1
// Blocks of 20 bytes: scale and minimum (halves), nibbles.
fn four(word: u32, d: f32, least: f32) -> vec4<f32> {
    return fma(vec4<f32>(d), unsigned_bytes(word & 0x0f0f0f0fu), vec4<f32>(least));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 20u * (i >> 1u)) >> 2u;
    let halves = weights[block];
    let d = half_bits(halves & 0xffffu);
    let m = half_bits(halves >> 16u);
    let shift = 4u * (i & 1u);
    return W16(four(weights[block + 1u] >> shift, d, m), four(weights[block + 2u] >> shift, d, m),
               four(weights[block + 3u] >> shift, d, m), four(weights[block + 4u] >> shift, d, m));
}
#endif
#if FORMAT == Q5_0
// Blocks of 22 bytes: scale (half), a word of fifth bits, nibbles.
fn four(word: u32, fifth: u32, d: f32) -> vec4<f32> {
    return d * (unsigned_bytes((word & 0x0f0f0f0fu) | (spread_bits(fifth) << 4u)) - vec4<f32>(16.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 22u * (i >> 1u);
    let d = half_at(block);
    let fifth = short_at(block + 2u + 2u * (i & 1u));
    let shift = 4u * (i & 1u);
    let q = words_at(block + 6u) >> vec4<u32>(shift);
    return W16(four(q.x, fifth, d), four(q.y, fifth >> 4u, d), four(q.z, fifth >> 8u, d), four(q.w, fifth >> 12u, d));
}
#endif
#if FORMAT == Q5_1
// Blocks of 24 bytes: scale and minimum (halves), a word of fifth bits, nibbles.
fn four(word: u32, fifth: u32, d: f32, least: f32) -> vec4<f32> {
    let q = (word & 0x0f0f0f0fu) | (spread_bits(fifth) << 4u);
    return fma(vec4<f32>(d), unsigned_bytes(q), vec4<f32>(least));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 24u * (i >> 1u)) >> 2u;
    let halves = weights[block];
    let d = half_bits(halves & 0xffffu);
    let m = half_bits(halves >> 16u);
    let fifth = weights[block + 1u] >> (16u * (i & 1u));
    let shift = 4u * (i & 1u);
    return W16(four(weights[block + 2u] >> shift, fifth, d, m), four(weights[block + 3u] >> shift, fifth >> 4u, d, m),
               four(weights[block + 4u] >> shift, fifth >> 8u, d, m),
               four(weights[block + 5u] >> shift, fifth >> 12u, d, m));
}
#endif
