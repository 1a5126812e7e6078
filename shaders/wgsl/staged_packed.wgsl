// Vectors as signed bytes in workgroup memory, quantized on the way there as by `quantize.wgsl`. Each thread of a team reads
// one unit of 64 values: two blocks, which the format chooses. TOGETHER: four neighbours of a subgroup quantize a block, 8 values
// (an octet) each; otherwise a thread does it alone.
#include q8_1

// First the octets of a unit's blocks, then the unit's place: what is read has constants before its last index. Two places
// are left over, so that octets written together go to different banks.
var<workgroup> staged: array<array<vec2<u32>, $PLACES>, 8>;
// Scale of each of a unit's blocks, and scale · sum.
var<workgroup> staged_scales: array<array<vec2<f32>, $PLACES>, 2>;

struct Block { q0: vec2<u32>, q1: vec2<u32>, q2: vec2<u32>, q3: vec2<u32>, s: vec2<f32> }
struct Values { a: Block, b: Block }

fn values(place: u32) -> Values {
    return Values(
        Block(staged[0][place], staged[1][place], staged[2][place], staged[3][place], staged_scales[0][place]),
        Block(staged[4][place], staged[5][place], staged[6][place], staged[7][place], staged_scales[1][place]),
    );
}

fn dot16(sum: i32, w: vec4<u32>, p: vec2<u32>, q: vec2<u32>) -> i32 {
    return sum + dot4(w.x, p.x) + dot4(w.y, p.y) + dot4(w.z, q.x) + dot4(w.w, q.y);
}

fn exact(n: i32) -> f32 { return bitcast<f32>(n) - 12582912.0; }

fn multiplied(v: vec4<f32>, q: u32) -> vec4<f32> {
#if NORM
    return v * gain_at(q);
#else
    return v;
#endif
}

// Octet e of the vector at quad `at`, into the chunk of $OCTETS octets that begins at `place`. Adds the squares of the vector
// to others.
#if TOGETHER
fn stage(at: u32, e: u32, place: u32, squares: vec4<f32>) -> vec4<f32> {
    let v = input(at, 2u * e);
    let w = input(at, 2u * e + 1u);
    let p = multiplied(v, 2u * e);
    let q = multiplied(w, 2u * e + 1u);
    var most = max(magnitude(p), magnitude(q));
    most = max(most, subgroupShuffleXor(most, 1u));
    most = max(most, subgroupShuffleXor(most, 2u));
    let scale = scale_of(most);
    let low = ints(p, scale);
    let high = ints(q, scale);
    var sum = total(low) + total(high);
    sum += subgroupShuffleXor(sum, 1u);
    sum += subgroupShuffleXor(sum, 2u);
    let block = (e % $OCTETSu) >> 2u;
    let to = place + unit_of(block);
    staged[4u * second(block) + (e & 3u)][to] = vec2<u32>(word(low, scale), word(high, scale));
    if ((e & 3u) == 0u) {
        staged_scales[second(block)][to] = bitcast<vec2<f32>>(vec2<u32>(scale.bits, scaled_sum(scale, sum)));
    }
    return fma(w, w, fma(v, v, squares));
}
#else
// Block b of the vector, into the chunk of $OCTETS octets.
fn stage_block(at: u32, b: u32, place: u32) {
    var most = 0u;
#repeat j 8
    let v_$j = multiplied(input(at, 8u * b + $ju), 8u * b + $ju);
    most = max(most, magnitude(v_$j));
#end
    let scale = scale_of(most);
    var sum = 0;
#repeat j 8
    let q_$j = ints(v_$j, scale);
    sum += total(q_$j);
#end
    let block = b % ($OCTETSu / 4u);
    let half = 4u * second(block);
    let to = place + unit_of(block);
    staged[half][to] = vec2<u32>(word(q_0, scale), word(q_1, scale));
    staged[half + 1u][to] = vec2<u32>(word(q_2, scale), word(q_3, scale));
    staged[half + 2u][to] = vec2<u32>(word(q_4, scale), word(q_5, scale));
    staged[half + 3u][to] = vec2<u32>(word(q_6, scale), word(q_7, scale));
    staged_scales[second(block)][to] = bitcast<vec2<f32>>(vec2<u32>(scale.bits, scaled_sum(scale, sum)));
}
#endif
