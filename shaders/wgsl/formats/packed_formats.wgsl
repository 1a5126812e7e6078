// Quantized weights as signed bytes, in two steps, so that other work can be done while the words are on their way:
// `words16(base, i)` reads what values 16i..16i+15 of the row that starts at byte `base` need, and `pack16(words, base,
// i)` returns them, four to a word, with the number that turns the bytes of each 32 values into values: their scale with
// even i and, where a format has one (LEAST), what every value is less with odd i. HALVES: each 16 values have their own
// scale. WIDE: blocks are whole times 16 bytes and read so.
struct Words { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: u32 }
struct P16 { q: vec4<u32>, s: f32 }

#if WIDE
#include numbers
#else
fn four_words(at: u32) -> vec4<u32> {
    return vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
}
#endif

// 16 bytes from an even byte offset, out of the five words from there.
fn joined(words: vec4<u32>, last: u32, offset: u32) -> vec4<u32> {
    let shift = (offset & 2u) * 8u;
    return (words >> vec4<u32>(shift)) | ((vec4<u32>(words.yzw, last) << vec4<u32>(1u)) << vec4<u32>(31u - shift));
}

// The 16 bytes behind the half float at an even byte offset, out of the five words from there.
fn after_half(words: vec4<u32>, last: u32, offset: u32) -> vec4<u32> {
    let shift = (offset & 2u) * 8u;
    let low = (words >> vec4<u32>(1u)) >> vec4<u32>(15u + shift);
    return low | (vec4<u32>(words.yzw, last) << vec4<u32>(16u - shift));
}

// The half float at an even byte offset, out of its word.
fn half_of(word: u32, offset: u32) -> f32 { return half_bits((word >> ((offset & 2u) * 8u)) & 0xffffu); }

// Subtracts 2^n from bytes below 2^(n + 1); `halves` has it in every byte.
fn centred(q: vec4<u32>, halves: u32) -> vec4<u32> {
    return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(halves)) ^ vec4<u32>(0x80808080u);
}

// The lower half float as it is with even i, minus the upper one with odd i.
fn scale_or_least(halves: u32, i: u32) -> f32 {
    let value = half_bits((halves >> (16u * (i & 1u))) & 0xffffu);
    return select(value, -value, (i & 1u) == 1u);
}

// The low nibbles of an even part, the high ones of an odd one.
fn nibbles(q: vec4<u32>, part: u32) -> vec4<u32> { return (q >> vec4<u32>(4u * (part & 1u))) & vec4<u32>(0x0f0f0f0fu); }

fn fifth_bits(bits: u32) -> vec4<u32> {
    return vec4<u32>(spread(bits), spread(bits >> 4u), spread(bits >> 8u), spread(bits >> 12u)) << vec4<u32>(4u);
}
fn spread(bits: u32) -> u32 { return ((bits & 15u) * 0x00204081u) & 0x01010101u; }

// With the first 16 bytes of a Q4_K or Q5_K block: the scale of one of its eight parts with even i, its minimum with odd.
fn k_scale(header: vec4<u32>, i: u32) -> f32 {
    let part = (i >> 1u) & 7u;
    let shift = 8u * (part & 3u);
    let mine = select(header.y, header.z, (i & 1u) == 1u) >> shift;
    let low = (header.w >> (shift + 4u * (i & 1u))) & 15u;
    let n = select(mine & 63u, low | ((mine & 0xc0u) >> 2u), part >= 4u);
    return half_bits((header.x >> (16u * (i & 1u))) & 0xffffu) * f32(n);
}

