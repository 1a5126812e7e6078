// Softmax attention for a prompt chunk: a workgroup handles one query head of $QUERIES batch rows. It loads $KEYS keys
// (then their values) of a page at a time into workgroup memory, with an online softmax. Each thread computes 4 queries
// × $KT keys of the scores, and 4 queries × $VT quads of the output.
// Keys come in ascending order and rows never share a sum, so a result depends on the position only.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
// Per batch row: position, row in the KV cache, first entry in the page table, 0.
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

// A position's quads plus one, so that threads reading different positions use different banks.
const STRIDE = $QUADSu + 1u;
var<workgroup> cached: array<vec4<f32>, $KEYSu * STRIDE>;
var<workgroup> highest: array<f32, $QUERIESu * 8u>;
const WEIGHTS = $KEYSu + 1u;
var<workgroup> weights: array<f32, $QUERIESu * WEIGHTS>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let head = group.x;
    let kv_head = head / (params.heads / params.kv_heads);
    // The last rows see the most keys, so they start first.
    let first = (groups.z - 1u - group.z) * $QUERIESu;
    let last = min(first + $QUERIESu, params.n) - 1u;
    let tx = local % 8u;
    let ty = local / 8u;
#repeat i 4
    let row_$i = first + ty + 8u * $iu;
    let q_$i = (min(row_$i, last) * params.heads + head) * $QUADSu;
    let position_$i = rows[min(row_$i, last)].x;
#if SINKS
    var peak_$i = sinks[head];
    var total_$i = 1.0;
#else
    var peak_$i = -1.0e30;
    var total_$i = 0.0;
#endif
#repeat v $VT
    var acc_$i_$v = vec4<f32>(0.0);
#end
#end
    // Runs of rows that belong to one conversation; there is nearly always just one.
    for (var begin = first; begin <= last; ) {
        let start = rows[begin].z;
        var end = begin;
        var reach = 0u;
#if WINDOW
        var low = 0xffffffffu;
#endif
        while (end <= last) {
            let at = rows[end];
            if (at.z != start) { break; }
            reach = max(reach, at.x + 1u);
#if WINDOW
            low = min(low, window_start(at.x));
#endif
            end += 1u;
        }
        // Keys that a query of this run sees; none for rows outside the run.
#repeat i 4
        let seen_$i = select(0u, position_$i + 1u, row_$i >= begin && row_$i < end);
#if WINDOW
        let oldest_$i = window_start(position_$i);
#endif
#end
        begin = end;
#if WINDOW
        for (var base = low / $KEYSu * $KEYSu; base < reach; base += $KEYSu) {
#else
        for (var base = 0u; base < reach; base += $KEYSu) {
#endif
            let page = pages[start + base / $PAGEu] * $PAGEu + base % $PAGEu;
            workgroupBarrier();
            for (var i = local; i < $KEYSu * $QUADSu; i += $THREADSu) {
                let at = (page + i / $QUADSu) * params.kv_heads + kv_head;
                cached[(i / $QUADSu) * STRIDE + i % $QUADSu] = key(at, i % $QUADSu);
            }
            workgroupBarrier();
#repeat i 4
#repeat k $KT
            var score_$i_$k = 0.0;
#end
#end
            for (var c = 0u; c < $QUADSu; c++) {
#repeat k $KT
                let k_$k = cached[(tx + 8u * $ku) * STRIDE + c];
#end
#repeat i 4
                let x_$i = q[q_$i + c];
#repeat k $KT
                score_$i_$k = fma(x_$i.x, k_$k.x, score_$i_$k);
                score_$i_$k = fma(x_$i.y, k_$k.y, score_$i_$k);
                score_$i_$k = fma(x_$i.z, k_$k.z, score_$i_$k);
                score_$i_$k = fma(x_$i.w, k_$k.w, score_$i_$k);
#end
#end
            }
#repeat i 4
            var high_$i = -1.0e30;
#repeat k $KT
#if CAP
            score_$i_$k = capped(score_$i_$k * params.scale);
#else
            score_$i_$k = score_$i_$k * params.scale;
#endif
            score_$i_$k = select(-1.0e30, score_$i_$k, base + tx + 8u * $ku < seen_$i);
#if WINDOW
            score_$i_$k = select(-1.0e30, score_$i_$k, base + tx + 8u * $ku >= oldest_$i);
#endif
            high_$i = max(high_$i, score_$i_$k);
#end
            highest[(ty + 8u * $iu) * 8u + tx] = high_$i;
#end
            workgroupBarrier();
            for (var i = local; i < $KEYSu * $QUADSu; i += $THREADSu) {
                let at = (page + i / $QUADSu) * params.kv_heads + kv_head;
                // Memory past the last position may hold anything.
                let known = vec4<bool>(base + i / $QUADSu < reach);
                cached[(i / $QUADSu) * STRIDE + i % $QUADSu] = select(vec4<f32>(0.0), value(at, i % $QUADSu), known);
            }
#repeat i 4
            high_$i = peak_$i;
            for (var t = 0u; t < 8u; t++) { high_$i = max(high_$i, highest[(ty + 8u * $iu) * 8u + t]); }
#repeat k $KT
#if WINDOW
            weights[(ty + 8u * $iu) * WEIGHTS + tx + 8u * $ku] = select(0.0, exp(score_$i_$k - high_$i),
                base + tx + 8u * $ku < seen_$i && base + tx + 8u * $ku >= oldest_$i);
#else
            weights[(ty + 8u * $iu) * WEIGHTS + tx + 8u * $ku] =
                select(0.0, exp(score_$i_$k - high_$i), base + tx + 8u * $ku < seen_$i);
#endif
#end
            // Exactly one if the maximum did not rise: later tiles of other rows must not change this row.
            let shrink_$i = select(exp(peak_$i - high_$i), 1.0, peak_$i == high_$i);
            peak_$i = high_$i;
            var sum_$i = 0.0;
#repeat v $VT
            acc_$i_$v = acc_$i_$v * shrink_$i;
#end
#end
            workgroupBarrier();
            for (var k = 0u; k < $KEYSu; k++) {
#repeat v $VT
                let v_$v = cached[k * STRIDE + min(tx + 8u * $vu, $QUADSu - 1u)];
#end
#repeat i 4
                let w_$i = weights[(ty + 8u * $iu) * WEIGHTS + k];
                sum_$i += w_$i;
#repeat v $VT
                acc_$i_$v = fma(vec4<f32>(w_$i), v_$v, acc_$i_$v);
#end
#end
            }
#repeat i 4
            total_$i = fma(total_$i, shrink_$i, sum_$i);
#end
        }
    }
#repeat i 4
    if (row_$i <= last) {
#repeat v $VT
        if (tx + 8u * $vu < $QUADSu) { y[q_$i + tx + 8u * $vu] = acc_$i_$v / total_$i; }
#end
    }
#end
}
