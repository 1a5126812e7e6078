// Softmax attention for a prompt chunk: a workgroup handles $ROWS rows of queries that share a key head, query by query
// and in each the heads of the group, so that a key is read once for all of them. It takes 32 keys (then their values)
// at a time, with an online softmax. Each thread computes 4 rows × $SK keys of the scores, and $PARTS × 4 rows × $VT
// quads of the output. Queries and keys come into workgroup memory 8 quads at a time, values $VK positions at a time.
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

const KEYS = 32u;
// Quads of a query or a key that are in workgroup memory at a time, and one more, so that threads reading different
// rows use different banks.
const CHUNK = 8u;
const STRIDE = CHUNK + 1u;
// Four rows make one vector of weights; row r is component r / FOURS of vector r % FOURS.
const FOURS = $ROWSu / 4u;
const WEIGHTS = FOURS + 1u;
// Threads across the keys of the scores.
const TX = $THREADSu / FOURS;
// Quads of a value in workgroup memory.
const WIDTH = 16u * $VTu;
const SECOND = $ROWSu * STRIDE;

// Queries, then keys; later weights, then values.
var<workgroup> tile: array<vec4<f32>, ($ROWSu + KEYS) * STRIDE>;
// Each thread's maxima of its four rows; at the end the sums of their weights.
var<workgroup> highest: array<vec4<f32>, $THREADS>;
var<workgroup> shrinks: array<vec4<f32>, FOURS>;

fn group_size() -> u32 { return params.heads / params.kv_heads; }

// Where the query of a row begins, for rows of a key head counted query by query.
fn query_of(row: u32, kv_head: u32) -> u32 {
    let each = group_size();
    return (row / each * params.heads + kv_head * each + row % each) * $QUADSu;
}

