// up = activation(gate) · up, in place.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> up: array<vec4<f32>>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    if (index >= params.quads) { return; }
    let g = gate[index];
    // Clamp the exponents: WGSL may assume that infinities do not occur.
#if GLU == Silu
    up[index] = (g / (1.0 + exp(min(-g, vec4<f32>(80.0))))) * up[index];
#endif
#if GLU == Gelu
    // 0.5 · g · (1 + tanh(z)) is g · sigmoid(2 z), with z = √(2/π) · (g + 0.044715 g³).
    let z = 0.7978845608 * g * fma(g * g, vec4<f32>(0.044715), vec4<f32>(1.0));
    up[index] = (g / (1.0 + exp(clamp(-2.0 * z, vec4<f32>(-80.0), vec4<f32>(80.0))))) * up[index];
#endif
#if GLU == Sigmoid
    up[index] = (1.0 / (1.0 + exp(clamp(-g, vec4<f32>(-80.0), vec4<f32>(80.0))))) * up[index];
#endif
#if GLU == Clamped
    // gpt-oss: alpha 1.702, limit 7.
    let low = min(g, vec4<f32>(7.0));
    let bounded = clamp(up[index], vec4<f32>(-7.0), vec4<f32>(7.0));
    up[index] = (low / (1.0 + exp(min(-1.702 * low, vec4<f32>(80.0))))) * (bounded + 1.0);
#endif
}
