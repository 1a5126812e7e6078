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
var<workgroup> values: array<f32, $EXPERTS>;
var<workgroup> best: array<f32, $EXPERTS>;
var<workgroup> terms: array<f32, $EXPERTS>;

// Tests the bits, because WGSL may assume that NaN does not occur.
fn finite_or_lowest(value: f32) -> f32 {
    return select(value, LOWEST, (bitcast<u32>(value) & 0x7f800000u) == 0x7f800000u);
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let base = group.x * params.experts;
    let out = group.x * params.used;
    let step = $THREADSu;
    for (var e = local; e < params.experts; e += step) { values[e] = finite_or_lowest(scores[base + e]); }
    workgroupBarrier();
    // An expert's rank is the number of experts that come before it.
    for (var e = local; e < params.experts; e += step) {
        let value = values[e];
        var place = 0u;
        for (var i = 0u; i < params.experts; i++) {
            let other = values[i];
            place += select(0u, 1u, other > value || (other == value && i < e));
        }
        if (place < params.used) {
            best[place] = value;
            chosen[out + place] = select(e, NO_EXPERT, value == LOWEST);
        }
    }
    workgroupBarrier();
    let top = best[0];
    let count = select(params.used, params.experts, params.normalize == 0u);
    for (var i = local; i < count; i += step) {
        var value = best[i];
        if (params.normalize == 0u) { value = scores[base + i]; }
        terms[i] = exp(value - top);
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < count; i++) { sum += terms[i]; }
    for (var k = local; k < params.used; k += step) { gates[out + k] = exp(best[k] - top) / sum; }
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
