// The recurrence of a head over the rows of a run. Each of the head's values has a column of state of its own:
// RULE Delta: gated delta net (arXiv 2412.06464, equation 10), then RMSNorm · gain · silu(gate).
//   S = fade · S;  S += k (beta · (v − Sᵀ k))ᵀ;  o = Sᵀ q / √width
// RULE Space: state space (Mamba 2, arXiv 2405.21060), then silu(gate).
//   S = fade · S + (time · x) Bᵀ;  o = S C + skip · x
// One workgroup per head holds its state in registers: $QUADS quads of columns, $PARTS threads for each. A thread has every
// $PARTS-th value of its columns, all of them read at once. It sums what it has under k and under q before the row changes the
// state, because o = fade · Sᵀ q + (k · q) · change: so the threads meet once for both sums. Rows come one after another
// and sums have a fixed order, so a result does not depend on the batch.
#include recurrence

// k and q (B and C) of this row and the next.
var<workgroup> pairs: array<vec2<f32>, $STATES>;
// Each thread's sums under k and under q, by columns.
var<workgroup> seen_parts: array<vec4<f32>, $THREADS>;
var<workgroup> got_parts: array<vec4<f32>, $THREADS>;
// Each part of k · k, q · q and k · q.
var<workgroup> products: array<vec4<f32>, $PARTS>;
var<workgroup> changes: array<f32, $WIDTH>;
#if RULE == Delta
var<workgroup> outputs: array<f32, $WIDTH>;
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    let first = group.z;
    let run = rows[first].w;
    let count = run_rows(run);
    if (count == 0u) { return; }
    let source = first_slot(run);
    let quad = lane % $QUADSu;
    let part = lane / $QUADSu;
    // The thread's quads in a slot, and the first of them.
    let slot_quads = params.slot / 4u;
    let own = (params.tail + head * $STATEu * $WIDTHu) / 4u + lane;
#repeat j $EACH
    var s_$j = vec4<f32>(0.0);
#end
    if (source != 0u) {
        let at = (source - 1u) * slot_quads + own;
#repeat j $EACH
        s_$j = state[at + $ju * $THREADSu];
#end
    }
    // What is read of a row, always one row ahead.
    let column = min(lane, $WIDTHu - 1u);
    let at_column = head * $WIDTHu + column;
    var numbers = numbers_of(first, head);
    var value = x[first * params.stride + params.values + at_column];
    var gate = x[first * params.stride + params.gate + at_column];
#repeat l $LOADS
    let i_$l = min(lane + $lu * $THREADSu, $STATEu - 1u);
    var k_$l = x[shared_at(first, head) + params.writes + i_$l];
    var q_$l = x[shared_at(first, head) + params.reads + i_$l];
#end
    for (var row = first; row < first + count; row++) {
        let here = (row & 1u) * $STATEu;
#repeat l $LOADS
        if (lane + $lu * $THREADSu < $STATEu) { pairs[here + i_$l] = vec2<f32>(k_$l, q_$l); }
#end
        let step = step_of(numbers, head);
        let value_here = value;
        let gate_here = gate;
        let next = min(row + 1u, first + count - 1u);
        numbers = numbers_of(next, head);
        value = x[next * params.stride + params.values + at_column];
        gate = x[next * params.stride + params.gate + at_column];
#repeat l $LOADS
        k_$l = x[shared_at(next, head) + params.writes + i_$l];
        q_$l = x[shared_at(next, head) + params.reads + i_$l];
#end
        workgroupBarrier();
        var seen = vec4<f32>(0.0);
        var got = vec4<f32>(0.0);
        var product = vec4<f32>(0.0);
#repeat j $EACH
        {
            let pair = pairs[here + $ju * $PARTSu + part];
            seen = fma(s_$j, vec4<f32>(pair.x), seen);
            got = fma(s_$j, vec4<f32>(pair.y), got);
            product = fma(vec4<f32>(pair.x, pair.y, pair.x, 0.0), vec4<f32>(pair.x, pair.y, pair.y, 0.0), product);
        }
#end
        seen_parts[lane] = seen;
        got_parts[lane] = got;
        if (quad == 0u) { products[part] = product; }
        workgroupBarrier();
        // One column each.
        var whole = vec4<f32>(0.0);
        var seen_here = 0.0;
        var got_here = 0.0;
#repeat p $PARTS
        whole += products[$p];
        seen_here += seen_parts[$pu * $QUADSu + column / 4u][column % 4u];
        got_here += got_parts[$pu * $QUADSu + column / 4u][column % 4u];
#end
        let scales = scales_of(whole.x, whole.y);
#if RULE == Delta
        let change = step.y * fma(-(step.x * scales.x), seen_here, value_here);
#else
        let change = step.y * value_here;
#endif
        let written = change * scales.x;
        var out = scales.y * fma(written, whole.z, step.x * got_here);
        if (lane < $WIDTHu) {
            changes[column] = written;
#if RULE == Delta
            outputs[column] = out;
#endif
        }
        workgroupBarrier();
        let at = 4u * quad;
        let add = vec4<f32>(changes[at], changes[at + 1u], changes[at + 2u], changes[at + 3u]);
#repeat j $EACH
        s_$j = fma(vec4<f32>(pairs[here + $ju * $PARTSu + part].x), add, s_$j * step.x);
#end
#if RULE == Delta
        var squares = vec4<f32>(0.0);
        for (var c = 0u; c < $WIDTHu; c += 4u) {
            let four = vec4<f32>(outputs[c], outputs[c + 1u], outputs[c + 2u], outputs[c + 3u]);
            squares = fma(four, four, squares);
        }
        let sum = (squares.x + squares.y) + (squares.z + squares.w);
        out = (out * (1.0 / sqrt(sum / f32($WIDTHu) + params.epsilon))) * last[column];
#else
        out = fma(last[head], value_here, out);
#endif
        if (lane < $WIDTHu) { y[row * params.heads * $WIDTHu + at_column] = gated(out, gate_here); }
        let copy = copy_slot(rows[row].w);
        if (copy != 0u) {
            let to = (copy - 1u) * slot_quads + own;
#repeat j $EACH
            state[to + $ju * $THREADSu] = s_$j;
#end
        }
    }
    let to = live_slot(run) * slot_quads + own;
#repeat j $EACH
    state[to + $ju * $THREADSu] = s_$j;
#end
}
