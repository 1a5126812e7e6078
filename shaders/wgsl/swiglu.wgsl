// up = silu(gate) · up, in place.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> up: array<vec4<f32>>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    if (index >= params.quads) { return; }
    let g = gate[index];
    // Clamp the exponent: WGSL may assume that infinities do not occur.
    up[index] = (g / (1.0 + exp(min(-g, vec4<f32>(80.0))))) * up[index];
}
