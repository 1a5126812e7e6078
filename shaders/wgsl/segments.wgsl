// The largest logit of each 128 and its id, ties to the lowest id. One thread per segment.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// Per segment: bits of the value, id.
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.segments;
    let first = (index % params.segments) * 128u;
    if (row >= params.n) { return; }
    let base = row * params.vocabulary;
    var value = logits[base + first];
    var at = first;
    for (var i = first + 1u; i < min(first + 128u, params.vocabulary); i++) {
        let v = logits[base + i];
        if (v > value) {
            value = v;
            at = i;
        }
    }
    best[index] = vec2<u32>(bitcast<u32>(value), at);
}
