// Q4_K for `matrix.wgsl`: a step is 64 columns, a pair of a block's eight parts, which share bytes. A thread reads 16 of
// their 32 bytes: 16 columns of the first part in the low nibbles, and 16 of the second in the high ones.
#include numbers

const PARTS = 2u;

struct Fetched { header: vec4<u32>, q: vec4<u32> }
struct Quads {
    q0: vec4<f16>, q1: vec4<f16>, q2: vec4<f16>, q3: vec4<f16>,
    q4: vec4<f16>, q5: vec4<f16>, q6: vec4<f16>, q7: vec4<f16>,
}

fn fetched(row: u32, step: u32, part: u32) -> Fetched {
    let block = (row >> 4u) + 9u * (step >> 2u);
    return Fetched(weights[block], weights[block + 1u + 2u * (step & 3u) + part]);
}

// The low nibbles of a word's bytes as integers: in the mantissa of 2²³ they need no conversion.
fn nibbles(word: u32) -> vec4<f32> {
    let bits = vec4<u32>(word, word >> 8u, word >> 16u, word >> 24u) & vec4<u32>(15u);
    return bitcast<vec4<f32>>(bits | vec4<u32>(0x4b000000u)) - vec4<f32>(8388608.0);
}

fn four(word: u32, scale: f32, least: f32) -> vec4<f16> {
    return vec4<f16>(fma(vec4<f32>(scale), nibbles(word), vec4<f32>(-least)));
}

fn dequantized(w: Fetched, step: u32) -> Quads {
    let pair = step & 3u;
    let shift = vec3<u32>((pair & 1u) * 16u);
    let words = w.header.yzw >> shift;
    let upper = pair >= 2u;
    // Two parts' scales and minimums, six bits in each byte.
    let scales = select(words.x & 0x3f3fu, (words.z & 0x0f0fu) | ((words.x >> 2u) & 0x3030u), upper);
    let leasts = select(words.y & 0x3f3fu, ((words.z >> 4u) & 0x0f0fu) | ((words.y >> 2u) & 0x3030u), upper);
    let d = half_bits(w.header.x & 0xffffu);
    let m = half_bits(w.header.x >> 16u);
    let s0 = d * f32(scales & 0xffu);
    let s1 = d * f32(scales >> 8u);
    let m0 = m * f32(leasts & 0xffu);
    let m1 = m * f32(leasts >> 8u);
    let high = w.q >> vec4<u32>(4u);
    return Quads(four(w.q.x, s0, m0), four(w.q.y, s0, m0), four(w.q.z, s0, m0), four(w.q.w, s0, m0),
                 four(high.x, s1, m1), four(high.y, s1, m1), four(high.z, s1, m1), four(high.w, s1, m1));
}

// Where quad q lies from the first: the second part's columns are 32 further on.
fn place(q: u32) -> u32 { return q + (q & 4u); }
