// Adds the output of a half of a block to the hidden vector: y += scale · x.
// NORM: the output is RMS-normalized first. GATE: each row's output is multiplied by the sigmoid of its score.
// PerThread: one thread per row. Workgroup: one workgroup per row.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
#if NORM
@group(0) @binding(3) var<storage, read> gain: array<vec4<f32>>;
#endif
#if GATE
@group(0) @binding(3) var<storage, read> scores: array<f32>;
#endif
#if NORM
#if STRATEGY == Workgroup
#include row_sum
#endif
#endif

@compute @workgroup_size($THREADS)
#if STRATEGY == Workgroup
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let step = $THREADSu;
#else
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    let lane = 0u;
    let step = 1u;
    if (row >= params.n) { return; }
#endif
    let at = row * params.width;
    var scale = params.scale;
#if NORM
    var acc = vec4<f32>(0.0);
    for (var i = lane; i < params.width; i += step) {
        let v = x[at + i];
        acc = fma(v, v, acc);
    }
    var sum = (acc.x + acc.y) + (acc.z + acc.w);
#if STRATEGY == Workgroup
    sum = row_sum(sum, lane);
#endif
    scale *= 1.0 / sqrt(sum / f32(4u * params.width) + params.epsilon);
#endif
#if GATE
    // Clamp the exponent: WGSL may assume that infinities do not occur.
    scale *= 1.0 / (1.0 + exp(min(-scores[row], 80.0)));
#endif
    for (var i = lane; i < params.width; i += step) {
#if NORM
        y[at + i] = fma(x[at + i] * scale, gain[i], y[at + i]);
#else
        y[at + i] = fma(x[at + i], vec4<f32>(scale), y[at + i]);
#endif
    }
}
