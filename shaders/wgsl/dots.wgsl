// Sums of products of signed bytes, four to a word.
#if SHIFTS
fn dot4(a: u32, b: u32) -> i32 {
    let shift = vec4<u32>(24u, 16u, 8u, 0u);
    let up = vec4<u32>(24u);
    return dot(bitcast<vec4<i32>>(vec4<u32>(a) << shift) >> up, bitcast<vec4<i32>>(vec4<u32>(b) << shift) >> up);
}
#else
fn dot4(a: u32, b: u32) -> i32 { return dot4I8Packed(a, b); }
#endif

// Sums of integers begin with the bits of 1.5 · 2^23: below 2^22 they are floats without a conversion, which is slow on
// some GPUs.
const ZERO = 0x4b400000;
