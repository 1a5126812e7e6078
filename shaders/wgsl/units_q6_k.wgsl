// Q6_K for packed decode: a unit is 64 values of a block of 210 bytes at an even offset: 32 in the low nibbles of 32 bytes and,
// 64 values further on, 32 in the high ones; their upper bit pairs share 32 bytes with another unit.
#include numbers

// Words as they lie, to be loaded ahead: nine that hold 32 bytes at an even offset, twice, and those of the scales.
struct Raw {
    q0: vec4<u32>, q1: vec4<u32>, h0: vec4<u32>, h1: vec4<u32>,
    q_end: u32, h_end: u32, d: u32, low: u32, high: u32,
}

fn words(at: u32) -> vec4<u32> {
    return vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
}

fn fetch(base: u32, i: u32) -> Raw {
    let block = base + 210u * (i >> 2u);
    let upper = (i >> 1u) & 1u;
    let q = (block + 64u * upper + 32u * (i & 1u)) >> 2u;
    let h = (block + 128u + 32u * upper) >> 2u;
    let scale = block + 192u + 8u * upper + 2u * (i & 1u);
    return Raw(words(q), words(q + 4u), words(h), words(h + 4u), weights[q + 8u], weights[h + 8u],
               weights[(block + 208u) >> 2u], weights[scale >> 2u], weights[(scale + 4u) >> 2u]);
}

// The 16 bytes at an even offset, from the five words that hold them.
fn joined(words: vec4<u32>, end: u32, shift: u32) -> vec4<u32> {
    let next = vec4<u32>(words.yzw, end);
    return (words >> vec4<u32>(shift)) | ((next << vec4<u32>(1u)) << vec4<u32>(31u - shift));
}

// Which unit of a chunk a block of a vector belongs to, and whether it is the unit's second.
fn unit_of(block: u32) -> u32 { return 2u * (block >> 2u) + (block & 1u); }
fn second(block: u32) -> u32 { return (block >> 1u) & 1u; }

// What all rows share: every weight is 32 less than its six bits.
fn shared_of(v: Values) -> vec4<i32> {
    let less = vec4<u32>(0xe0e0e0e0u);
    return vec4<i32>(dot16(0, less, v.a.q0, v.a.q1), dot16(0, less, v.a.q2, v.a.q3),
                     dot16(0, less, v.b.q0, v.b.q1), dot16(0, less, v.b.q2, v.b.q3));
}

// Two signed bytes of scales times sums of 16 products: below 2^24.
fn scaled(word: u32, one: i32, two: i32) -> f32 {
    let w = bitcast<i32>(word);
    return f32(((w << 24u) >> 24u) * one + ((w << 16u) >> 24u) * two);
}

// Adds the product of unit i with a vector.
fn product(w: Raw, base: u32, i: u32, v: Values, less: vec4<i32>, acc: f32) -> f32 {
    // All offsets but the block's are multiples of four, but for the scales of every second unit.
    let block = base + 210u * (i >> 2u);
    let shift = (block & 2u) * 8u;
    let q0 = joined(w.q0, w.q1.x, shift);
    let q1 = joined(w.q1, w.q_end, shift);
    let pairs = vec4<u32>(2u * (i & 1u));
    let h0 = joined(w.h0, w.h1.x, shift) >> pairs;
    let h1 = joined(w.h1, w.h_end, shift) >> pairs;
    let nibbles = vec4<u32>(0x0f0f0f0fu);
    let upper = vec4<u32>(0x30303030u);
    let four = vec4<u32>(4u);
    let a0 = dot16(less.x, (q0 & nibbles) | ((h0 << four) & upper), v.a.q0, v.a.q1);
    let a1 = dot16(less.y, (q1 & nibbles) | ((h1 << four) & upper), v.a.q2, v.a.q3);
    let b0 = dot16(less.z, ((q0 >> four) & nibbles) | (h0 & upper), v.b.q0, v.b.q1);
    let b1 = dot16(less.w, ((q1 >> four) & nibbles) | (h1 & upper), v.b.q2, v.b.q3);
    let at = ((block + 2u * (i & 1u)) & 2u) * 8u;
    let sum = fma(v.b.s.x, scaled(w.high >> at, b0, b1), v.a.s.x * scaled(w.low >> at, a0, a1));
    return fma(half_bits((w.d >> shift) & 0xffffu), sum, acc);
}
