// Softmax over a row's expert scores and choice of the best `used`, largest first, ties to the lowest id.
// PerThread: one thread a row. Workgroup: one workgroup a row.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> gates: array<f32>;

// After (a, i) in the order of choice: smaller, or equal with a higher id.
fn after(value: f32, id: u32, last: f32, last_id: u32) -> bool {
    return value < last || (value == last && id > last_id);
}

#if STRATEGY == Workgroup
var<workgroup> best_value: array<f32, $THREADS>;
var<workgroup> best_id: array<u32, $THREADS>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.x;
    let step = $THREADSu;
#else
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    let local = 0u;
    let step = 1u;
    if (row >= params.n) { return; }
#endif
    let base = row * params.experts;
    let out = row * params.used;
    var last = 3.0e38;
    var last_id = 0u;
    var top = 0.0;
    var sum = 0.0;
    for (var k = 0u; k < params.used; k++) {
        var value = -3.0e38;
        var expert = 0xffffffffu;
        for (var e = local; e < params.experts; e += step) {
            let v = scores[base + e];
            if (after(v, e, last, last_id) && (v > value || expert == 0xffffffffu)) {
                value = v;
                expert = e;
            }
        }
#if STRATEGY == Workgroup
        best_value[local] = value;
        best_id[local] = expert;
        workgroupBarrier();
        for (var i = 0u; i < $THREADSu; i++) {
            if (best_value[i] > value || (best_value[i] == value && best_id[i] < expert)) {
                value = best_value[i];
                expert = best_id[i];
            }
        }
        workgroupBarrier();
#endif
        if (k == 0u) { top = value; }
        last = value;
        last_id = expert;
        let gate = exp(value - top);
        sum += gate;
        if (local == 0u) {
            chosen[out + k] = expert;
            gates[out + k] = gate;
        }
    }
    if (local == 0u) {
        if (params.normalize == 0u) {
            sum = 0.0;
            for (var e = 0u; e < params.experts; e++) { sum += exp(scores[base + e] - top); }
        }
        for (var k = 0u; k < params.used; k++) { gates[out + k] = gates[out + k] / sum; }
    }
}
