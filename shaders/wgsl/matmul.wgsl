// Tiled matrix product for prompt chunks: y[r] = W · x[r] (+ bias), or added to y. A workgroup computes a tile of
// $VECTORS vectors × $ROWS matrix rows, each thread $VT × $MT of it. Each step brings $CHUNKS × 16 columns into workgroup memory,
// with the weights dequantized once, and loads the next step's values while it multiplies this step's.
// Each element is one chain of `fma` over its columns in ascending order, whatever the tile: all sizes give the same
// bits.
#include product
#include grid

// Each element holds four columns of a vector or a matrix row. The innermost index is the thread's place in the tile, and
// the others are known where the loop is unrolled: compilers bound an index that they do not know, so they do it once
// and not in every read. Two more elements after each quad's vectors let threads that store four neighbours use
// different banks.
struct Left { vectors: array<array<vec4<f32>, $TYu>, $VTu>, apart: array<vec4<f32>, 2> }
var<workgroup> left: array<Left, 4u * $CHUNKSu>;
var<workgroup> right: array<array<array<vec4<f32>, $TXu>, $MTu>, 4u * $CHUNKSu>;

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
    // What this thread loads: 16 columns of $ROW_LOADS matrix rows, and four columns of $LOADS vectors.
#repeat l $ROW_LOADS
    let chunk_$l = (local + $lu * $THREADSu) % $CHUNKSu;
    let to_row_$l = (local + $lu * $THREADSu) / $CHUNKSu % $ROWSu;
    let row_$l = expert + min(first_row + to_row_$l, params.rows - 1u) * params.row_bytes;
#end
    let load_quad = local % (4u * $CHUNKSu);
    let load_vector = local / (4u * $CHUNKSu);
#repeat l $LOADS
    let to_$l = load_vector + $lu * ($THREADSu / (4u * $CHUNKSu));
    let vector_$l = min(first + to_$l, last);
#if GROUPED
    let pair_$l = pairs[vector_$l];
    let base_$l = select(pair_$l / params.used, pair_$l, params.by_pair != 0u) * params.x_stride;
#else
    let base_$l = vector_$l * params.x_stride;
#endif
#end
    let at = place(local);
    let tx = at.x;
    let ty = at.y;
#repeat i $VT
#repeat h $MQ
    var acc_$i_$h = vec4<f32>(0.0);
#end
#end
#repeat l $ROW_LOADS
    var w_$l = W16(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
    if (local < $CHUNKSu * $ROWSu) { w_$l = fetch16(row_$l, min(chunk_$l, params.chunks - 1u)); }
#end
#repeat l $LOADS
    var v_$l = quad(base_$l, load_quad);
#end
#if GROUPED
    // Few vectors may share an expert: skip the missing eighths of the tile.
    let count = tile.y;
#endif
    for (var chunk = 0u; chunk < params.chunks; chunk += $CHUNKSu) {
        workgroupBarrier();
        if (local < $CHUNKSu * $ROWSu) {
#repeat l $ROW_LOADS
            right[4u * chunk_$l][to_row_$l / $TXu][to_row_$l % $TXu] = w_$l.a;
            right[4u * chunk_$l + 1u][to_row_$l / $TXu][to_row_$l % $TXu] = w_$l.b;
            right[4u * chunk_$l + 2u][to_row_$l / $TXu][to_row_$l % $TXu] = w_$l.c;
            right[4u * chunk_$l + 3u][to_row_$l / $TXu][to_row_$l % $TXu] = w_$l.d;
#end
        }
#repeat l $LOADS
        left[load_quad].vectors[to_$l / $TYu][to_$l % $TYu] = v_$l;
#end
        workgroupBarrier();
        let next = chunk + $CHUNKSu;
#repeat l $ROW_LOADS
        if (local < $CHUNKSu * $ROWSu) { w_$l = fetch16(row_$l, min(next + chunk_$l, params.chunks - 1u)); }
#end
#repeat l $LOADS
#if GROUPED
        if ($lu * ($THREADSu / (4u * $CHUNKSu)) < count) { v_$l = quad(base_$l, 4u * next + load_quad); }
#else
        v_$l = quad(base_$l, 4u * next + load_quad);
#endif
#end
#repeat u $UNROLLED
#if UNROLLED == 4
        {
            const q = $uu;
#else
        for (var q = 0u; q < min(4u * $CHUNKSu, 4u * (params.chunks - chunk)); q++) {
#endif
#repeat h $MQ
            let r_$h_0 = right[q][4u * $hu][tx];
            let r_$h_1 = right[q][4u * $hu + 1u][tx];
            let r_$h_2 = right[q][4u * $hu + 2u][tx];
            let r_$h_3 = right[q][4u * $hu + 3u][tx];
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
                let l = left[q].vectors[$i][ty];
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
        let to = pairs[first + ty + $iu * $TYu] * params.y_stride + params.y_offset;
#else
        let to = (first + ty + $iu * $TYu) * params.y_stride + params.y_offset;
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
                if (params.add != 0u) { value += y[to + row]; }
                y[to + row] = value;
            }
        }
#end
#end
    }
#end
}
