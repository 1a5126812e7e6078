// Unpacks numbers from words.

// Decodes a half float from its bits, because `unpack2x16float` may flush subnormal scales to zero.
fn half_bits(bits: u32) -> f32 {
    let magnitude = bits & 0x7fffu;
    let normal = bitcast<f32>((magnitude << 13u) + 0x38000000u);
    let value = select(normal, f32(magnitude) * 5.9604644775390625e-8, magnitude < 0x400u);
    return select(select(value, -value, (bits & 0x8000u) != 0u), 0.0, magnitude >= 0x7c00u);
}

fn unsigned_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(f32(word & 0xffu), f32((word >> 8u) & 0xffu), f32((word >> 16u) & 0xffu), f32(word >> 24u));
}

fn signed_bytes(word: u32) -> vec4<f32> {
    let w = bitcast<i32>(word);
    return vec4<f32>(f32((w << 24u) >> 24u), f32((w << 16u) >> 24u), f32((w << 8u) >> 24u), f32(w >> 24u));
}
