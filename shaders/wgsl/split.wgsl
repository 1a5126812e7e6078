// Decode attention: one workgroup handles $HEADS query heads that share a key head, of one batch row, over one split of
// its context. It finishes a context of one split; for longer ones it writes maximum, sum and weighted values to
// `parts`, for `merge`. Splits and tiles end at fixed positions, so a row's sums depend only on its own position.
// Eight threads share a key: neighbours read neighbouring bytes, and each key and value is read once for all heads.
// Few registers and little workgroup memory, so that several workgroups hide each other's reads.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> pages: array<u32>;
@group(0) @binding(3) var<storage, read> q: array<vec4<f32>>;
#include kv_cache
#include splits
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;
// Per row, head and split: the weighted values, then (maximum, sum, 0, 0).
@group(0) @binding(7) var<storage, read_write> parts: array<vec4<f32>>;
#if SINKS
// Per query head: a score without a value, which belongs to the first split.
@group(0) @binding(8) var<storage, read> sinks: array<f32>;
#endif
#include scores

// Threads that share a key, and keys that all threads read at a time.
const SHARE = 8u;
const KEYS = $THREADSu / SHARE;
// Positions of a tile: a page, four times `KEYS`.
const TILE = $PAGEu;
// Quads of a query in workgroup memory: a multiple of `SHARE`, with zeros past its end.
const WIDTH = $STEPSu * $SHARESu * SHARE;

var<workgroup> query: array<vec4<f32>, $HEADSu * WIDTH>;
// Here and below, the components of scores, weights, maxima and sums are the heads.
// First each thread's part of the scores of a tile. The parts of a key are permuted, so that threads use different banks.
// At the end the values that each thread added up, head by head.
var<workgroup> partial: array<vec4<f32>, TILE * SHARE>;
// Scores of a tile, then their weights; at the end each thread's sum of weights.
var<workgroup> weights: array<vec4<f32>, TILE>;
// Maxima (at the end, sums) of every eighth of `weights`.
var<workgroup> eighths: array<vec4<f32>, 8>;
var<workgroup> shared_at: vec4<u32>;