// Brings values of $VK positions into workgroup memory.
fn stage_values(local: u32, page: u32, first: u32, known: u32, kv_head: u32) {
    for (var i = local; i < $VKu * WIDTH; i += $THREADSu) {
        let at = first + i / WIDTH;
        // Memory past the last position may hold anything.
        if (i % WIDTH < $QUADSu) {
            let v = value((page + at) * params.kv_heads + kv_head, i % WIDTH);
            tile[SECOND + i] = select(vec4<f32>(0.0), v, vec4<bool>(at < known));
        }
    }
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let kv_head = group.x;
    let each = group_size();
    // The last rows see the most keys, so they start first.
    let first = (groups.z - 1u - group.z) * $ROWSu;
    let last = min(first + $ROWSu, params.n * each) - 1u;
    // For scores: thread = (keys tx + TX·k, rows ty + FOURS·i).
    let tx = local % TX;
    let ty = local / TX;
    // For the output: thread = (quads ox + 16·v, rows oy + 8·p + FOURS·i).
    let ox = local % 16u;
    let oy = local / 16u;
    var positions = vec4<u32>(0u);
    var peak = vec4<f32>(-1.0e30);
    var total = vec4<f32>(0.0);
#repeat i 4
    let row_$i = first + ty + FOURS * $iu;
    positions[$iu] = rows[min(row_$i, last) / each].x;
#if SINKS
    peak[$iu] = sinks[kv_head * each + row_$i % each];
#endif
#end
#if SINKS
    total = vec4<f32>(select(0.0, 1.0, tx == 0u));
#endif
    // Queries that this thread brings into workgroup memory.
#repeat j $LOADS
    let load_$j = query_of(min(first + local / CHUNK + $THREADSu / CHUNK * $ju, last), kv_head);
#end
#repeat p $PARTS
#repeat i 4
#repeat v $VT
    var acc_$p_$i_$v = vec4<f32>(0.0);
#end
#end
#end
    // Runs of batch rows that belong to one conversation; there is nearly always just one.
    let stop = last / each + 1u;
    for (var begin = first / each; begin < stop; ) {
        let start = rows[begin].z;
        var end = begin;
        var reach = 0u;
#if WINDOW
        var low = 0xffffffffu;
#endif
        while (end < stop) {
            let at = rows[end];
            if (at.z != start) { break; }
            reach = max(reach, at.x + 1u);
#if WINDOW
            low = min(low, window_start(at.x));
#endif
            end += 1u;
        }
        // Keys that a query of this run sees; none for rows outside the run.
        var seen = vec4<u32>(0u);
#if WINDOW
        var oldest = vec4<u32>(0u);
#endif
#repeat i 4
        if (row_$i <= last && row_$i / each >= begin && row_$i / each < end) { seen[$iu] = positions[$iu] + 1u; }
#if WINDOW
        oldest[$iu] = window_start(positions[$iu]);
#endif
#end
        begin = end;
#if WINDOW
        for (var base = low / KEYS * KEYS; base < reach; base += KEYS) {
#else
        for (var base = 0u; base < reach; base += KEYS) {
#endif
            let page = pages[start + base / $PAGEu] * $PAGEu + base % $PAGEu;
#repeat i 4
#repeat k $SK
            var s_$i_$k = 0.0;
#end
#end
            for (var chunk = 0u; chunk < $QUADSu; chunk += CHUNK) {
                let quad = chunk + local % CHUNK;
                let from_quad = min(quad, $QUADSu - 1u);
                workgroupBarrier();
                // Past the end of a head, queries are zeros and keys repeat their last quad.
#repeat j $LOADS
                tile[(local / CHUNK + $THREADSu / CHUNK * $ju) * STRIDE + local % CHUNK] =
                    select(vec4<f32>(0.0), q[load_$j + from_quad] * params.scale, quad < $QUADSu);
#end
                for (var i = local / CHUNK; i < KEYS; i += $THREADSu / CHUNK) {
                    tile[SECOND + i * STRIDE + local % CHUNK] = key((page + i) * params.kv_heads + kv_head, from_quad);
                }
                workgroupBarrier();
                for (var c = 0u; c < CHUNK; c++) {
#repeat k $SK
                    let k_$k = tile[SECOND + (tx + TX * $ku) * STRIDE + c];
#end
#repeat i 4
                    let x_$i = tile[(ty + FOURS * $iu) * STRIDE + c];
#repeat k $SK
                    s_$i_$k = fma(x_$i.x, k_$k.x, s_$i_$k);
                    s_$i_$k = fma(x_$i.y, k_$k.y, s_$i_$k);
                    s_$i_$k = fma(x_$i.z, k_$k.z, s_$i_$k);
                    s_$i_$k = fma(x_$i.w, k_$k.w, s_$i_$k);
#end
#end
                }
            }
            var high = vec4<f32>(-1.0e30);
#repeat k $SK
#if CAP
            var score_$k = vec4<f32>(capped(s_0_$k), capped(s_1_$k), capped(s_2_$k), capped(s_3_$k));
#else
            var score_$k = vec4<f32>(s_0_$k, s_1_$k, s_2_$k, s_3_$k);
#endif
            let at_$k = vec4<u32>(base + tx + TX * $ku);
#if WINDOW
            let sees_$k = (at_$k < seen) & (at_$k >= oldest);
#else
            let sees_$k = at_$k < seen;
#endif
            score_$k = select(vec4<f32>(-1.0e30), score_$k, sees_$k);
            high = max(high, score_$k);
#end
            highest[tx * FOURS + ty] = high;
            workgroupBarrier();
            stage_values(local, page, 0u, reach - base, kv_head);
            high = peak;
            for (var t = 0u; t < TX; t++) { high = max(high, highest[t * FOURS + ty]); }
            // Exactly one if the maximum did not rise: later tiles of other rows must not change this row.
            let shrink = select(exp(peak - high), vec4<f32>(1.0), peak == high);
            peak = high;
            var sum = vec4<f32>(0.0);
#repeat k $SK
            let weight_$k = select(vec4<f32>(0.0), exp(score_$k - peak), sees_$k);
            tile[(tx + TX * $ku) * WEIGHTS + ty] = weight_$k;
            sum += weight_$k;
#end
            total = fma(total, shrink, sum);
            if (tx == 0u) { shrinks[ty] = shrink; }
            workgroupBarrier();
#repeat p $PARTS
            let less_$p = shrinks[oy + 8u * $pu];
#repeat i 4
#repeat v $VT
            acc_$p_$i_$v = acc_$p_$i_$v * less_$p[$iu];
#end
#end
#end
            for (var position = 0u; position < KEYS; position += $VKu) {
                if (position > 0u) {
                    workgroupBarrier();
                    stage_values(local, page, position, reach - base, kv_head);
                    workgroupBarrier();
                }
                for (var k = 0u; k < $VKu; k++) {
#repeat v $VT
                    let v_$v = tile[SECOND + k * WIDTH + ox + 16u * $vu];
#end
#repeat p $PARTS
                    let w_$p = tile[(position + k) * WEIGHTS + oy + 8u * $pu];
#repeat i 4
#repeat v $VT
                    acc_$p_$i_$v = fma(vec4<f32>(w_$p[$iu]), v_$v, acc_$p_$i_$v);
#end
#end
#end
                }
            }
        }
    }
    workgroupBarrier();
    highest[tx * FOURS + ty] = total;
    workgroupBarrier();
#repeat p $PARTS
    {
        var sum = highest[oy + 8u * $pu];
        for (var t = 1u; t < TX; t++) { sum += highest[t * FOURS + oy + 8u * $pu]; }
#repeat i 4
        if (first + oy + 8u * $pu + FOURS * $iu <= last) {
            let to = query_of(first + oy + 8u * $pu + FOURS * $iu, kv_head);
#repeat v $VT
            if (ox + 16u * $vu < $QUADSu) { y[to + ox + 16u * $vu] = acc_$p_$i_$v / sum[$iu]; }
#end
        }
#end
    }
#end
}
