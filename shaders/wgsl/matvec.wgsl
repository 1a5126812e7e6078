// Quantized matrix times a few vectors: y[r] = W · x[r] (+ bias), or added to y.
// Each of the $ROWS vectors of a group is summed in the same fixed order, whatever $ROWS is. Explicit `fma` keeps
// compilers from rounding differently in different variants.
// PerThread: one thread computes $OUT matrix rows, so it reads the vectors once for all of them; no barriers.
// Workgroup: $LANES threads share a matrix row.
// Broadcast: as PerThread, but each of the first four threads of a subgroup (and of every four after them) reads four
// different values of the vectors and broadcasts them, so no thread may leave the loop early.
// EXPERT: group z is one chosen (token, expert) pair; the slot table gives the expert's matrix.
#include product

fn store(row: u32, vector: u32, sum: f32) {
    let at = vector * params.y_stride + params.y_offset + row;
    var value = sum;
#if BIAS
    value += bias[row];
#endif
    if (params.add != 0u) { value += y[at]; }
    y[at] = value;
}

#if STRATEGY == Workgroup
var<workgroup> partial: array<f32, $PARTIALS>;
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
#if BROADCAST
        @builtin(subgroup_invocation_id) in_subgroup: u32,
#endif
        @builtin(num_workgroups) groups: vec3<u32>) {
    let tile = group.x + group.y * groups.x;
#if STRATEGY == Workgroup
    let lane = local % $LANESu;
    let step = $LANESu;
    let row_0 = tile * ($THREADSu / $LANESu) + local / $LANESu;
#else
    let lane = 0u;
    let step = 1u;
#repeat o $OUT
    let row_$o = (tile * $OUTu + $ou) * $THREADSu + local;
#end
#endif
#repeat o $OUT
    var base_$o = min(row_$o, params.rows - 1u) * params.row_bytes;
#end
#if STRATEGY == Workgroup
    var live = row_0 < params.rows;
#else
    var live = true;
#endif
#if EXPERT
    let pair = group.z;
    let expert = chosen[pair];
    var slot = 0xffffffffu;
    if (expert < params.experts) { slot = slots[expert]; }
    live = live && slot >= params.slot_first && slot - params.slot_first < params.slot_count;
    if (live) {
#repeat o $OUT
        base_$o += (slot - params.slot_first) * params.expert_bytes;
#end
    }
    var at_0 = pair * params.x_stride;
    if (params.by_pair == 0u) { at_0 = (pair / params.used) * params.x_stride; }
#else
    let first = group.z * $ROWSu;
#repeat r $ROWS
    let at_$r = min(first + $ru, params.n - 1u) * params.x_stride;
#end
#endif
#repeat r $ROWS
#repeat o $OUT
    var acc_$r_$o = vec4<f32>(0.0);
#end
#end
    if (live) {
        for (var i = lane; i < params.chunks; i += step) {
#repeat o $OUT
            let w_$o = fetch16(base_$o, i);
#end
#repeat r $ROWS
#if BROADCAST
            let x_$r = x[at_$r + 4u * i + in_subgroup % 4u];
            let x_$r_a = subgroupBroadcast(x_$r, 0u);
            let x_$r_b = subgroupBroadcast(x_$r, 1u);
            let x_$r_c = subgroupBroadcast(x_$r, 2u);
            let x_$r_d = subgroupBroadcast(x_$r, 3u);
#else
            let x_$r_a = x[at_$r + 4u * i];
            let x_$r_b = x[at_$r + 4u * i + 1u];
            let x_$r_c = x[at_$r + 4u * i + 2u];
            let x_$r_d = x[at_$r + 4u * i + 3u];
#endif
#repeat o $OUT
            acc_$r_$o = fma(w_$o.d, x_$r_d, fma(w_$o.c, x_$r_c, fma(w_$o.b, x_$r_b, fma(w_$o.a, x_$r_a, acc_$r_$o))));
#end
#end
        }
    }
#if STRATEGY == Workgroup
#repeat r $ROWS
    partial[$ru * $THREADSu + local] = (acc_$r_0.x + acc_$r_0.y) + (acc_$r_0.z + acc_$r_0.w);
#end
    workgroupBarrier();
    if (live && lane == 0u) {
#repeat r $ROWS
        var sum_$r_0 = 0.0;
        for (var i = 0u; i < $LANESu; i++) { sum_$r_0 += partial[$ru * $THREADSu + local + i]; }
#end
#else
    if (live) {
#repeat r $ROWS
#repeat o $OUT
        let sum_$r_$o = (acc_$r_$o.x + acc_$r_$o.y) + (acc_$r_$o.z + acc_$r_$o.w);
#end
#end
#endif
#repeat o $OUT
        if (row_$o < params.rows) {
#if EXPERT
            store(row_$o, pair, sum_0_$o);
#else
#repeat r $ROWS
            if (first + $ru < params.n) { store(row_$o, first + $ru, sum_$r_$o); }
#end
#endif
        }
#end
    }
}
