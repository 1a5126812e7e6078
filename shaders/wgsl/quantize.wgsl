// Vectors in blocks of 32 signed bytes (q8_1 of ggml): for each vector 8 words a block, then a scale and scale · sum of
// the bytes for each block. One thread per block.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

#include q8_1

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let vector = index / params.blocks;
    let block = index % params.blocks;
    if (vector >= params.n) { return; }
    let first = vector * params.x_stride + 8u * block;
    var most = 0u;
#repeat j 8
    let v_$j = x[first + $ju];
    most = max(most, magnitude(v_$j));
#end
    let scale = scale_of(most);
    let out = 4u * vector * params.y_stride;
    var sum = 0;
#repeat j 8
    {
        let q = ints(v_$j, scale);
        sum += total(q);
        y[out + 8u * block + $ju] = word(q, scale);
    }
#end
    y[out + 8u * params.blocks + 2u * block] = scale.bits;
    y[out + 8u * params.blocks + 2u * block + 1u] = scaled_sum(scale, sum);
}
