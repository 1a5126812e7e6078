// Unpacks numbers from words.

// Decodes a half float from its bits, because `unpack2x16float` may flush subnormal scales to zero.
fn half_bits(bits: u32) -> f32 {
    let magnitude = bits & 0x7fffu;
    let normal = (magnitude << 13u) + 0x38000000u;
    // With another exponent: the bits in the mantissa of 2⁻¹⁴, which is taken away again.
    let subnormal = bitcast<f32>(normal + 0x00800000u) - 6.103515625e-5;
    let value = select(bitcast<f32>(normal), subnormal, magnitude < 0x400u);
    let finite = select(value, 0.0, magnitude >= 0x7c00u);
    return bitcast<f32>(bitcast<u32>(finite) | ((bits & 0x8000u) << 16u));
}

fn unsigned_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(f32(word & 0xffu), f32((word >> 8u) & 0xffu), f32((word >> 16u) & 0xffu), f32(word >> 24u));
}

fn signed_bytes(word: u32) -> vec4<f32> {
    let w = bitcast<i32>(word);
    return vec4<f32>(f32((w << 24u) >> 24u), f32((w << 16u) >> 24u), f32((w << 8u) >> 24u), f32(w >> 24u));
}
