// Q4_K for kernels that bind `weights` as vectors of four words: a block of 144 bytes is nine vectors. The first holds
// scale, minimum and the eight 6-bit pairs. Each of the others holds 32 values: 16 in the low nibbles, and the 16
// values 32 further on in the high nibbles.

struct W32 {
    q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>,
    q4: vec4<f32>, q5: vec4<f32>, q6: vec4<f32>, q7: vec4<f32>,
}

// As in `weights`: `unpack2x16float` may flush subnormal scales to zero. A scale that is not finite counts as zero.
fn half_bits(bits: u32) -> f32 {
    let magnitude = bits & 0x7fffu;
    let normal = bitcast<f32>((magnitude << 13u) + 0x38000000u);
    let value = select(normal, f32(magnitude) * 5.9604644775390625e-8, magnitude < 0x400u);
    return select(select(value, -value, (bits & 0x8000u) != 0u), 0.0, magnitude >= 0x7c00u);
}

// Scale and minimum of a part of 32 values, 0 to 7.
fn scale_of(header: vec4<u32>, part: u32) -> vec2<f32> {
    let shift = (part & 3u) * 8u;
    let low = header.y >> shift;
    let mid = header.z >> shift;
    let high = header.w >> shift;
    let scale = select(low & 63u, (high & 15u) | ((low & 0xc0u) >> 2u), part >= 4u);
    let least = select(mid & 63u, ((high >> 4u) & 15u) | ((mid & 0xc0u) >> 2u), part >= 4u);
    return vec2<f32>(half_bits(header.x & 0xffffu) * f32(scale), half_bits(header.x >> 16u) * f32(least));
}

fn nibbles(word: u32, scale: vec2<f32>) -> vec4<f32> {
    let q = vec4<f32>(f32(word & 15u), f32((word >> 8u) & 15u), f32((word >> 16u) & 15u), f32((word >> 24u) & 15u));
    return fma(vec4<f32>(scale.x), q, vec4<f32>(-scale.y));
}

// Unit i: 32 values of block i / 8.
fn fetch(base: u32, i: u32) -> W32 {
    let block = (base >> 4u) + 9u * (i >> 3u);
    let header = weights[block];
    let q = weights[block + 1u + (i & 7u)];
    let low = scale_of(header, i & 6u);
    let high = scale_of(header, (i & 6u) + 1u);
    return W32(nibbles(q.x, low), nibbles(q.y, low), nibbles(q.z, low), nibbles(q.w, low),
               nibbles(q.x >> 4u, high), nibbles(q.y >> 4u, high), nibbles(q.z >> 4u, high), nibbles(q.w >> 4u, high));
}

// The quad of a vector that quad k of a unit is multiplied with.
fn quad(i: u32, k: u32) -> u32 {
    return 64u * (i >> 3u) + 8u * (i & 6u) + 4u * (i & 1u) + k + (k & 4u);
}
