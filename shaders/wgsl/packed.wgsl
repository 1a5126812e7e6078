// Tiled matrix product of quantized weights and quantized vectors for prompt chunks: y[r] = W · x[r] (+ bias), or added
// to y. A workgroup computes a tile of $VECTORS vectors × $ROWS matrix rows, each thread $VT × $MT of it. Each step
// brings the 32 columns that share a scale into workgroup memory as signed bytes; their products are summed as integers,
// which is exact, and one or two `fma` add them to the element. So all tiles give the same bits. The words of the next
// step are on their way while this one is computed, and unpacked after it.
// BUFFERS: with two of them, one barrier a step is enough.
// SOME_ROWS, SOME_VECTORS: fewer threads than all load a matrix row's or a vector's columns.
#include product
#include grid

// In every array the innermost index is the thread's place in the tile and the others are constants but for the buffer:
// compilers bound an index that they do not know, and so they do it once and not in every read.
// First the 16 first columns, then the next 16, of a thread's first vector (matrix row), then of its second.
var<workgroup> left: array<array<array<vec4<u32>, $TYu>, 2u * $VTu>, $BUFFERSu>;
var<workgroup> right: array<array<array<vec4<u32>, $TXu>, 2u * $MTu>, $BUFFERSu>;
// Scales, and scale · sum of each vector; scales, and scales of the second 16 or what every value is less.
var<workgroup> left_scales: array<array<array<array<f32, 2>, $TYu>, $VTu>, $BUFFERSu>;
var<workgroup> right_scales: array<array<array<array<f32, 2>, $TXu>, $MTu>, $BUFFERSu>;

#include dots

fn dot16(sum: i32, a: vec4<u32>, b: vec4<u32>) -> i32 {
    return sum + dot4(a.x, b.x) + dot4(a.y, b.y) + dot4(a.z, b.z) + dot4(a.w, b.w);
}

fn exact(n: vec4<i32>) -> vec4<f32> { return bitcast<vec4<f32>>(n) - vec4<f32>(12582912.0); }

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
    let count = tile.y;
#else
    let first = $VECTORSu * group.z;
    let last = params.n - 1u;
    let expert = 0u;
#endif
    // What this thread loads: 16 columns of matrix rows and of vectors, with one of their two numbers each.
    let half = local % 2u;
    let line = local / 2u;
#repeat l $ROW_LOADS
    let to_row_$l = line + $lu * ($THREADSu / 2u);
    let row_$l = expert + min(first_row + to_row_$l, params.rows - 1u) * params.row_bytes;
    var w_$l: Words;
#end
#repeat l $VECTOR_LOADS
    let to_vector_$l = line + $lu * ($THREADSu / 2u);
    let vector_$l = min(first + to_vector_$l, last);
#if GROUPED
    let pair_$l = pairs[vector_$l];
    let base_$l = select(pair_$l / params.used, pair_$l, params.by_pair != 0u) * params.x_stride;
#else
    let base_$l = vector_$l * params.x_stride;
#endif
    let scales_$l = base_$l + params.chunks;
    var v_$l = vec4<u32>(0u);
    var e_$l = 0u;
#end
    let at = place(local);
    let tx = at.x;
    let ty = at.y;
#repeat i $VT
#repeat h $MQ
    var acc_$i_$h = vec4<f32>(0.0);
#end
#end
    let blocks = params.chunks / 2u;
#if SOME_ROWS
    if (local < 2u * $ROWSu)
#endif
    {
#repeat l $ROW_LOADS
        w_$l = words16(row_$l, half);
#end
    }
#if SOME_VECTORS
    if (local < 2u * $VECTORSu)
#endif
    {
#repeat l $VECTOR_LOADS
        v_$l = x[base_$l + half];
        e_$l = x[scales_$l][half];
#end
    }
    for (var block = 0u; block < blocks; block++) {
#if BUFFERS == 2
        let buffer = block & 1u;
#else
        const buffer = 0u;
        workgroupBarrier();
#endif
#if SOME_ROWS
        if (local < 2u * $ROWSu)
#endif
        {
#repeat l $ROW_LOADS
            let p_$l = pack16(w_$l, row_$l, 2u * block + half);
            right[buffer][2u * (to_row_$l / $TXu) + half][to_row_$l % $TXu] = p_$l.q;
            right_scales[buffer][to_row_$l / $TXu][to_row_$l % $TXu][half] = p_$l.s;
#end
        }
#if SOME_VECTORS
        if (local < 2u * $VECTORSu)
#endif
        {
#repeat l $VECTOR_LOADS
            left[buffer][2u * (to_vector_$l / $TYu) + half][to_vector_$l % $TYu] = v_$l;
            left_scales[buffer][to_vector_$l / $TYu][to_vector_$l % $TYu][half] = bitcast<f32>(e_$l);
#end
        }
        workgroupBarrier();
        let next = min(block + 1u, blocks - 1u);
#if SOME_ROWS
        if (local < 2u * $ROWSu)
#endif
        {
#repeat l $ROW_LOADS
            w_$l = words16(row_$l, 2u * next + half);
#end
        }
#if SOME_VECTORS
        if (local < 2u * $VECTORSu)
#endif
        {
#repeat l $VECTOR_LOADS
            v_$l = x[base_$l + 2u * next + half];
            e_$l = x[scales_$l + (next >> 1u)][2u * (next & 1u) + half];
#end
        }
#repeat h $MQ
        {
#repeat b 4
            let a_$b = right[buffer][2u * (4u * $hu + $bu)][tx];
            let b_$b = right[buffer][2u * (4u * $hu + $bu) + 1u][tx];
#end
            let d = vec4<f32>(right_scales[buffer][4u * $hu][tx][0], right_scales[buffer][4u * $hu + 1u][tx][0],
                              right_scales[buffer][4u * $hu + 2u][tx][0], right_scales[buffer][4u * $hu + 3u][tx][0]);
#if SECOND
            let m = vec4<f32>(right_scales[buffer][4u * $hu][tx][1], right_scales[buffer][4u * $hu + 1u][tx][1],
                              right_scales[buffer][4u * $hu + 2u][tx][1], right_scales[buffer][4u * $hu + 3u][tx][1]);
#endif
#repeat i $VT
#if GROUPED
            // Few vectors may share an expert: skip the missing ones.
            if ($iu * $TYu < count)
#endif
            {
                let p = left[buffer][2u * $iu][ty];
                let q = left[buffer][2u * $iu + 1u][ty];
                let s = vec4<f32>(left_scales[buffer][$i][ty][0]);
                let one = vec4<i32>(dot16(ZERO, a_0, p), dot16(ZERO, a_1, p), dot16(ZERO, a_2, p), dot16(ZERO, a_3, p));
#if HALVES
                let two = vec4<i32>(dot16(ZERO, b_0, q), dot16(ZERO, b_1, q), dot16(ZERO, b_2, q), dot16(ZERO, b_3, q));
                acc_$i_$h = fma(d * s, exact(one), acc_$i_$h);
                acc_$i_$h = fma(m * s, exact(two), acc_$i_$h);
#else
                let all = vec4<i32>(dot16(one.x, b_0, q), dot16(one.y, b_1, q), dot16(one.z, b_2, q), dot16(one.w, b_3, q));
                acc_$i_$h = fma(d * s, exact(all), acc_$i_$h);
#endif
#if LEAST
                acc_$i_$h = fma(-m, vec4<f32>(left_scales[buffer][$i][ty][1]), acc_$i_$h);
#endif
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
