// Matrix product for prompt chunks without barriers or workgroup memory: y[r] = W · x[r] (+ bias), or added to y. Every
// thread computes $VT vectors × $MT matrix rows by itself, so it dequantizes 16 weights once for $VT vectors and reads
// four values of a vector once for $MT rows.
// BROADCAST: each thread of a subgroup reads four different values of the vectors and broadcasts them: $A_READ vectors
// per read. Threads past the last row take part too.
// Each element is one chain of `fma` over its columns in ascending order, as in `matmul.wgsl`: the same bits.
#include product

fn store(at: u32, row: u32, sum: f32) {
    if (row >= params.rows) { return; }
    var value = sum;
#if BIAS
    value += bias[row];
#endif
    if (params.add != 0u) { value += y[at + row]; }
    y[at + row] = value;
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
#if BROADCAST
        @builtin(subgroup_invocation_id) lane: u32,
#endif
        @builtin(num_workgroups) groups: vec3<u32>) {
    let first_row = $ROWSu * (group.x + group.y * groups.x) + local;
#if GROUPED
    // x: first pair in the list, y: number of pairs, z: slot of the expert.
    let tile = tiles[group.z];
    if (tile.y == 0u || tile.z < params.slot_first || tile.z - params.slot_first >= params.slot_count) { return; }
    let first = tile.x;
    let last = tile.x + tile.y - 1u;
    let expert = (tile.z - params.slot_first) * params.expert_bytes;
#else
    let first = $VECTORSu * group.z;
    let last = params.n - 1u;
    let expert = 0u;
#endif
#repeat o $MT
    let base_$o = expert + min(first_row + $ou * $THREADSu, params.rows - 1u) * params.row_bytes;
#end
    // Where this thread reads: a vector's quads of four columns, or one of those quads for its whole subgroup.
#repeat j $READS
#if BROADCAST
    let vector_$j = min(first + $ju * $A_READu + lane / 4u, last);
#else
    let vector_$j = min(first + $ju, last);
#endif
#if GROUPED
    let pair_$j = pairs[vector_$j];
    var at_$j = select(pair_$j / params.used, pair_$j, params.by_pair != 0u) * params.x_stride;
#else
    var at_$j = vector_$j * params.x_stride;
#endif
#if BROADCAST
    at_$j += lane % 4u;
#endif
#repeat k $A_READ
#repeat o $MT
    var acc_$j_$k_$o = 0.0;
#end
#end
#end
    for (var chunk = 0u; chunk < params.chunks; chunk++) {
#repeat o $MT
        let w_$o = fetch16(base_$o, chunk);
#end
#repeat j $READS
#if BROADCAST
        let x_$j = x[at_$j];
#endif
#repeat k $A_READ
        {
#if BROADCAST
            let va = subgroupBroadcast(x_$j, $ku * 4u);
            let vb = subgroupBroadcast(x_$j, $ku * 4u + 1u);
            let vc = subgroupBroadcast(x_$j, $ku * 4u + 2u);
            let vd = subgroupBroadcast(x_$j, $ku * 4u + 3u);
#else
            let va = x[at_$j];
            let vb = x[at_$j + 1u];
            let vc = x[at_$j + 2u];
            let vd = x[at_$j + 3u];
#endif
#repeat o $MT
            acc_$j_$k_$o = fma(w_$o.a.w, va.w, fma(w_$o.a.z, va.z, fma(w_$o.a.y, va.y, fma(w_$o.a.x, va.x, acc_$j_$k_$o))));
            acc_$j_$k_$o = fma(w_$o.b.w, vb.w, fma(w_$o.b.z, vb.z, fma(w_$o.b.y, vb.y, fma(w_$o.b.x, vb.x, acc_$j_$k_$o))));
            acc_$j_$k_$o = fma(w_$o.c.w, vc.w, fma(w_$o.c.z, vc.z, fma(w_$o.c.y, vc.y, fma(w_$o.c.x, vc.x, acc_$j_$k_$o))));
            acc_$j_$k_$o = fma(w_$o.d.w, vd.w, fma(w_$o.d.z, vd.z, fma(w_$o.d.y, vd.y, fma(w_$o.d.x, vd.x, acc_$j_$k_$o))));
#end
        }
#end
        at_$j += 4u;
#end
    }
#repeat j $READS
#repeat k $A_READ
    if (first + $ju * $A_READu + $ku <= last) {
#if GROUPED
        let to = pairs[first + $ju * $A_READu + $ku] * params.y_stride + params.y_offset;
#else
        let to = (first + $ju * $A_READu + $ku) * params.y_stride + params.y_offset;
#endif
#repeat o $MT
        store(to, first_row + $ou * $THREADSu, acc_$j_$k_$o);
#end
    }
#end
#end
}
