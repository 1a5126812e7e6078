// RMSNorm: y = factor · x / sqrt(mean(x²) + epsilon) · gain. PerThread: one thread per row. Workgroup: one workgroup
// per row.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gain: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

#if STRATEGY == Workgroup
#include norm_row

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    norm_row(params.first + group.x, group.x, params.factor, lane);
}
#else
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= params.n) { return; }
    let source = (params.first + row) * params.width;
    var acc = vec4<f32>(0.0);
    for (var i = 0u; i < params.width; i++) {
        let v = x[source + i];
        acc = fma(v, v, acc);
    }
    let sum = (acc.x + acc.y) + (acc.z + acc.w);
    let scale = params.factor * (1.0 / sqrt(sum / f32(4u * params.width) + params.epsilon));
    for (var i = 0u; i < params.width; i++) {
        y[row * params.width + i] = (x[source + i] * scale) * gain[i];
    }
}
#endif
