// Twice the E2M1 floats in the low nibbles of four bytes: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives.
fn e2m1_doubled(word: u32) -> vec4<f32> {
    let q = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u);
    let e = (q >> vec4<u32>(1u)) & vec4<u32>(3u);
    let m = q & vec4<u32>(1u);
    let magnitude = vec4<f32>(select((m | vec4<u32>(2u)) << (e - min(e, vec4<u32>(1u))), m, e == vec4<u32>(0u)));
    return select(magnitude, -magnitude, q >= vec4<u32>(8u));
}

