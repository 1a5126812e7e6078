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
    let before = select(vec4<f32>(0.0), y[index], params.add != 0u);
    var sum = vec4<f32>(0.0);
    // Eight outputs at a time are on their way, whether their pairs have experts or not.
    for (var first = 0u; first < params.used; first += 8u) {
#repeat k 8
        let pair_$k = row * params.used + min(first + $ku, params.used - 1u);
        let part_$k = parts[pair_$k * params.width + quad];
        let weight_$k = select(1.0, gates[pair_$k], params.weighted != 0u);
        let here_$k = (chosen[pair_$k] < params.experts) & (first + $ku < params.used);
#end
#repeat k 8
        sum = select(sum, fma(vec4<f32>(weight_$k), part_$k, sum), here_$k);
#end
    }
    y[index] = fma(sum, vec4<f32>(params.scale), before);
}
