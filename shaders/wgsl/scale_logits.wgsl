// Scales logits in place and caps them softly: cap · tanh(scale · logit / cap).
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    if (index >= params.count) { return; }
    var v = logits[index] * params.scale;
    if (params.cap > 0.0) {
        // Clamp the exponent: WGSL may assume that infinities do not occur.
        let e = exp(clamp(2.0 * v / params.cap, -40.0, 40.0));
        v = params.cap * (1.0 - 2.0 / (e + 1.0));
    }
    logits[index] = v;
}
