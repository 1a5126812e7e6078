// F32, F16, BF16: no blocks, so a row may end inside a group of 16 values.

#if FORMAT == F32
fn four(at: u32, col: u32) -> vec4<f32> {
    let bits = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let finite = (bits & vec4<u32>(0x7f800000u)) != vec4<u32>(0x7f800000u);
    return bitcast<vec4<f32>>(select(vec4<u32>(0u), bits, finite & vec4<bool>(col < params.cols)));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let at = (base >> 2u) + 16u * i;
    let col = 16u * i;
    return W16(four(at, col), four(at + 4u, col + 4u), four(at + 8u, col + 8u), four(at + 12u, col + 12u));
}
#endif
#if FORMAT == F16
// Both halves of a word; values that are not finite are zeroed before they become floats.
fn two(word: u32) -> vec2<f32> {
    let low = select(word & 0xffffu, 0u, (word & 0x7c00u) == 0x7c00u);
    let high = select(word & 0xffff0000u, 0u, (word & 0x7c000000u) == 0x7c000000u);
    return unpack2x16float(low | high);
}

fn four(at: u32, col: u32) -> vec4<f32> {
    let v = vec4<f32>(two(weights[at]), two(weights[at + 1u]));
    return select(vec4<f32>(0.0), v, vec4<bool>(col < params.cols));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let at = (base >> 2u) + 8u * i;
    let col = 16u * i;
    return W16(four(at, col), four(at + 2u, col + 4u), four(at + 4u, col + 8u), four(at + 6u, col + 12u));
}
#endif
#if FORMAT == BF16
fn four(at: u32, col: u32) -> vec4<f32> {
    let x = weights[at];
    let y = weights[at + 1u];
    let bits = vec4<u32>(x << 16u, x & 0xffff0000u, y << 16u, y & 0xffff0000u);
    let finite = (bits & vec4<u32>(0x7f800000u)) != vec4<u32>(0x7f800000u);
    return bitcast<vec4<f32>>(select(vec4<u32>(0u), bits, finite & vec4<bool>(col < params.cols)));
}

fn fetch16(base: u32, i: u32) -> W16 {
    let at = (base >> 2u) + 8u * i;
    let col = 16u * i;
    return W16(four(at, col), four(at + 2u, col + 4u), four(at + 4u, col + 8u), four(at + 6u, col + 12u));
}
#endif
