// gate = gelu(gate) · input, in place: a block's input is a part of each row of the inputs of all blocks.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> gate: array<vec4<f32>>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    if (index >= params.quads) { return; }
    let at = index / params.width * params.stride + params.offset + index % params.width;
    let g = gate[index];
    // GELU as in `glu`.
    let z = 0.7978845608 * g * fma(g * g, vec4<f32>(0.044715), vec4<f32>(1.0));
    gate[index] = (g / (1.0 + exp(clamp(-2.0 * z, vec4<f32>(-80.0), vec4<f32>(80.0))))) * inputs[at];
}
