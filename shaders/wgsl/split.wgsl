// Decode attention: one workgroup handles $HEADS query heads that share a key head, of one batch row, over one split of
// its context. It finishes a context of one split; for longer ones it writes maximum, sum and weighted values to
// `parts`, for `merge`. Splits and tiles end at fixed positions, so a row's sums depend only on its own position.
// Eight threads share a key: neighbours read neighbouring bytes, and each key and value is read once for all heads.
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

const SHARE = 8u;
// Keys that the threads read at a time, and scores that one thread adds up in a tile of 128 positions.
const KEYS = 32u;
const TILE = 128u;

// Two buffers of partial scores, used in turn. Rows of nine keep threads on different banks.
var<workgroup> partial: array<f32, $PARTIALS>;
var<workgroup> weights: array<f32, $WEIGHTS>;
// Of each head: maxima or sums of the threads that add up its scores, and what a new maximum does to older sums.
var<workgroup> some: array<f32, $SOME>;
var<workgroup> shrinks: array<f32, $HEADS>;
var<workgroup> shared_values: array<vec4<f32>, $THREADS>;
var<workgroup> shared_at: vec4<u32>;

fn row_of(pages: vec2<u32>, i: u32) -> u32 {
    return select(pages.x, pages.y, i >= $PAGEu) * $PAGEu + i % $PAGEu;
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.z;
    if (local == 0u) { shared_at = rows[row]; }
    let at = workgroupUniformLoad(&shared_at);
    let first = split_start(group.y);
    if (first > at.x) { return; }
    let end = min(split_start(group.y + 1u), at.x + 1u);
    let each = params.heads / params.kv_heads;
    let workgroups = (each + $HEADSu - 1u) / $HEADSu;
    let kv_head = group.x / workgroups;
    let first_head = (group.x % workgroups) * $HEADSu;
    let lane = local % SHARE;
#repeat h $HEADS
    let head_$h = kv_head * each + min(first_head + $hu, each - 1u);
    let q_$h = (row * params.heads + head_$h) * $QUADSu;
#repeat d $SHARES
#if RAGGED
    let query_$h_$d = select(vec4<f32>(0.0), q[q_$h + min($du * SHARE + lane, $QUADSu - 1u)] * params.scale,
                             $du * SHARE + lane < $QUADSu);
#else
    let query_$h_$d = q[q_$h + $du * SHARE + lane] * params.scale;
#endif
#end
#end
    // For sums of scores: thread = (head, key). For values: thread = (partition of the positions, quad of the head).
    let adds = local < $HEADSu * KEYS;
    let own = (local / KEYS) % $HEADSu;
    let quad = local % $QUADSu;
    let part = local / $QUADSu;
    let partitions = $THREADSu / $QUADSu;
    var peak = -1.0e30;
    var total = 0.0;
#if SINKS
    if (adds && group.y == 0u) {
        peak = sinks[kv_head * each + min(first_head + own, each - 1u)];
        total = select(0.0, 1.0, local % KEYS == 0u);
    }
#endif
#repeat h $HEADS
    var acc_$h = vec4<f32>(0.0);
#end
#if WINDOW
    let oldest = window_start(at.x);
    // Whole tiles before the window are skipped; a split before it has no tile and a sum of zero.
    for (var tile = max(oldest, first) / TILE * TILE; tile < end; tile += TILE) {
#else
    for (var tile = first; tile < end; tile += TILE) {
#endif
        let here = min(TILE, end - tile);
        let page = at.z + tile / $PAGEu;
        let both = vec2<u32>(pages[page], pages[min(page + 1u, at.z + at.x / $PAGEu)]);
        // Positions past the end read the last one again; their weights are zero.
#repeat r 4
        let key_$r = row_of(both, min($ru * KEYS + local / SHARE, here - 1u)) * params.kv_heads + kv_head;
#repeat h $HEADS
        var s_$r_$h = vec4<f32>(0.0);
#end
#repeat d $SHARES
#if RAGGED
        let k_$r_$d = key(key_$r, min($du * SHARE + lane, $QUADSu - 1u));
#else
        let k_$r_$d = key(key_$r, $du * SHARE + lane);
#endif
#end
#repeat d $SHARES
#repeat h $HEADS
        s_$r_$h = fma(query_$h_$d, k_$r_$d, s_$r_$h);
#end
#end
#end
        // Values are on their way while the scores are added up.
#repeat u 8
        var v_$u = value(row_of(both, min(part + $uu * partitions, here - 1u)) * params.kv_heads + kv_head, quad);
#end
#repeat r 4
#repeat h $HEADS
        partial[(($ru & 1u) * $HEADSu + $hu) * 288u + (local / SHARE) * 9u + lane] =
            (s_$r_$h.x + s_$r_$h.y) + (s_$r_$h.z + s_$r_$h.w);
#end
        workgroupBarrier();
        var score_$r = -1.0e30;
        if (adds) {
            let begin = (($ru & 1u) * $HEADSu + own) * 288u + (local % KEYS) * 9u;
            let sum = ((partial[begin] + partial[begin + 1u]) + (partial[begin + 2u] + partial[begin + 3u]))
                + ((partial[begin + 4u] + partial[begin + 5u]) + (partial[begin + 6u] + partial[begin + 7u]));
#if CAP
            score_$r = select(-1.0e30, capped(sum), $ru * KEYS + local % KEYS < here);
#else
            score_$r = select(-1.0e30, sum, $ru * KEYS + local % KEYS < here);
#endif
#if WINDOW
            score_$r = select(-1.0e30, score_$r, tile + $ru * KEYS + local % KEYS >= oldest);
#endif
        }
#end
        if (adds) { some[local] = max(max(score_0, score_1), max(score_2, score_3)); }
        workgroupBarrier();
        if (adds) {
            var higher = peak;
            for (var i = 0u; i < KEYS; i++) { higher = max(higher, some[own * KEYS + i]); }
            let shrink = exp(peak - higher);
            peak = higher;
            var sum = 0.0;
#repeat r 4
            {
#if WINDOW
                let weight = select(0.0, exp(score_$r - peak),
                    $ru * KEYS + local % KEYS < here && tile + $ru * KEYS + local % KEYS >= oldest);
#else
                let weight = select(0.0, exp(score_$r - peak), $ru * KEYS + local % KEYS < here);
#endif
                weights[own * TILE + $ru * KEYS + local % KEYS] = weight;
                sum += weight;
            }
#end
            total = fma(total, shrink, sum);
            if (local % KEYS == 0u) { shrinks[own] = shrink; }
        }
        workgroupBarrier();
#repeat h $HEADS
        acc_$h = acc_$h * shrinks[$hu];
#end
        for (var i = part; i < here; i += 8u * partitions) {
#repeat u 8
            let w_$u = i + $uu * partitions;
#repeat h $HEADS
            acc_$h = fma(vec4<f32>(select(0.0, weights[$hu * TILE + min(w_$u, TILE - 1u)], w_$u < here)), v_$u, acc_$h);
#end
#end
            if (i + 8u * partitions < here) {
#repeat u 8
                v_$u = value(row_of(both, min(i + ($uu + 8u) * partitions, here - 1u)) * params.kv_heads + kv_head,
                             quad);
#end
            }
        }
    }
    workgroupBarrier();
    if (adds) { some[local] = total; }
#repeat h $HEADS
    shared_values[local] = acc_$h;
    workgroupBarrier();
    if (local < $QUADSu && first_head + $hu < each) {
        var weighted = vec4<f32>(0.0);
        for (var i = 0u; i < partitions; i++) { weighted += shared_values[i * $QUADSu + local]; }
        var sum = 0.0;
        for (var i = 0u; i < KEYS; i++) { sum += some[$hu * KEYS + i]; }
        if (at.x < $SPLITu) {
            y[q_$h + local] = weighted / sum;
        } else {
            parts[((row * params.heads + head_$h) * params.splits + group.y) * ($QUADSu + 1u) + local] = weighted;
        }
    }
    if (local == $hu * KEYS && first_head + $hu < each && at.x >= $SPLITu) {
        var sum = 0.0;
        for (var i = 0u; i < KEYS; i++) { sum += some[$hu * KEYS + i]; }
        parts[((row * params.heads + head_$h) * params.splits + group.y) * ($QUADSu + 1u) + $QUADSu] =
            vec4<f32>(peak, sum, 0.0, 0.0);
    }
    workgroupBarrier();
#end
}
