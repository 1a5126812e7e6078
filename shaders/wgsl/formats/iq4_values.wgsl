// The numbers that the low nibbles of four bytes stand for (ggml-common.h, `kvalues_iq4nl`), four per word. Uses
// selects instead of a lookup: some compilers handle indexing a constant array disastrously.
fn iq4_ints(word: u32) -> vec4<i32> {
    let q = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u);
    let odd = (q & vec4<u32>(4u)) != vec4<u32>(0u);
    let negative = select(vec4<u32>(0xbfad9881u), vec4<u32>(0xf6eaddcfu), odd);
    let positive = select(vec4<u32>(0x26190d01u), vec4<u32>(0x71594535u), odd);
    let four = select(negative, positive, q >= vec4<u32>(8u));
    let up = vec4<u32>(24u) - ((q & vec4<u32>(3u)) << vec4<u32>(3u));
    return bitcast<vec4<i32>>(four << up) >> vec4<u32>(24u);
}

fn iq4_values(word: u32) -> vec4<f32> { return vec4<f32>(iq4_ints(word)); }

// The same as the bytes of a word.
fn iq4_bytes(word: u32) -> u32 {
    let b = bitcast<vec4<u32>>(iq4_ints(word)) & vec4<u32>(0xffu);
    return b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
}

