// The logarithm of the sum of the exponentials of a row's logits. PerThread: one thread per row. Workgroup: one workgroup per row.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// Per row.
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

// exp of a number that is not positive. WGSL leaves open what exp makes of very small ones.
fn share(distance: f32) -> f32 {
    return select(0.0, exp(max(distance, -87.0)), distance > -87.0);
}

#if STRATEGY == Workgroup
#include row_sum

var<workgroup> largest: array<f32, $THREADS>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let base = row * params.vocabulary;
    var most = -3.0e38;
    for (var i = lane; i < params.vocabulary; i += $THREADSu) { most = max(most, logits[base + i]); }
    largest[lane] = most;
    workgroupBarrier();
    for (var step = $THREADSu / 2u; step > 0u; step = step >> 1u) {
        if (lane < step) { largest[lane] = max(largest[lane], largest[lane + step]); }
        workgroupBarrier();
    }
    most = largest[0];
    var own = 0.0;
    for (var i = lane; i < params.vocabulary; i += $THREADSu) { own += share(logits[base + i] - most); }
    let sum = row_sum(own, lane);
    if (lane == 0u) { sums[params.first + row] = most + log(sum); }
}
#else
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= params.n) { return; }
    let base = row * params.vocabulary;
    var most = -3.0e38;
    for (var i = 0u; i < params.vocabulary; i++) { most = max(most, logits[base + i]); }
    // In parts: small numbers that are added to a large one are lost.
    var sum = 0.0;
    for (var first = 0u; first < params.vocabulary; first += 128u) {
        var part = 0.0;
        for (var i = first; i < min(first + 128u, params.vocabulary); i++) { part += share(logits[base + i] - most); }
        sum += part;
    }
    sums[params.first + row] = most + log(sum);
}
#endif
