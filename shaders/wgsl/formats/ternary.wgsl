// TQ1_0, TQ2_0, Q1_0, Q2_0: one or two bits, or a ternary digit, per value, and a scale.

#if FORMAT == TQ1_0
// Blocks of 54 bytes, 256 values of -1, 0 or 1: 32 bytes and 16 bytes of five digits each, 4 bytes of four digits each,
// scale (half). A byte is a base-3 fraction: multiply it by 3^n, keep the low byte, and three times that overflows into
// digit n.
fn four(word: u32, n: u32, d: f32) -> vec4<f32> {
    let power = select((0x1b090301u >> (8u * n)) & 0xffu, 81u, n == 4u);
    let bytes = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu);
    let fraction = (bytes * vec4<u32>(power)) & vec4<u32>(0xffu);
    return d * (vec4<f32>((fraction * vec4<u32>(3u)) >> vec4<u32>(8u)) - vec4<f32>(1.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 54u * (i >> 4u);
    let sub = i & 15u;
    let d = half_at(block + 52u);
    let long = sub < 10u;
    // The last 16 values are the four digits of the last four bytes.
    let last = sub == 15u;
    let n = select(select(sub - 10u, sub >> 1u, long), 0u, last);
    let q = block + select(select(32u, 16u * (sub & 1u), long), 48u, last);
    let next_byte = select(4u, 0u, last);
    let next_digit = select(0u, 1u, last);
    return W16(four(word_at(q), n, d), four(word_at(q + next_byte), n + next_digit, d),
               four(word_at(q + 2u * next_byte), n + 2u * next_digit, d),
               four(word_at(q + 3u * next_byte), n + 3u * next_digit, d));
}
#endif
#if FORMAT == TQ2_0
// Blocks of 66 bytes, 256 values: 64 bytes of bit pairs (each 32 bytes hold four runs of 32 values), scale (half).
fn four(word: u32, d: f32) -> vec4<f32> {
    return d * (unsigned_bytes(word & 0x03030303u) - vec4<f32>(1.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 66u * (i >> 4u);
    let sub = i & 15u;
    let d = half_at(block + 64u);
    let q = words_at(block + 32u * (sub >> 3u) + 16u * (sub & 1u)) >> vec4<u32>(sub & 6u);
    return W16(four(q.x, d), four(q.y, d), four(q.z, d), four(q.w, d));
}
#endif
#if FORMAT == Q1_0
// Blocks of 18 bytes, 128 values: scale (half), one bit per value: the scale or its negative.
fn four(bits: u32, d: f32) -> vec4<f32> {
    return fma(vec4<f32>(2.0 * d), unsigned_bytes(spread_bits(bits)), vec4<f32>(-d));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 18u * (i >> 3u);
    let d = half_at(block);
    let bits = short_at(block + 2u + 2u * (i & 7u));
    return W16(four(bits, d), four(bits >> 4u, d), four(bits >> 8u, d), four(bits >> 12u, d));
}
#endif
#if FORMAT == Q2_0
// Blocks of 18 bytes, 64 values: scale (half), 16 bytes of bit pairs in order.
fn four(pairs: u32, d: f32) -> vec4<f32> {
    let q = pairs & 0xffu;
    return d * (unsigned_bytes((q | (q << 6u) | (q << 12u) | (q << 18u)) & 0x03030303u) - vec4<f32>(1.0));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 18u * (i >> 2u);
    let d = half_at(block);
    let pairs = word_at(block + 2u + 4u * (i & 3u));
    return W16(four(pairs, d), four(pairs >> 8u, d), four(pairs >> 16u, d), four(pairs >> 24u, d));
}
#endif
