// Q4_K for packed decode: a unit is 64 consecutive values of a block of 144 bytes, read as aligned `vec4<u32>`: 32 in the low
// nibbles of 32 bytes and 32 in the high ones. The first 16 bytes of a block hold its scale and minimum (halves) and eight
// 6-bit scales and minimums, as `wide_q4_k.wgsl` says.
#include numbers

struct Raw { header: vec4<u32>, a: vec4<u32>, b: vec4<u32> }

fn fetch(base: u32, i: u32) -> Raw {
    let block = (base >> 4u) + 9u * (i >> 2u);
    let at = block + 1u + 2u * (i & 3u);
    return Raw(weights[block], weights[at], weights[at + 1u]);
}

// Which unit of a chunk a block of a vector belongs to, and whether it is the unit's second.
fn unit_of(block: u32) -> u32 { return block >> 1u; }
fn second(block: u32) -> u32 { return block & 1u; }

// What all rows share.
fn shared_of(v: Values) -> vec4<i32> { return vec4<i32>(ZERO); }

// Adds the product of unit i with a vector. A part's sum times its 6-bit scale stays below 2^22.
fn product(w: Raw, base: u32, i: u32, v: Values, less: vec4<i32>, acc: f32) -> f32 {
    let mask = vec4<u32>(0x0f0f0f0fu);
    let low = dot16(dot16(0, w.a & mask, v.a.q0, v.a.q1), w.b & mask, v.a.q2, v.a.q3);
    let four = vec4<u32>(4u);
    let high = dot16(dot16(0, (w.a >> four) & mask, v.b.q0, v.b.q1), (w.b >> four) & mask, v.b.q2, v.b.q3);
    let words = w.header.yzw >> vec3<u32>((i & 1u) * 16u);
    let upper = (i & 2u) != 0u;
    let scales = select(words.x & 0x3f3fu, (words.z & 0x0f0fu) | ((words.x >> 2u) & 0x3030u), upper);
    let least = select(words.y & 0x3f3fu, ((words.z >> 4u) & 0x0f0fu) | ((words.y >> 2u) & 0x3030u), upper);
    let one = exact(ZERO + bitcast<i32>(scales & 0xffu) * low);
    let two = exact(ZERO + bitcast<i32>(scales >> 8u) * high);
    let m = bitcast<vec2<f32>>(vec2<u32>(least & 0xffu, least >> 8u) | vec2<u32>(0x4b000000u)) - vec2<f32>(8388608.0);
    let sum = fma(v.b.s.x, two, v.a.s.x * one);
    let sum_of_least = fma(v.b.s.y, m.y, v.a.s.y * m.x);
    let scaled = fma(half_bits(w.header.x & 0xffffu), sum, acc);
    return fma(-half_bits(w.header.x >> 16u), sum_of_least, scaled);
}
