// Vectors in blocks of 32 signed bytes (q8_1 of ggml): for each vector 8 words a block, then a scale and scale · sum of
// the bytes for each block. One thread per block.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

fn bits(v: vec4<f32>) -> u32 {
    let m = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
    return max(max(m.x, m.y), max(m.z, m.w));
}

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let vector = index / params.blocks;
    let block = index % params.blocks;
    if (vector >= params.n) { return; }
    let first = vector * params.x_stride + 8u * block;
    // Magnitudes are compared as bits, in which NaN and infinity are the largest.
    var most = 0u;
#repeat j 8
    let v_$j = x[first + $ju];
    most = max(most, bits(v_$j));
#end
    // Blocks too small for a scale that is a normal number count as zeros.
    let some = most >= 0x08000000u && most < 0x7f800000u;
    let largest = select(1.0, bitcast<f32>(most), some);
    let d = select(0.0, largest * 0.007874015748031496, some);
    let inverse = select(0.0, 127.0 / largest, some);
    let out = 4u * vector * params.y_stride;
    var sum = 0;
#repeat j 8
    {
        let q = vec4<i32>(clamp(round(select(vec4<f32>(0.0), v_$j, some) * inverse), vec4<f32>(-127.0), vec4<f32>(127.0)));
        sum += q.x + q.y + q.z + q.w;
        let b = bitcast<vec4<u32>>(q) & vec4<u32>(0xffu);
        y[out + 8u * block + $ju] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
    }
#end
    // A block with a NaN or an infinity gets NaN as its scale, so that it does not get lost.
    let lost = most >= 0x7f800000u;
    y[out + 8u * params.blocks + 2u * block] = select(bitcast<u32>(d), 0x7fc00000u, lost);
    y[out + 8u * params.blocks + 2u * block + 1u] = select(bitcast<u32>(d * f32(sum)), 0x7fc00000u, lost);
}
