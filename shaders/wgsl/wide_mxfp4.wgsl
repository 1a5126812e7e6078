// MXFP4 for `fused.wgsl`: a unit is a block of 17 bytes at any offset, which lie in five words: the exponent of the
// scale, then nibbles as in Q4_0. Two nibbles at a time become half floats.

struct Raw { head: u32, q: vec4<u32> }

struct Values {
    q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>,
    q4: vec4<f32>, q5: vec4<f32>, q6: vec4<f32>, q7: vec4<f32>,
}

// Unit i: block i, as its words lie.
fn fetch(base: u32, i: u32) -> Raw {
    let at = (base + 17u * i) >> 2u;
    return Raw(weights[at], vec4<u32>(weights[at + 1u], weights[at + 2u], weights[at + 3u], weights[at + 4u]));
}

// The quad of a vector that quad k of a unit is multiplied with.
fn quad(i: u32, k: u32) -> u32 { return 8u * i + k; }

// Where a staged quad lies, so that neighbouring threads read from different banks.
fn staged_at(q: u32) -> u32 { return q ^ ((q >> 3u) & 7u); }

// `halves` gives numbers times 2⁻¹³; the inverse goes into the vector, which many rows share.
fn prepared(q: u32, v: vec4<f32>) -> vec4<f32> { return v * 8192.0; }

// The upper bits of half floats for the magnitudes of eight nibbles: the number 1 has the exponent 2, so that one half
// is no subnormal, which a device may flush. Their exponents and highest mantissa bits are min(2c, c + 2) of a nibble c.
fn magnitudes(word: u32) -> u32 {
    let c = word & 0x77777777u;
    let above = ((c >> 1u) | (c >> 2u)) & 0x11111111u;
    return c + ((above << 1u) | (c & 0x11111111u & ~above));
}

// Values of four nibbles: of bytes 0 and 2, and of bytes 1 and 3.
fn halves(even: u32, odd: u32) -> vec4<f32> {
    let a = unpack2x16float(even);
    let b = unpack2x16float(odd);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}

fn low_nibbles(word: u32, m: u32) -> vec4<f32> {
    return halves(((word & 0x00080008u) << 12u) | ((m & 0x000f000fu) << 9u),
                  ((word & 0x08000800u) << 4u) | ((m & 0x0f000f00u) << 1u));
}

fn high_nibbles(word: u32, m: u32) -> vec4<f32> {
    return halves(((word & 0x00800080u) << 8u) | ((m & 0x00f000f0u) << 5u),
                  (word & 0x80008000u) | ((m & 0xf000f000u) >> 3u));
}

// Adds the product of a unit with a vector. 32 blocks further on the bytes lie alike in their words, so the unit may be
// counted from the start of a chunk.
fn product(w: Raw, base: u32, i: u32, v: Values, sums: vec2<f32>, acc: f32) -> f32 {
    let shift = ((base + 17u * i) & 3u) * 8u;
    // 2^(e - 127). The largest three (255 means NaN) would make some values infinite, so they count as zero.
    let e = (w.head >> shift) & 0xffu;
    let d = bitcast<f32>(select(select(e << 23u, 0x00400000u, e == 0u), 0u, e > 252u));
    let q = ((vec4<u32>(w.head, w.q.xyz) >> vec4<u32>(8u)) >> vec4<u32>(shift)) | (w.q << vec4<u32>(24u - shift));
    let m_0 = magnitudes(q.x);
    let m_1 = magnitudes(q.y);
    let m_2 = magnitudes(q.z);
    let m_3 = magnitudes(q.w);
    var sum = low_nibbles(q.x, m_0) * v.q0;
    sum = fma(low_nibbles(q.y, m_1), v.q1, sum);
    sum = fma(low_nibbles(q.z, m_2), v.q2, sum);
    sum = fma(low_nibbles(q.w, m_3), v.q3, sum);
    sum = fma(high_nibbles(q.x, m_0), v.q4, sum);
    sum = fma(high_nibbles(q.y, m_1), v.q5, sum);
    sum = fma(high_nibbles(q.z, m_2), v.q6, sum);
    sum = fma(high_nibbles(q.w, m_3), v.q7, sum);
    return fma(d, across(sum), acc);
}
