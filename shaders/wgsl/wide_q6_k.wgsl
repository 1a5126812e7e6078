// Q6_K for `fused.wgsl`: 32 values at a time, 16 in the low nibbles and 16 in the high nibbles of the same bytes. Their
// upper bit pairs share bytes as well, so each word is read half as often as by `fetch16`.

struct W32 {
    q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>,
    q4: vec4<f32>, q5: vec4<f32>, q6: vec4<f32>, q7: vec4<f32>,
}

fn scale_at(offset: u32) -> f32 { return f32(bitcast<i32>(byte_at(offset) << 24u) >> 24u); }

// Index of the first of a unit's two runs of 16 values, among the 16 runs in a block; the second is four runs further
// on.
fn run_of(i: u32) -> u32 { return 2u * (i & 4u) + (i & 3u); }

// Unit i: 32 values of block i / 8.
fn fetch(base: u32, i: u32) -> W32 {
    let block = base + 210u * (i >> 3u);
    let half = (i >> 2u) & 1u;
    let group = (i >> 1u) & 1u;
    let q = words_at(block + 64u * half + 16u * (i & 3u));
    let h = words_at(block + 128u + 32u * half + 16u * (i & 1u)) >> vec4<u32>(2u * group);
    let d = half_at(block + 208u);
    let low = d * scale_at(block + 192u + run_of(i));
    let high = d * scale_at(block + 196u + run_of(i));
    return W32(four(q.x, h.x, low), four(q.y, h.y, low), four(q.z, h.z, low), four(q.w, h.w, low),
               four(q.x >> 4u, h.x >> 4u, high), four(q.y >> 4u, h.y >> 4u, high),
               four(q.z >> 4u, h.z >> 4u, high), four(q.w >> 4u, h.w >> 4u, high));
}

// The quad of a vector that quad k of a unit is multiplied with.
fn quad(i: u32, k: u32) -> u32 {
    return 64u * (i >> 3u) + 4u * run_of(i) + k + 3u * (k & 4u);
}
