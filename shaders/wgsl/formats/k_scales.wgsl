// Scale and minimum of one of the eight parts of a Q4_K or Q5_K block that starts at word `block`.
fn scale_and_least(block: u32, part: u32) -> vec2<f32> {
    let shift = (part & 3u) * 8u;
    let low = weights[block + 1u];
    let mid = weights[block + 2u];
    var scale = (low >> shift) & 63u;
    var least = (mid >> shift) & 63u;
    if (part >= 4u) {
        let high = weights[block + 3u] >> shift;
        scale = (high & 15u) | (((low >> shift) & 0xc0u) >> 2u);
        least = ((high >> 4u) & 15u) | (((mid >> shift) & 0xc0u) >> 2u);
    }
    let halves = weights[block];
    return vec2<f32>(half_bits(halves & 0xffffu) * f32(scale), half_bits(halves >> 16u) * f32(least));
}