#if FORMAT == Q8_0
fn words16(base: u32, i: u32) -> Words {
    let block = base + 34u * (i >> 1u);
    let at = (block + 2u + 16u * (i & 1u)) >> 2u;
    return Words(four_words(at), vec4<u32>(weights[at + 4u], weights[block >> 2u], 0u, 0u), vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let block = base + 34u * (i >> 1u);
    return P16(joined(w.a, w.b.x, block + 2u), half_of(w.b.y, block));
}
#endif
#if FORMAT == Q4_0
fn words16(base: u32, i: u32) -> Words {
    let at = (base + 18u * (i >> 1u)) >> 2u;
    return Words(four_words(at), vec4<u32>(weights[at + 4u], 0u, 0u, 0u), vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let block = base + 18u * (i >> 1u);
    return P16(centred(nibbles(after_half(w.a, w.b.x, block), i), 0x08080808u), half_of(w.a.x, block));
}
#endif
#if FORMAT == Q4_1
fn words16(base: u32, i: u32) -> Words {
    let block = (base + 20u * (i >> 1u)) >> 2u;
    return Words(four_words(block + 1u), vec4<u32>(weights[block], 0u, 0u, 0u), vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 { return P16(nibbles(w.a, i), scale_or_least(w.b.x, i)); }
#endif
#if FORMAT == Q5_0
fn words16(base: u32, i: u32) -> Words {
    let block = base + 22u * (i >> 1u);
    let at = (block + 6u) >> 2u;
    let others = vec4<u32>(weights[at + 4u], weights[(block + 2u + 2u * (i & 1u)) >> 2u], weights[block >> 2u], 0u);
    return Words(four_words(at), others, vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let block = base + 22u * (i >> 1u);
    let fifth = w.b.y >> (((block + 2u + 2u * (i & 1u)) & 2u) * 8u);
    let q = nibbles(joined(w.a, w.b.x, block + 6u), i);
    return P16(centred(q | fifth_bits(fifth), 0x10101010u), half_of(w.b.z, block));
}
#endif
#if FORMAT == Q5_1
fn words16(base: u32, i: u32) -> Words {
    let block = (base + 24u * (i >> 1u)) >> 2u;
    let others = vec4<u32>(weights[block], weights[block + 1u], 0u, 0u);
    return Words(four_words(block + 2u), others, vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    return P16(nibbles(w.a, i) | fifth_bits(w.b.y >> (16u * (i & 1u))), scale_or_least(w.b.x, i));
}
#endif
#if FORMAT == Q3_K
fn words16(base: u32, i: u32) -> Words {
    let block = base + 110u * (i >> 4u);
    let sub = i & 15u;
    let third = (block + 16u * (sub & 1u)) >> 2u;
    let pairs_of_bits = (block + 32u + 32u * (sub >> 3u) + 16u * (sub & 1u)) >> 2u;
    let others = vec4<u32>(weights[third + 4u], weights[pairs_of_bits + 4u], weights[(block + 96u + (sub & 7u)) >> 2u],
                           weights[(block + 104u + (sub & 3u)) >> 2u]);
    return Words(four_words(third), four_words(pairs_of_bits), others, weights[(block + 108u) >> 2u]);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let block = base + 110u * (i >> 4u);
    let sub = i & 15u;
    let low = (w.c.z >> (((block + 96u + (sub & 7u)) & 3u) * 8u + 4u * (sub >> 3u))) & 15u;
    let high = (w.c.w >> (((block + 104u + (sub & 3u)) & 3u) * 8u + 2u * (sub >> 2u))) & 3u;
    let d = half_of(w.d, block + 108u) * (f32(low | (high << 4u)) - 32.0);
    let h = (joined(w.a, w.c.x, block) >> vec4<u32>(sub >> 1u)) & vec4<u32>(0x01010101u);
    let q = (joined(w.b, w.c.y, block) >> vec4<u32>(sub & 6u)) & vec4<u32>(0x03030303u);
    return P16(centred(q | (h << vec4<u32>(2u)), 0x04040404u), d);
}
#endif
#if FORMAT == Q4_K
fn words16(base: u32, i: u32) -> Words {
    let block = (base >> 4u) + 9u * (i >> 4u);
    return Words(weights[block], weights[block + 1u + 2u * ((i >> 2u) & 3u) + (i & 1u)], vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 { return P16(nibbles(w.b, i >> 1u), k_scale(w.a, i)); }
#endif
#if FORMAT == Q5_K
fn words16(base: u32, i: u32) -> Words {
    let block = (base >> 4u) + 11u * (i >> 4u);
    let q = weights[block + 3u + 2u * ((i >> 2u) & 3u) + (i & 1u)];
    return Words(weights[block], q, weights[block + 1u + (i & 1u)], 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let part = (i >> 1u) & 7u;
    let fifth = (w.c >> vec4<u32>(part)) & vec4<u32>(0x01010101u);
    return P16(nibbles(w.b, part) | (fifth << vec4<u32>(4u)), k_scale(w.a, i));
}
#endif
#if FORMAT == Q6_K
fn words16(base: u32, i: u32) -> Words {
    let block = base + 210u * (i >> 4u);
    let sub = i & 15u;
    let ql = (block + 64u * (sub >> 3u) + 16u * (sub & 3u)) >> 2u;
    let qh = (block + 128u + 32u * (sub >> 3u) + 16u * (sub & 1u)) >> 2u;
    let others = vec4<u32>(weights[ql + 4u], weights[qh + 4u], weights[(block + 192u + sub) >> 2u],
                           weights[(block + 208u) >> 2u]);
    return Words(four_words(ql), four_words(qh), others, 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let block = base + 210u * (i >> 4u);
    let sub = i & 15u;
    let group = (sub & 7u) >> 1u;
    let low = nibbles(joined(w.a, w.c.x, block), group >> 1u);
    let high = (joined(w.b, w.c.y, block) >> vec4<u32>(2u * group)) & vec4<u32>(0x03030303u);
    let byte = w.c.z >> (((block + 192u + sub) & 3u) * 8u);
    let scale = f32(bitcast<i32>(byte << 24u) >> 24u);
    return P16(centred(low | (high << vec4<u32>(4u)), 0x20202020u), half_of(w.c.w, block + 208u) * scale);
}
#endif
#if FORMAT == IQ4_NL
fn words16(base: u32, i: u32) -> Words {
    let at = (base + 18u * (i >> 1u)) >> 2u;
    return Words(four_words(at), vec4<u32>(weights[at + 4u], 0u, 0u, 0u), vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let block = base + 18u * (i >> 1u);
    let q = after_half(w.a, w.b.x, block) >> vec4<u32>(4u * (i & 1u));
    return P16(vec4<u32>(iq4_bytes(q.x), iq4_bytes(q.y), iq4_bytes(q.z), iq4_bytes(q.w)), half_of(w.a.x, block));
}
#endif
#if FORMAT == IQ4_XS
fn words16(base: u32, i: u32) -> Words {
    let block = (base + 136u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let others = vec4<u32>(weights[block], weights[block + 1u], 0u, 0u);
    return Words(four_words(block + 2u + 4u * part), others, vec4<u32>(0u), 0u);
}
fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let part = (i >> 1u) & 7u;
    let scale = ((w.b.y >> (4u * part)) & 15u) | (((w.b.x >> (16u + 2u * part)) & 3u) << 4u);
    let d = half_bits(w.b.x & 0xffffu) * (f32(scale) - 32.0);
    let q = w.a >> vec4<u32>(4u * (i & 1u));
    return P16(vec4<u32>(iq4_bytes(q.x), iq4_bytes(q.y), iq4_bytes(q.z), iq4_bytes(q.w)), d);
}
#endif
#if FORMAT == MXFP4
fn words16(base: u32, i: u32) -> Words {
    let at = (base + 17u * (i >> 1u)) >> 2u;
    return Words(four_words(at), vec4<u32>(weights[at + 4u], 0u, 0u, 0u), vec4<u32>(0u), 0u);
}

// Twice the numbers that nibbles stand for: 0, 1, 2, 3, 4, 6, 8 and 12, with a sign.
fn doubled(q: vec4<u32>) -> vec4<u32> {
    let ones = vec4<u32>(0x01010101u);
    let m = q & vec4<u32>(0x07070707u);
    let large = ((m >> vec4<u32>(2u)) & ones) * 255u;
    let larger = (((m >> vec4<u32>(1u)) & ones) * 255u) & large;
    let twice = ((m & ones) | vec4<u32>(0x02020202u)) << vec4<u32>(1u);
    let number = ((m & ~large) | (twice & large)) + (twice & larger);
    let negative = ((q >> vec4<u32>(3u)) & ones) * 255u;
    return (vec4<u32>(0x80808080u) + (number & ~negative) - (number & negative)) ^ vec4<u32>(0x80808080u);
}

fn pack16(w: Words, base: u32, i: u32) -> P16 {
    let shift = ((base + 17u * (i >> 1u)) & 3u) * 8u;
    // Half of 2^(e - 127). The largest three (255 means NaN) count as zero, as in `wide_mxfp4.wgsl`.
    let e = (w.a.x >> shift) & 0xffu;
    let d = bitcast<f32>(select(max(e, 1u) - 1u, 0u, e > 252u) << 23u);
    let bytes = ((w.a >> vec4<u32>(8u)) >> vec4<u32>(shift)) | (vec4<u32>(w.a.yzw, w.b.x) << vec4<u32>(24u - shift));
    return P16(doubled(bytes >> vec4<u32>(4u * (i & 1u))), d);
}
#endif
