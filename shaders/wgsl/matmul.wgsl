// Tiled matrix product for prompt chunks: y[r] = W · x[r] (+ bias), or added to y. A workgroup computes a tile of
// $VECTORS vectors × $ROWS matrix rows, each thread $VT × $MT of it. Each step brings 16 columns into workgroup memory,
// with the weights dequantized once, and loads the next step's values while it multiplies this step's.
// Each element is one chain of `fma` over its columns in ascending order, whatever the tile: all sizes give the same
// bits.
#include product

// Each element holds four columns of a vector or a matrix row. The stride between columns of elements is the number of
// vectors plus two, so that threads storing four neighbours use different banks.
const LEFT = $VECTORSu + 2u;
var<workgroup> left: array<vec4<f32>, 4u * LEFT>;
var<workgroup> right: array<vec4<f32>, 4u * $ROWSu>;

fn quad(at: u32, col: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), x[at + min(col, params.x_stride - 1u)], vec4<bool>(col < params.x_stride));
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let first_row = $ROWSu * (group.x + group.y * groups.x);
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
    // What this thread loads: 16 columns of a matrix row, and four columns of $LOADS vectors.
    let load_row = local % $ROWSu;
    let row_base = expert + min(first_row + load_row, params.rows - 1u) * params.row_bytes;
    let load_quad = local % 4u;
    let load_vector = local / 4u;
#repeat l $LOADS
    let vector_$l = min(first + load_vector + $lu * ($THREADSu / 4u), last);
#if GROUPED
    let pair_$l = pairs[vector_$l];
    let base_$l = select(pair_$l / params.used, pair_$l, params.by_pair != 0u) * params.x_stride;
#else
    let base_$l = vector_$l * params.x_stride;
#endif
#end
    let tx = local % $TXu;
    let ty = local / $TXu;
#repeat i $VT
#repeat h $MQ
    var acc_$i_$h = vec4<f32>(0.0);
#end
#end
    var w = W16(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
    if (local < $ROWSu) { w = fetch16(row_base, 0u); }
#repeat l $LOADS
    var v_$l = quad(base_$l, load_quad);
#end
#if GROUPED
    // Few vectors may share an expert: skip the missing eighths of the tile.
    let count = tile.y;
#endif
    for (var chunk = 0u; chunk < params.chunks; chunk++) {
        workgroupBarrier();
        if (local < $ROWSu) {
            right[load_row] = w.a;
            right[load_row + $ROWSu] = w.b;
            right[load_row + 2u * $ROWSu] = w.c;
            right[load_row + 3u * $ROWSu] = w.d;
        }
#repeat l $LOADS
        left[load_quad * LEFT + load_vector + $lu * ($THREADSu / 4u)] = v_$l;
#end
        workgroupBarrier();
        let next = min(chunk + 1u, params.chunks - 1u);
        if (local < $ROWSu) { w = fetch16(row_base, next); }
#repeat l $LOADS
#if GROUPED
        if ($lu * ($THREADSu / 4u) < count) { v_$l = quad(base_$l, 4u * next + load_quad); }
#else
        v_$l = quad(base_$l, 4u * next + load_quad);
#endif
#end
#repeat u $UNROLLED
        for (var q = $uu * (4u / $UNROLLEDu); q < ($uu + 1u) * (4u / $UNROLLEDu); q++) {
#repeat h $MQ
            let r_$h_0 = right[q * $ROWSu + tx + 4u * $hu * $TXu];
            let r_$h_1 = right[q * $ROWSu + tx + (4u * $hu + 1u) * $TXu];
            let r_$h_2 = right[q * $ROWSu + tx + (4u * $hu + 2u) * $TXu];
            let r_$h_3 = right[q * $ROWSu + tx + (4u * $hu + 3u) * $TXu];
            let a_$h = vec4<f32>(r_$h_0.x, r_$h_1.x, r_$h_2.x, r_$h_3.x);
            let b_$h = vec4<f32>(r_$h_0.y, r_$h_1.y, r_$h_2.y, r_$h_3.y);
            let c_$h = vec4<f32>(r_$h_0.z, r_$h_1.z, r_$h_2.z, r_$h_3.z);
            let d_$h = vec4<f32>(r_$h_0.w, r_$h_1.w, r_$h_2.w, r_$h_3.w);
#end
#repeat i $VT
#if GROUPED
            if ($iu * $TYu < count)
#endif
            {
                let l = left[q * LEFT + ty + $iu * $TYu];
#repeat h $MQ
                acc_$i_$h = fma(vec4<f32>(l.x), a_$h, acc_$i_$h);
                acc_$i_$h = fma(vec4<f32>(l.y), b_$h, acc_$i_$h);
                acc_$i_$h = fma(vec4<f32>(l.z), c_$h, acc_$i_$h);
                acc_$i_$h = fma(vec4<f32>(l.w), d_$h, acc_$i_$h);
#end
            }
#end
        }
#end
    }
#repeat i $VT
    if (first + ty + $iu * $TYu <= last) {
#if GROUPED
        let at = pairs[first + ty + $iu * $TYu] * params.y_stride + params.y_offset;
#else
        let at = (first + ty + $iu * $TYu) * params.y_stride + params.y_offset;
#endif
#repeat h $MQ
#repeat b 4
        {
            let row = first_row + tx + (4u * $hu + $bu) * $TXu;
            if (row < params.rows) {
                var value = acc_$i_$h[$b];
#if BIAS
                value += bias[row];
#endif
                if (params.add != 0u) { value += y[at + row]; }
                y[at + row] = value;
            }
        }
#end
#end
    }
#end
}
