// A block of 32 values as signed bytes with a scale (q8_1 of ggml): byte = round(value · 127 / largest), scale = largest / 127.

// The largest magnitude as bits, in which NaN and infinity are the largest.
fn magnitude(v: vec4<f32>) -> u32 {
    let m = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
    return max(max(m.x, m.y), max(m.z, m.w));
}

// The scale and what values are multiplied with. Blocks too small for a scale that is a normal number count as zeros. A block
// with a NaN or an infinity gets NaN as its scale, so that it does not get lost.
struct Scale { bits: u32, inverse: f32 }

fn scale_of(most: u32) -> Scale {
    let some = most >= 0x08000000u && most < 0x7f800000u;
    let largest = select(1.0, bitcast<f32>(most), some);
    let scale = bitcast<u32>(select(0.0, largest * 0.007874015748031496, some));
    return Scale(select(scale, 0x7fc00000u, most >= 0x7f800000u), select(0.0, 127.0 / largest, some));
}

// Four values as integers above the bits of 1.5 · 2^23, to which a float is rounded by adding that number. In one `fma`,
// because a compiler may contract an addition of a product.
fn ints(v: vec4<f32>, scale: Scale) -> vec4<i32> {
    return bitcast<vec4<i32>>(fma(v, vec4<f32>(scale.inverse), vec4<f32>(12582912.0)));
}

// Their bytes; zeros in a block of zeros or without a number.
fn word(q: vec4<i32>, scale: Scale) -> u32 {
    let b = bitcast<vec4<u32>>(q) & vec4<u32>(0xffu);
    return select(0u, b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u), scale.inverse != 0.0);
}

// Their sum: four times the bits of 1.5 · 2^23 are this, without what exceeds 32 bits.
fn total(q: vec4<i32>) -> i32 { return ((q.x + q.y) + (q.z + q.w)) - 0x2d000000; }

// The bits of scale · sum of the bytes.
fn scaled_sum(scale: Scale, sum: i32) -> u32 {
    return select(bitcast<u32>(bitcast<f32>(scale.bits) * f32(sum)), 0x7fc00000u, scale.bits == 0x7fc00000u);
}
