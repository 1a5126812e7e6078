// Any format with a packing for packed decode: a unit is two blocks of 32 consecutive values, 16 at a time as `words16` and `pack16`
// give them. A row may end with a unit's first block: what is read behind it meets zeros.
#include packed_formats

struct Raw { a: Words, b: Words, c: Words, d: Words }

fn fetch(base: u32, i: u32) -> Raw {
    return Raw(words16(base, 4u * i), words16(base, 4u * i + 1u), words16(base, 4u * i + 2u), words16(base, 4u * i + 3u));
}

// Which unit of a chunk a block of a vector belongs to, and whether it is the unit's second.
fn unit_of(block: u32) -> u32 { return block >> 1u; }
fn second(block: u32) -> u32 { return block & 1u; }

// What all rows share.
fn shared_of(v: Values) -> vec4<i32> { return vec4<i32>(ZERO); }

// Adds the product of 32 values, 16 and 16, with a block of a vector.
fn block_product(p: P16, q: P16, v: Block, less: i32, acc: f32) -> f32 {
#if TWO_SCALES
    let one = fma(p.s * v.s.x, exact(dot16(less, p.q, v.q0, v.q1)), acc);
    return fma(q.s * v.s.x, exact(dot16(less, q.q, v.q2, v.q3)), one);
#else
    let sum = fma(p.s * v.s.x, exact(dot16(dot16(less, p.q, v.q0, v.q1), q.q, v.q2, v.q3)), acc);
#if LEAST
    return fma(-q.s, v.s.y, sum);
#else
    return sum;
#endif
#endif
}

// Adds the product of unit i with a vector.
fn product(w: Raw, base: u32, i: u32, v: Values, less: vec4<i32>, acc: f32) -> f32 {
    let one = block_product(pack16(w.a, base, 4u * i), pack16(w.b, base, 4u * i + 1u), v.a, less.x, acc);
    return block_product(pack16(w.c, base, 4u * i + 2u), pack16(w.d, base, 4u * i + 3u), v.b, less.z, one);
}
