// RMSNorm in place of a part of each row: the queries or the keys of a position, or each group of a recurrence's values. PerThread: one thread per row.
// Workgroup: one workgroup per row.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gain: array<vec4<f32>>;

#if STRATEGY == Workgroup
#include row_sum
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
    if (row >= params.n * params.groups) { return; }
#endif
    let part = row % params.groups * params.width;
    let at = row / params.groups * params.stride + params.offset + part;
    var acc = vec4<f32>(0.0);
    for (var i = lane; i < params.width; i += step) {
        let v = x[at + i];
        acc = fma(v, v, acc);
    }
    var sum = (acc.x + acc.y) + (acc.z + acc.w);
#if STRATEGY == Workgroup
    sum = row_sum(sum, lane);
#endif
    let scale = 1.0 / sqrt(sum / f32(4u * params.width) + params.epsilon);
    for (var i = lane; i < params.width; i += step) { x[at + i] = (x[at + i] * scale) * gain[part + i]; }
}
