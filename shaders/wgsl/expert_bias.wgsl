// Adds the bias of its chosen expert to each (token, expert) pair's vector; the slot table says where it lies.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> biases: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read> chosen: array<u32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let pair = index / params.width;
    if (pair >= params.pairs) { return; }
    let expert = chosen[pair];
    if (expert >= params.experts) { return; }
    let slot = slots[expert];
    if (slot < params.slot_first || slot - params.slot_first >= params.slot_count) { return; }
    y[index] += biases[(slot - params.slot_first) * params.stride + params.inside + index % params.width];
}
