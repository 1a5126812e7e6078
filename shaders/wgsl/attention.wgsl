// Softmax attention of one query head of one batch row over the pages of its conversation, with an online softmax. The
// order of the sums depends only on the row's position.
// PerThread: one thread per (row, head), no barriers. Workgroup: one workgroup per (row, head), a page of 64 positions
// at a time; heads of more than 64 quads have a thread per quad.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> pages: array<u32>;
@group(0) @binding(3) var<storage, read> q: array<vec4<f32>>;
#include kv_cache
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;
#if SINKS
// Per query head: a score without a value.
@group(0) @binding(7) var<storage, read> sinks: array<f32>;
#endif
#include scores

#if STRATEGY == Workgroup
var<workgroup> query: array<vec4<f32>, $QUADS>;
var<workgroup> scores: array<f32, 64>;
var<workgroup> weights: array<f32, 64>;
var<workgroup> parts: array<vec4<f32>, $THREADS>;
var<workgroup> shared_at: vec4<u32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let head = group.x;
    let row = group.z;
    if (local == 0u) { shared_at = rows[row]; }
    let at = workgroupUniformLoad(&shared_at);
    let position = at.x;
    let kv_head = head / (params.heads / params.kv_heads);
    let q_base = (row * params.heads + head) * $QUADSu;
    if (local < $QUADSu) { query[local] = q[q_base + local] * params.scale; }
    workgroupBarrier();
    // For the values: thread = (partition of the positions, quad of the head).
    let quad = local % $QUADSu;
    let part = local / $QUADSu;
    let partitions = $THREADSu / $QUADSu;
#if SINKS
    var peak = sinks[head];
    var total = 1.0;
#else
    var peak = -1.0e30;
    var total = 0.0;
#endif
    var acc = vec4<f32>(0.0);
    let count = position / $PAGEu + 1u;
#if WINDOW
    let oldest = window_start(position);
    for (var p = oldest / $PAGEu; p < count; p++) {
        let base = pages[at.z + p] * $PAGEu;
        let valid = local < 64u && p * 64u + local <= position && p * 64u + local >= oldest;
#else
    for (var p = 0u; p < count; p++) {
        let base = pages[at.z + p] * $PAGEu;
        let valid = local < 64u && p * 64u + local <= position;
#endif
        var score = -1.0e30;
        if (valid) {
            let k = (base + local) * params.kv_heads + kv_head;
            var s = vec4<f32>(0.0);
            for (var i = 0u; i < $QUADSu; i++) { s = fma(query[i], key(k, i), s); }
            score = (s.x + s.y) + (s.z + s.w);
#if CAP
            score = capped(score);
#endif
        }
        if (local < 64u) { scores[local] = score; }
        workgroupBarrier();
        var higher = peak;
        for (var i = 0u; i < 64u; i++) { higher = max(higher, scores[i]); }
        if (local < 64u) { weights[local] = select(0.0, exp(score - higher), valid); }
        workgroupBarrier();
        let shrink = exp(peak - higher);
        peak = higher;
        var sum = 0.0;
        for (var i = 0u; i < 64u; i++) { sum += weights[i]; }
        total = fma(total, shrink, sum);
        if (part < partitions) {
            acc = acc * shrink;
            let here = min(64u, position - p * 64u + 1u);
            for (var i = part; i < here; i += partitions) {
                let v = (base + i) * params.kv_heads + kv_head;
                acc = fma(vec4<f32>(weights[i]), value(v, quad), acc);
            }
        }
    }
    parts[local] = acc;
    workgroupBarrier();
    if (local < $QUADSu) {
        var sum = vec4<f32>(0.0);
        for (var i = 0u; i < partitions; i++) { sum += parts[i * $QUADSu + local]; }
        y[q_base + local] = sum / total;
    }
}
#else
// $TOGETHER quads of the head per iteration: lavapipe ends all loops of a thread after 65,535 iterations in total, without an error,
// and heads of 256 reached that at position 485.
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.heads;
    let head = index % params.heads;
    if (row >= params.n) { return; }
    let at = rows[row];
    let kv_head = head / (params.heads / params.kv_heads);
    let q_base = index * $QUADSu;
    var query: array<vec4<f32>, $QUADS>;
    var acc: array<vec4<f32>, $QUADS>;
    for (var i = 0u; i < $QUADSu; i += $TOGETHERu) {
#repeat o $TOGETHER
        query[i + $ou] = q[q_base + i + $ou] * params.scale;
        acc[i + $ou] = vec4<f32>(0.0);
#end
    }
#if SINKS
    var peak = sinks[head];
    var total = 1.0;
#else
    var peak = -1.0e30;
    var total = 0.0;
#endif
#if WINDOW
    for (var j = window_start(at.x); j <= at.x; j++) {
#else
    for (var j = 0u; j <= at.x; j++) {
#endif
        let cached = (pages[at.z + j / $PAGEu] * $PAGEu + j % $PAGEu) * params.kv_heads + kv_head;
        var s = vec4<f32>(0.0);
        for (var i = 0u; i < $QUADSu; i += $TOGETHERu) {
#repeat o $TOGETHER
            s = fma(query[i + $ou], key(cached, i + $ou), s);
#end
        }
#if CAP
        let score = capped((s.x + s.y) + (s.z + s.w));
#else
        let score = (s.x + s.y) + (s.z + s.w);
#endif
        if (score > peak) {
            let shrink = exp(peak - score);
            total = total * shrink;
            for (var i = 0u; i < $QUADSu; i += $TOGETHERu) {
#repeat o $TOGETHER
                acc[i + $ou] = acc[i + $ou] * shrink;
#end
            }
            peak = score;
        }
        let weight = exp(score - peak);
        total += weight;
        for (var i = 0u; i < $QUADSu; i += $TOGETHERu) {
#repeat o $TOGETHER
            acc[i + $ou] = fma(vec4<f32>(weight), value(cached, i + $ou), acc[i + $ou]);
#end
        }
    }
    for (var i = 0u; i < $QUADSu; i++) { y[q_base + i] = acc[i] / total; }
}
#endif
