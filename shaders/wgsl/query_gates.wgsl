// Copies the gates of the query heads, before attention overwrites the projections: in each row, a head's query and its
// gate lie one after the other.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read_write> gates: array<f32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let width = params.heads * params.head_dim;
    let row = index / width;
    if (row >= params.n) { return; }
    let head = (index % width) / params.head_dim;
    let i = index % params.head_dim;
    gates[index] = qkv[row * params.stride + (2u * head + 1u) * params.head_dim + i];
}
