// Any format for `fused.wgsl`: a unit is 16 consecutive values of a row, as `fetch16` gives them.

struct Raw { q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32> }

struct Values { q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32> }

fn fetch(base: u32, i: u32) -> Raw {
    let w = fetch16(base, i);
    return Raw(w.a, w.b, w.c, w.d);
}

// The quad of a vector that quad k of a unit is multiplied with.
fn quad(i: u32, k: u32) -> u32 { return 4u * i + k; }

// Where a staged quad lies, so that neighbouring threads read from different banks.
fn staged_at(q: u32) -> u32 { return q ^ ((q >> 3u) & 3u); }

fn prepared(q: u32, v: vec4<f32>) -> vec4<f32> { return v; }

// Adds the product of a unit with a vector.
fn product(w: Raw, base: u32, i: u32, v: Values, sums: vec2<f32>, acc: f32) -> f32 {
    var sum = w.q0 * v.q0;
    sum = fma(w.q1, v.q1, sum);
    sum = fma(w.q2, v.q2, sum);
    sum = fma(w.q3, v.q3, sum);
    return acc + across(sum);
}
