// Tiled matrix product of quantized weights and quantized vectors for prompt chunks: y[r] = W · x[r] (+ bias), or added
// to y. A workgroup computes a tile of $VECTORS vectors × $ROWS matrix rows, each thread $VT × $MT of it. Each step
// brings the 32 columns that share a scale into workgroup memory as signed bytes; their products are summed as integers,
// which is exact, and one or two `fma` add them to the element. So all tiles give the same bits.
// BUFFERS: with two of them, one barrier a step is enough.
#include product

const LEFT = $VECTORSu + 4u;
const RIGHT = $ROWSu + 4u;
// The first 16 columns of all vectors (matrix rows), then the next 16. Four more keep them in different banks.
var<workgroup> left: array<vec4<u32>, $BUFFERSu * 2u * LEFT>;
var<workgroup> right: array<vec4<u32>, $BUFFERSu * 2u * RIGHT>;
// Scales, then scale · sum of each vector; scales, then scales of the second 16 or what every value is less.
var<workgroup> left_scales: array<f32, $BUFFERSu * 2u * LEFT>;
var<workgroup> right_scales: array<f32, $BUFFERSu * 2u * RIGHT>;

#if SHIFTS
fn dot4(a: u32, b: u32) -> i32 {
    let shift = vec4<u32>(24u, 16u, 8u, 0u);
    let up = vec4<u32>(24u);
    return dot(bitcast<vec4<i32>>(vec4<u32>(a) << shift) >> up, bitcast<vec4<i32>>(vec4<u32>(b) << shift) >> up);
}
#else
fn dot4(a: u32, b: u32) -> i32 { return dot4I8Packed(a, b); }
#endif

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4(a.x, b.x) + dot4(a.y, b.y) + dot4(a.z, b.z) + dot4(a.w, b.w);
}

// Integers below 2^22 as floats. Some GPUs convert slowly, so this goes by way of the bits of 1.5 · 2^23 + n.
fn exact(n: vec4<i32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(n + vec4<i32>(0x4b400000)) - vec4<f32>(12582912.0);
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
    let count = tile.y;
#else
    let first = $VECTORSu * group.z;
    let last = params.n - 1u;
    let expert = 0u;
#endif
    // What this thread loads: 16 columns of a matrix row, and 16 of a vector, with one of their two numbers each.
    let half = local % 2u;
    let row_base = expert + min(first_row + local / 2u, params.rows - 1u) * params.row_bytes;
    let vector = min(first + local / 2u, last);
#if GROUPED
    let pair = pairs[vector];
    let base = select(pair / params.used, pair, params.by_pair != 0u) * params.x_stride;
#else
    let base = vector * params.x_stride;
#endif
    let scales = base + params.chunks;
    let right_to = half * RIGHT + local / 2u;
    let left_to = half * LEFT + local / 2u;
    let tx = local % $TXu;
    let ty = local / $TXu;
#repeat i $VT
#repeat h $MQ
    var acc_$i_$h = vec4<f32>(0.0);
#end
#end
    let blocks = params.chunks / 2u;
    var w = P16(vec4<u32>(0u), 0.0);
    var v = vec4<u32>(0u);
    var e = 0.0;
    if (local < 2u * $ROWSu) { w = pack16(row_base, half); }
    if (local < 2u * $VECTORSu) {
        v = x[base + half];
        e = bitcast<f32>(x[scales][half]);
    }
    for (var block = 0u; block < blocks; block++) {
#if BUFFERS == 2
        let left_at = (block & 1u) * 2u * LEFT;
        let right_at = (block & 1u) * 2u * RIGHT;
#else
        const left_at = 0u;
        const right_at = 0u;
        workgroupBarrier();
#endif
        if (local < 2u * $ROWSu) {
            right[right_at + right_to] = w.q;
            right_scales[right_at + right_to] = w.s;
        }
        if (local < 2u * $VECTORSu) {
            left[left_at + left_to] = v;
            left_scales[left_at + left_to] = e;
        }
        workgroupBarrier();
        let next = min(block + 1u, blocks - 1u);
        if (local < 2u * $ROWSu) { w = pack16(row_base, 2u * next + half); }
        if (local < 2u * $VECTORSu) {
            v = x[base + 2u * next + half];
            e = bitcast<f32>(x[scales + (next >> 1u)][2u * (next & 1u) + half]);
        }
#repeat h $MQ
#repeat b 4
        let a_$h_$b = right[right_at + tx + (4u * $hu + $bu) * $TXu];
        let b_$h_$b = right[right_at + RIGHT + tx + (4u * $hu + $bu) * $TXu];
        let d_$h_$b = right_scales[right_at + tx + (4u * $hu + $bu) * $TXu];
#if SECOND
        let m_$h_$b = right_scales[right_at + RIGHT + tx + (4u * $hu + $bu) * $TXu];
#endif
#end
        let d_$h = vec4<f32>(d_$h_0, d_$h_1, d_$h_2, d_$h_3);
#if SECOND
        let m_$h = vec4<f32>(m_$h_0, m_$h_1, m_$h_2, m_$h_3);
#endif
#end
#repeat i $VT
#if GROUPED
        // Few vectors may share an expert: skip the missing ones.
        if ($iu * $TYu < count)
#endif
        {
            let p = left[left_at + ty + $iu * $TYu];
            let q = left[left_at + LEFT + ty + $iu * $TYu];
            let s = vec4<f32>(left_scales[left_at + ty + $iu * $TYu]);
#if LEAST
            let t = vec4<f32>(left_scales[left_at + LEFT + ty + $iu * $TYu]);
#endif
#repeat h $MQ
            {
                let one = vec4<i32>(dot16(a_$h_0, p), dot16(a_$h_1, p), dot16(a_$h_2, p), dot16(a_$h_3, p));
                let two = vec4<i32>(dot16(b_$h_0, q), dot16(b_$h_1, q), dot16(b_$h_2, q), dot16(b_$h_3, q));
#if HALVES
                acc_$i_$h = fma(d_$h * s, exact(one), acc_$i_$h);
                acc_$i_$h = fma(m_$h * s, exact(two), acc_$i_$h);
#else
                acc_$i_$h = fma(d_$h * s, exact(one + two), acc_$i_$h);
#endif
#if LEAST
                acc_$i_$h = fma(-m_$h, t, acc_$i_$h);
#endif
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
