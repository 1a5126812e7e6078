// Adds biases to a few logits of each row, in place. A bias of -100 or less bans its token.
// Per row up to `most` (token, bits of the bias) pairs with ascending tokens; first their numbers, as pairs too. A thread per pair.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> biases: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.most;
    let place = index % params.most;
    if (row >= params.n) { return; }
    let biased = params.first + row;
    if (place >= biases[biased].x) { return; }
    let pair = biases[params.rows + biased * params.most + place];
    if (pair.x >= params.vocabulary) { return; }
    let at = row * params.vocabulary + pair.x;
    let bias = bitcast<f32>(pair.y);
    logits[at] = select(logits[at] + bias, -1.0e30, bias <= -100.0);
}
