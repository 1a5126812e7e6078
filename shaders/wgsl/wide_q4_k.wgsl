// Q4_K for `fused.wgsl`: reads blocks of 144 bytes as nine aligned `vec4<u32>`. The first holds the block's scale and
// minimum (halves) and eight 6-bit scales and minimums: four words with the low bits of four parts, and for the other
// four the low nibbles with the upper bit pairs. Each of the others holds 32 values: 16 in the low nibbles, and the 16
// values 32 further on in the high nibbles.
#include numbers

struct Raw { header: vec4<u32>, q: vec4<u32> }

struct Values {
    q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>,
    q4: vec4<f32>, q5: vec4<f32>, q6: vec4<f32>, q7: vec4<f32>,
}

// Unit i: 32 values of block i / 8.
fn fetch(base: u32, i: u32) -> Raw {
    let block = (base >> 4u) + 9u * (i >> 3u);
    return Raw(weights[block], weights[block + 1u + (i & 7u)]);
}

// The quad of a vector that quad k of a unit is multiplied with.
fn quad(i: u32, k: u32) -> u32 {
    return 64u * (i >> 3u) + 8u * (i & 6u) + 4u * (i & 1u) + k + (k & 4u);
}

// Where a staged quad lies, so that neighbouring threads read from different banks.
fn staged_at(q: u32) -> u32 { return q ^ ((q >> 4u) & 3u); }

// `in_place` gives nibbles times powers of two; their inverses go into the vector, which many rows share.
fn prepared(q: u32, v: vec4<f32>) -> vec4<f32> {
    let shift = select(1.0, 0.0625, (q & 8u) != 0u);
    return v * vec4<f32>(shift, shift * 0.00390625, shift, shift * 0.00390625);
}

// Where a quad's sum lies in its chunk, so that the threads of a team read from different banks.
fn sum_at(q: u32) -> u32 {
    return ((q >> 2u) & 1u) | ((q >> 3u) & 30u) | ((q & 3u) << 5u) | ((q & 8u) << 4u);
}

// Sums of a vector over both parts, from the sums of the unit's quads: for the parts' minimums.
fn sums_of(s0: f32, s1: f32, s2: f32, s3: f32, s4: f32, s5: f32, s6: f32, s7: f32) -> vec2<f32> {
    return vec2<f32>((s0 + s1) + (s2 + s3), (s4 + s5) + (s6 + s7));
}

// The bits under `masks` as integers: in the mantissa of 2²³ they need no conversion.
fn in_place(low: u32, high: u32, mask: u32) -> vec4<f32> {
    let bits = vec4<u32>(low & mask, low & (mask << 8u), high & mask, high & (mask << 8u));
    return bitcast<vec4<f32>>(bits | vec4<u32>(0x4b000000u)) - vec4<f32>(8388608.0);
}

fn nibbles(word: u32, mask: u32) -> vec4<f32> { return in_place(word, word >> 16u, mask); }

// Scales (x, y) and minimums (z, w) of the two parts that a unit belongs to.
fn scales_of(header: vec4<u32>, i: u32) -> vec4<f32> {
    let shift = vec3<u32>((i & 2u) * 8u);
    let words = header.yzw >> shift;
    let upper = (i & 4u) != 0u;
    let scale = select(words.x & 0x3f3fu, (words.z & 0x0f0fu) | ((words.x >> 2u) & 0x3030u), upper);
    let least = select(words.y & 0x3f3fu, ((words.z >> 4u) & 0x0f0fu) | ((words.y >> 2u) & 0x3030u), upper);
    let d = half_bits(header.x & 0xffffu);
    let m = half_bits(header.x >> 16u);
    return in_place(scale, least, 0xffu) * vec4<f32>(d, d * 0.00390625, m, m * 0.00390625);
}

// Adds the product of a unit with a vector, whose sums over the parts are `sums`.
fn product(w: Raw, base: u32, i: u32, v: Values, sums: vec2<f32>, acc: f32) -> f32 {
    var low = nibbles(w.q.x, 0xfu) * v.q0;
    low = fma(nibbles(w.q.y, 0xfu), v.q1, low);
    low = fma(nibbles(w.q.z, 0xfu), v.q2, low);
    low = fma(nibbles(w.q.w, 0xfu), v.q3, low);
    var high = nibbles(w.q.x, 0xf0u) * v.q4;
    high = fma(nibbles(w.q.y, 0xf0u), v.q5, high);
    high = fma(nibbles(w.q.z, 0xf0u), v.q6, high);
    high = fma(nibbles(w.q.w, 0xf0u), v.q7, high);
    let s = scales_of(w.header, i);
    let scaled = fma(s.y, across(high), fma(s.x, across(low), acc));
    return fma(-s.w, sums.y, fma(-s.z, sums.x, scaled));
}