fn head_of(heads: vec4<f32>, h: u32) -> f32 {
    return select(select(heads.x, heads.y, h == 1u), select(heads.z, heads.w, h == 3u), h >= 2u);
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.z;
    if (local == 0u) { shared_at = rows[row]; }
    let at = workgroupUniformLoad(&shared_at);
    // The last splits are the longest, so they start first.
    let split = groups.y - 1u - group.y;
    let first = split_start(split);
    if (first > at.x) { return; }
    let end = min(split_start(split + 1u), at.x + 1u);
    let each = params.heads / params.kv_heads;
    let workgroups = (each + $HEADSu - 1u) / $HEADSu;
    let kv_head = group.x / workgroups;
    let first_head = (group.x % workgroups) * $HEADSu;
    let q_head = row * params.heads + kv_head * each;
    for (var i = local; i < $HEADSu * WIDTH; i += $THREADSu) {
        let head = q_head + min(first_head + i / WIDTH, each - 1u);
        let begin = head * $QUADSu + min(i % WIDTH, $QUADSu - 1u);
        query[i] = select(vec4<f32>(0.0), q[begin] * params.scale, i % WIDTH < $QUADSu);
    }
    // For keys: thread = (key, lane). For scores: thread = position. For values: thread = (partition of the positions,
    // quad of the head).
    let lane = local % SHARE;
    let quad = local % $QUADSu;
    let part = local / $QUADSu;
    let partitions = $THREADSu / $QUADSu;
    var peak = vec4<f32>(-1.0e30);
    var total = vec4<f32>(0.0);
#if SINKS
    if (split == 0u) {
#repeat h $HEADS
        peak[$hu] = sinks[kv_head * each + min(first_head + $hu, each - 1u)];
#end
        total = vec4<f32>(select(0.0, 1.0, local == 0u));
    }
#endif
#repeat h $HEADS
    var acc_$h = vec4<f32>(0.0);
#end
    workgroupBarrier();
#if WINDOW
    let oldest = window_start(at.x);
    // Whole tiles before the window are skipped; a split before it has no tile and a sum of zero.
    for (var tile = max(oldest, first) / TILE * TILE; tile < end; tile += TILE) {
#else
    for (var tile = first; tile < end; tile += TILE) {
#endif
        let here = min(TILE, end - tile);
        let base = pages[at.z + tile / $PAGEu] * $PAGEu;
        // Positions past the end read the last one again; their weights are zero.
#repeat r 4
        let key_$r = (base + min($ru * KEYS + local / SHARE, here - 1u)) * params.kv_heads + kv_head;
#repeat h $HEADS
        var s_$r_$h = 0.0;
#end
#end
#if DEEP
        // Wide heads take several steps: registers for all quads at once would be too many.
        for (var step = 0u; step < WIDTH; step += $SHARESu * SHARE) {
        let near = step + lane;
#else
        let near = lane;
#endif
#repeat r 4
#repeat d $SHARES
#if RAGGED
        let k_$r_$d = key(key_$r, min($du * SHARE + near, $QUADSu - 1u));
#else
        let k_$r_$d = key(key_$r, $du * SHARE + near);
#endif
#end
#end
#repeat d $SHARES
#repeat h $HEADS
        let x_$h_$d = query[$hu * WIDTH + $du * SHARE + near];
#repeat r 4
        s_$r_$h = fma(x_$h_$d.x, k_$r_$d.x, s_$r_$h);
        s_$r_$h = fma(x_$h_$d.y, k_$r_$d.y, s_$r_$h);
        s_$r_$h = fma(x_$h_$d.z, k_$r_$d.z, s_$r_$h);
        s_$r_$h = fma(x_$h_$d.w, k_$r_$d.w, s_$r_$h);
#end
#end
#end
#if DEEP
        }
#endif
#repeat r 4
        var s_$r = vec4<f32>(0.0);
#repeat h $HEADS
        s_$r[$hu] = s_$r_$h;
#end
        partial[($ru * KEYS + local / SHARE) * SHARE + (lane ^ (local / SHARE % SHARE))] = s_$r;
#end
        workgroupBarrier();
        var score = vec4<f32>(-1.0e30);
        if (local < TILE) {
#repeat i 8
            let p_$i = partial[local * SHARE + ($iu ^ (local % SHARE))];
#end
            score = ((p_0 + p_1) + (p_2 + p_3)) + ((p_4 + p_5) + (p_6 + p_7));
#if CAP
            score = vec4<f32>(capped(score.x), capped(score.y), capped(score.z), capped(score.w));
#endif
#if WINDOW
            score = select(vec4<f32>(-1.0e30), score, local < here && tile + local >= oldest);
#else
            score = select(vec4<f32>(-1.0e30), score, local < here);
#endif
            weights[local] = score;
        }
        workgroupBarrier();
        if (local < 8u) {
            var higher = weights[local];
            for (var i = 1u; i < TILE / 8u; i++) { higher = max(higher, weights[local + 8u * i]); }
            eighths[local] = higher;
        }
        workgroupBarrier();
        var higher = peak;
        for (var i = 0u; i < 8u; i++) { higher = max(higher, eighths[i]); }
        let shrink = exp(peak - higher);
        peak = higher;
        if (local < TILE) {
#if WINDOW
            let weight = select(vec4<f32>(0.0), exp(score - peak), local < here && tile + local >= oldest);
#else
            let weight = select(vec4<f32>(0.0), exp(score - peak), local < here);
#endif
            weights[local] = weight;
            total = fma(total, shrink, weight);
        }
        workgroupBarrier();
#repeat h $HEADS
        acc_$h = acc_$h * shrink[$hu];
#end
        for (var i = select(TILE, part, part < partitions); i < here; i += 8u * partitions) {
#repeat u 8
            let i_$u = i + $uu * partitions;
            let v_$u = value((base + min(i_$u, here - 1u)) * params.kv_heads + kv_head, quad);
#end
#repeat u 8
            let w_$u = select(vec4<f32>(0.0), weights[min(i_$u, TILE - 1u)], i_$u < here);
#repeat h $HEADS
            acc_$h = fma(vec4<f32>(w_$u[$hu]), v_$u, acc_$h);
#end
#end
        }
    }
    workgroupBarrier();
    if (local < TILE) { weights[local] = total; }
#repeat h $HEADS
    partial[$hu * $THREADSu + local] = acc_$h;
#end
    workgroupBarrier();
    if (local < 8u) {
        var sum = weights[local];
        for (var i = 1u; i < TILE / 8u; i++) { sum += weights[local + 8u * i]; }
        eighths[local] = sum;
    }
    workgroupBarrier();
    total = eighths[0];
    for (var i = 1u; i < 8u; i++) { total += eighths[i]; }
    for (var i = local; i < $HEADSu * $QUADSu; i += $THREADSu) {
        let h = i / $QUADSu;
        if (first_head + h >= each) { break; }
        var weighted = vec4<f32>(0.0);
        for (var p = 0u; p < partitions; p++) { weighted += partial[h * $THREADSu + p * $QUADSu + i % $QUADSu]; }
        let head = q_head + first_head + h;
        if (at.x < $SPLITu) {
            y[head * $QUADSu + i % $QUADSu] = weighted / head_of(total, h);
            continue;
        }
        let to = (head * params.splits + split) * ($QUADSu + 1u);
        parts[to + i % $QUADSu] = weighted;
        if (i % $QUADSu == 0u) { parts[to + $QUADSu] = vec4<f32>(head_of(peak, h), head_of(total, h), 0.0, 0.0); }
    }
}
