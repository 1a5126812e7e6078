// Bans logits whose tokens may not be chosen, in place. Per row `words` words with a bit for each token, the lowest one first; in front
// of them a word for each row: 0 if every token may be chosen. A thread per logit.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> masks: array<u32>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.vocabulary;
    let token = index % params.vocabulary;
    if (row >= params.n) { return; }
    let masked = params.first + row;
    if (masks[masked] == 0u) { return; }
    let word = masks[params.rows + masked * params.words + token / 32u];
    if (((word >> (token % 32u)) & 1u) == 0u) { logits[index] = -1.0e30; }
}
