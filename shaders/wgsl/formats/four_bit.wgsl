// IQ4_NL, IQ4_XS, MXFP4, NVFP4: each nibble stands for one of 16 numbers, which is computed or selected without a
// memory lookup.

#if FORMAT == IQ4_NL
#include iq4_values
// Blocks of 18 bytes: scale (half), nibbles as in Q4_0.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = block18_at(base + 18u * (i >> 1u));
    let d = block.d;
    let q = block.q >> vec4<u32>(4u * (i & 1u));
    return W16(d * iq4_values(q.x), d * iq4_values(q.y), d * iq4_values(q.z), d * iq4_values(q.w));
}
#endif
#if FORMAT == IQ4_XS
#include iq4_values
// Blocks of 136 bytes, 256 values: scale (half), upper bit pairs of eight scales, their low nibbles, 128 bytes of
// nibbles. Each 16 bytes hold 32 values as in Q4_0.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 136u * (i >> 4u)) >> 2u;
    let part = (i >> 1u) & 7u;
    let first = weights[block];
    let scale = ((weights[block + 1u] >> (4u * part)) & 15u) | (((first >> (16u + 2u * part)) & 3u) << 4u);
    let d = half_bits(first & 0xffffu) * (f32(scale) - 32.0);
    let shift = 4u * (i & 1u);
    let q = block + 2u + 4u * part;
    return W16(d * iq4_values(weights[q] >> shift), d * iq4_values(weights[q + 1u] >> shift),
               d * iq4_values(weights[q + 2u] >> shift), d * iq4_values(weights[q + 3u] >> shift));
}
#endif
#if FORMAT == MXFP4
#include e2m1
// Blocks of 17 bytes: exponent of the scale (E8M0), nibbles as in Q4_0.
fn any_word_at(offset: u32) -> u32 {
    let at = offset >> 2u;
    let shift = (offset & 3u) * 8u;
    return (weights[at] >> shift) | ((weights[at + 1u] << 1u) << (31u - shift));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 17u * (i >> 1u);
    // Half of 2^(e - 127); the smallest two are subnormal. The largest three (255 means NaN) would make some values
    // infinite, so they count as zero.
    let e = byte_at(block);
    let d = bitcast<f32>(select(select((e - 1u) << 23u, 0x00200000u << e, e < 2u), 0u, e > 252u));
    let shift = 4u * (i & 1u);
    let q = block + 1u;
    return W16(d * e2m1_doubled(any_word_at(q) >> shift), d * e2m1_doubled(any_word_at(q + 4u) >> shift),
               d * e2m1_doubled(any_word_at(q + 8u) >> shift), d * e2m1_doubled(any_word_at(q + 12u) >> shift));
}
#endif
#if FORMAT == NVFP4
#include e2m1
// Blocks of 36 bytes, 64 values: four scales (E4M3 without sign), then 8 bytes of nibbles for each scale: eight values
// in the low nibbles, the next eight in the high nibbles.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = (base + 36u * (i >> 2u)) >> 2u;
    let part = i & 3u;
    let scale = (weights[block] >> (8u * part)) & 0xffu;
    // Half of the scale. NaN counts as zero.
    let m = scale & 127u;
    let normal = bitcast<f32>((m << 20u) + 0x3b800000u);
    let d = select(select(normal, f32(m) * 0.0009765625, m < 8u), 0.0, scale == 127u);
    let q = block + 1u + 2u * part;
    let first = weights[q];
    let second = weights[q + 1u];
    return W16(d * e2m1_doubled(first), d * e2m1_doubled(second), d * e2m1_doubled(first >> 4u),
               d * e2m1_doubled(second >> 4u));
}
#endif
