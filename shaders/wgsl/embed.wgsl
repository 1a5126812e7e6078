// Embedding lookup: one thread copies 16 values of one token's table row, times a factor.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

#include weights

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.chunks;
    let chunk = index % params.chunks;
    if (row >= params.n) { return; }
    let token = tokens[row];
    if (token < params.first || token - params.first >= params.rows) { return; }
    let w = fetch16((token - params.first) * params.row_bytes, chunk);
    let width = params.cols / 4u;
    let at = row * width + 4u * chunk;
    y[at] = w.a * params.scale;
    if (4u * chunk + 1u < width) { y[at + 1u] = w.b * params.scale; }
    if (4u * chunk + 2u < width) { y[at + 2u] = w.c * params.scale; }
    if (4u * chunk + 3u < width) { y[at + 3u] = w.d * params.scale; }
}
