// Softmax over a token's expert scores and choice of the best `used`, largest first, ties to the lowest id.
// PerThread: one thread per row, one round per expert. Workgroup: one workgroup per row, all ranks at once.
// Both add in the same order, so they give the same bits.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> gates: array<f32>;

// A score that is not finite ranks after all others, and its expert has no id.
const LOWEST: f32 = -3.0e38;
const NO_EXPERT: u32 = 0xffffffffu;

#if STRATEGY == Workgroup
#include choice

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    choose_experts(group.x, local);
}
#else
// Comes after (last, last_id) in the order of choice: smaller, or equal with a higher id.
fn after(value: f32, id: u32, last: f32, last_id: u32) -> bool {
    return value < last || (value == last && id > last_id);
}

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= params.n) { return; }
    let base = row * params.experts;
    let out = row * params.used;
    var last = 3.0e38;
    var last_id = 0u;
    var top = 0.0;
    var sum = 0.0;
    for (var k = 0u; k < params.used; k++) {
        var value = LOWEST;
        var expert = NO_EXPERT;
        for (var e = 0u; e < params.experts; e++) {
            let v = scores[base + e];
            if (after(v, e, last, last_id) && (v > value || expert == NO_EXPERT)) {
                value = v;
                expert = e;
            }
        }
        if (k == 0u) { top = value; }
        last = value;
        last_id = expert;
        let gate = exp(value - top);
        sum += gate;
        chosen[out + k] = expert;
        gates[out + k] = gate;
    }
    if (params.normalize == 0u) {
        sum = 0.0;
        for (var e = 0u; e < params.experts; e++) { sum += exp(scores[base + e] - top); }
    }
    for (var k = 0u; k < params.used; k++) { gates[out + k] = gates[out + k] / sum; }
}
#endif
