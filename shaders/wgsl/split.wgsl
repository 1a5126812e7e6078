// Decode attention: one workgroup handles one query head of one batch row and up to $SPLIT positions of its context. It
// finishes a context of one split; for longer ones it writes maximum, sum and weighted values to `parts`, for `merge`.
// Split boundaries are fixed positions, so a row's sums depend only on its own position.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> pages: array<u32>;
@group(0) @binding(3) var<storage, read> q: array<vec4<f32>>;
#include kv_cache
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;
// Per row, head and split: the weighted values, then (maximum, sum, 0, 0).
@group(0) @binding(7) var<storage, read_write> parts: array<vec4<f32>>;

var<workgroup> query: array<vec4<f32>, $QUADS>;
var<workgroup> scores: array<f32, $SPLIT>;
var<workgroup> shared_values: array<vec4<f32>, $THREADS>;
var<workgroup> shared_at: vec4<u32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let head = group.x;
    let row = group.z;
    if (local == 0u) { shared_at = rows[row]; }
    let at = workgroupUniformLoad(&shared_at);
    let first = group.y * $SPLITu;
    if (first > at.x) { return; }
    let here = min($SPLITu, at.x - first + 1u);
    let kv_head = head / (params.heads / params.kv_heads);
    let q_base = (row * params.heads + head) * $QUADSu;
    if (local < $QUADSu) { query[local] = q[q_base + local] * params.scale; }
    workgroupBarrier();
    var peak = -1.0e30;
    for (var i = local; i < here; i += $THREADSu) {
        let p = first + i;
        let k = (pages[at.z + p / 64u] * 64u + p % 64u) * params.kv_heads + kv_head;
        var s = vec4<f32>(0.0);
        for (var d = 0u; d < $QUADSu; d++) { s = fma(query[d], key(k, d), s); }
        let score = (s.x + s.y) + (s.z + s.w);
        scores[i] = score;
        peak = max(peak, score);
    }
    shared_values[local].x = peak;
    workgroupBarrier();
    for (var step = $THREADSu / 2u; step > 0u; step = step >> 1u) {
        if (local < step) { shared_values[local].x = max(shared_values[local].x, shared_values[local + step].x); }
        workgroupBarrier();
    }
    peak = shared_values[0].x;
    var sum = 0.0;
    for (var i = local; i < here; i += $THREADSu) {
        let weight = exp(scores[i] - peak);
        scores[i] = weight;
        sum += weight;
    }
    shared_values[local].y = sum;
    workgroupBarrier();
    for (var step = $THREADSu / 2u; step > 0u; step = step >> 1u) {
        if (local < step) { shared_values[local].y += shared_values[local + step].y; }
        workgroupBarrier();
    }
    let total = shared_values[0].y;
    workgroupBarrier();
    // Thread = (partition of the positions, quad of the head).
    let quad = local % $QUADSu;
    let part = local / $QUADSu;
    let partitions = $THREADSu / $QUADSu;
    var acc = vec4<f32>(0.0);
    if (part < partitions) {
        for (var i = part; i < here; i += partitions) {
            let p = first + i;
            let v = (pages[at.z + p / 64u] * 64u + p % 64u) * params.kv_heads + kv_head;
            acc = fma(vec4<f32>(scores[i]), value(v, quad), acc);
        }
    }
    shared_values[local] = acc;
    workgroupBarrier();
    if (local >= $QUADSu) { return; }
    var weighted = vec4<f32>(0.0);
    for (var i = 0u; i < partitions; i++) { weighted += shared_values[i * $QUADSu + local]; }
    if (at.x < $SPLITu) {
        y[q_base + local] = weighted / total;
        return;
    }
    let to = ((row * params.heads + head) * params.splits + group.y) * ($QUADSu + 1u);
    parts[to + local] = weighted;
    if (local == 0u) { parts[to + $QUADSu] = vec4<f32>(peak, total, 0.0, 0.0); }
}
