// The weighted sum of a token's expert outputs, in router order, added to a vector or written over it. It does not
// matter where an output comes from, so the bits do not depend on where the experts are. Skips a pair without an
// expert.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> chosen: array<u32>;
@group(0) @binding(2) var<storage, read> gates: array<f32>;
@group(0) @binding(3) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.width;
    let quad = index % params.width;
    if (row >= params.n) { return; }
    var sum = vec4<f32>(0.0);
    for (var k = 0u; k < params.used; k++) {
        let pair = row * params.used + k;
        if (chosen[pair] < params.experts) {
            let weight = select(1.0, gates[pair], params.weighted != 0u);
            sum = fma(vec4<f32>(weight), parts[pair * params.width + quad], sum);
        }
    }
    let before = select(vec4<f32>(0.0), y[index], params.add != 0u);
    y[index] = fma(sum, vec4<f32>(params.scale), before);
}
