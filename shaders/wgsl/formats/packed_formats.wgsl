// Quantized weights as signed bytes: `pack16(base, i)` returns values 16i..16i+15 of the row that starts at byte
// `base`, four to a word, with the number that turns the bytes of each 32 values into values: their scale with even i
// and, where a format has one (LEAST), what every value is less with odd i. HALVES: each 16 values have their own scale.
struct P16 { q: vec4<u32>, s: f32 }

// Subtracts 2^n from bytes below 2^(n + 1); `halves` has it in every byte.
fn centred(q: vec4<u32>, halves: u32) -> vec4<u32> {
    return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(halves)) ^ vec4<u32>(0x80808080u);
}

#if FORMAT == Q8_0
fn pack16(base: u32, i: u32) -> P16 {
    let block = base + 34u * (i >> 1u);
    return P16(words_at(block + 2u + 16u * (i & 1u)), half_at(block));
}
#endif
#if FORMAT == Q4_0
fn pack16(base: u32, i: u32) -> P16 {
    let block = block18_at(base + 18u * (i >> 1u));
    let q = (block.q >> vec4<u32>(4u * (i & 1u))) & vec4<u32>(0x0f0f0f0fu);
    return P16(centred(q, 0x08080808u), block.d);
}
#endif
#if FORMAT == Q4_1
fn pack16(base: u32, i: u32) -> P16 {
    let block = (base + 20u * (i >> 1u)) >> 2u;
    let halves = weights[block];
    let q = vec4<u32>(weights[block + 1u], weights[block + 2u], weights[block + 3u], weights[block + 4u]);
    let s = select(half_bits(halves & 0xffffu), -half_bits(halves >> 16u), (i & 1u) == 1u);
    return P16((q >> vec4<u32>(4u * (i & 1u))) & vec4<u32>(0x0f0f0f0fu), s);
}
#endif
#if FORMAT == Q5_0
fn pack16(base: u32, i: u32) -> P16 {
    let block = base + 22u * (i >> 1u);
    let fifth = short_at(block + 2u + 2u * (i & 1u));
    let q = (words_at(block + 6u) >> vec4<u32>(4u * (i & 1u))) & vec4<u32>(0x0f0f0f0fu);
    let high = vec4<u32>(spread_bits(fifth), spread_bits(fifth >> 4u), spread_bits(fifth >> 8u), spread_bits(fifth >> 12u));
    return P16(centred(q | (high << vec4<u32>(4u)), 0x10101010u), half_at(block));
}
#endif
#if FORMAT == Q5_1
fn pack16(base: u32, i: u32) -> P16 {
    let block = (base + 24u * (i >> 1u)) >> 2u;
    let halves = weights[block];
    let fifth = weights[block + 1u] >> (16u * (i & 1u));
    let words = vec4<u32>(weights[block + 2u], weights[block + 3u], weights[block + 4u], weights[block + 5u]);
    let q = (words >> vec4<u32>(4u * (i & 1u))) & vec4<u32>(0x0f0f0f0fu);
    let high = vec4<u32>(spread_bits(fifth), spread_bits(fifth >> 4u), spread_bits(fifth >> 8u), spread_bits(fifth >> 12u));
    let s = select(half_bits(halves & 0xffffu), -half_bits(halves >> 16u), (i & 1u) == 1u);
    return P16(q | (high << vec4<u32>(4u)), s);
}
#endif
#if FORMAT == Q3_K
fn pack16(base: u32, i: u32) -> P16 {
    let block = base + 110u * (i >> 4u);
    let sub = i & 15u;
    let low = (byte_at(block + 96u + (sub & 7u)) >> (4u * (sub >> 3u))) & 15u;
    let high = (byte_at(block + 104u + (sub & 3u)) >> (2u * (sub >> 2u))) & 3u;
    let d = half_at(block + 108u) * (f32(low | (high << 4u)) - 32.0);
    let column = 16u * (sub & 1u);
    let h = (words_at(block + column) >> vec4<u32>(sub >> 1u)) & vec4<u32>(0x01010101u);
    let q = (words_at(block + 32u + 32u * (sub >> 3u) + column) >> vec4<u32>(sub & 6u)) & vec4<u32>(0x03030303u);
    return P16(centred(q | (h << vec4<u32>(2u)), 0x04040404u), d);
}
#endif
#if FORMAT == Q4_K
fn pack16(base: u32, i: u32) -> P16 {
    let block = (base + 144u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let s = scale_and_least(block, part);
    let at = block + 4u + 8u * (part >> 1u) + 4u * (i & 1u);
    let q = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    return P16((q >> vec4<u32>(4u * (part & 1u))) & vec4<u32>(0x0f0f0f0fu), select(s.x, s.y, (i & 1u) == 1u));
}
#endif
#if FORMAT == Q5_K
fn pack16(base: u32, i: u32) -> P16 {
    let block = (base + 176u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let s = scale_and_least(block, part);
    let at = block + 12u + 8u * (part >> 1u) + 4u * (i & 1u);
    let fifth = block + 4u + 4u * (i & 1u);
    let words = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let q = (words >> vec4<u32>(4u * (part & 1u))) & vec4<u32>(0x0f0f0f0fu);
    let bits = vec4<u32>(weights[fifth], weights[fifth + 1u], weights[fifth + 2u], weights[fifth + 3u]);
    let high = (bits >> vec4<u32>(part)) & vec4<u32>(0x01010101u);
    return P16(q | (high << vec4<u32>(4u)), select(s.x, s.y, (i & 1u) == 1u));
}
#endif
#if FORMAT == Q6_K
fn pack16(base: u32, i: u32) -> P16 {
    let block = base + 210u * (i >> 4u);
    let sub = i & 15u;
    let half = sub >> 3u;
    let group = (sub & 7u) >> 1u;
    let ql = block + 64u * half + 32u * (group & 1u) + 16u * (sub & 1u);
    let qh = block + 128u + 32u * half + 16u * (sub & 1u);
    let low = (words_at(ql) >> vec4<u32>(4u * (group >> 1u))) & vec4<u32>(0x0f0f0f0fu);
    let high = (words_at(qh) >> vec4<u32>(2u * group)) & vec4<u32>(0x03030303u);
    let scale = f32(bitcast<i32>(byte_at(block + 192u + sub) << 24u) >> 24u);
    return P16(centred(low | (high << vec4<u32>(4u)), 0x20202020u), half_at(block + 208u) * scale);
}
#endif
#if FORMAT == IQ4_NL
fn pack16(base: u32, i: u32) -> P16 {
    let block = block18_at(base + 18u * (i >> 1u));
    let q = block.q >> vec4<u32>(4u * (i & 1u));
    return P16(vec4<u32>(iq4_bytes(q.x), iq4_bytes(q.y), iq4_bytes(q.z), iq4_bytes(q.w)), block.d);
}
#endif
#if FORMAT == IQ4_XS
fn pack16(base: u32, i: u32) -> P16 {
    let block = (base + 136u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let first = weights[block];
    let scale = ((weights[block + 1u] >> (4u * part)) & 15u) | (((first >> (16u + 2u * part)) & 3u) << 4u);
    let d = half_bits(first & 0xffffu) * (f32(scale) - 32.0);
    let shift = 4u * (i & 1u);
    let q = block + 2u + 4u * part;
    return P16(vec4<u32>(iq4_bytes(weights[q] >> shift), iq4_bytes(weights[q + 1u] >> shift),
                         iq4_bytes(weights[q + 2u] >> shift), iq4_bytes(weights[q + 3u] >> shift)), d);
}
#endif
