// Tiled matrix product for prompt chunks by the device's matrix units: y[r] = W · x[r] (+ bias), or added to y. A
// workgroup computes a tile of $VECTORS vectors × $ROWS matrix rows, each subgroup of 32 threads $FV × $FR fragments of
// 16 × 16 of it. Each step brings $STEP columns into workgroup memory as half floats, the weights dequantized once, and
// loads the next step's values while the units multiply. They sum in 32-bit floats, 16 columns at a time in ascending
// order: all tiles give the same bits.
// BUFFERS: with two of them, one barrier a step is enough.
enable f16;
enable wgpu_cooperative_matrix;
#include product
#if WIDE
#include matrix_q4_k
#else
#include matrix_any
#endif

// Half floats of a vector (or row) come in quads. Two more quads keep the rows of a fragment in different banks.
const QUADS = $STEPu / 4u;
const STRIDE = QUADS + 2u;
const LEFT = $VECTORSu * STRIDE;
const RIGHT = $ROWSu * STRIDE;
var<workgroup> left: array<vec4<f16>, $BUFFERSu * LEFT>;
var<workgroup> right: array<vec4<f16>, $BUFFERSu * RIGHT>;
// A fragment of each subgroup on its way out.
var<workgroup> sums: array<f32, $SUBGROUPSu * 256u>;
#if GROUPED
var<workgroup> shared_tile: vec4<u32>;
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let first_row = $ROWSu * (group.x + group.y * groups.x);
#if GROUPED
    // x: first pair in the list, y: number of pairs, z: slot of the expert. naga must see that all threads agree.
    if (local == 0u) { shared_tile = tiles[group.z]; }
    let tile = workgroupUniformLoad(&shared_tile);
    let first = tile.x;
    let last = tile.x + tile.y - 1u;
    let expert = (tile.z - params.slot_first) * params.expert_bytes;
#else
    let first = $VECTORSu * group.z;
    let last = params.n - 1u;
    let expert = 0u;
#endif
#if GROUPED
    // Neither `return` nor `&&`: naga takes them for control flow in which threads may differ, and refuses matrix units.
    let slot = tile.z - params.slot_first;
    if ((tile.y != 0u) & (tile.z >= params.slot_first) & (slot < params.slot_count)) {
#else
    {
#endif
        let subgroup = local / 32u;
        let lane = local % 32u;
        let my_vector = (subgroup / $ALONGu) * ($FVu * 16u);
        let my_row = (subgroup % $ALONGu) * ($FRu * 16u);
        // What this thread loads: part of a step's columns of $WLOADS matrix rows, and a quad of $XLOADS vectors.
        let part = local % PARTS;
        let line = local / PARTS;
        let right_to = line * STRIDE + 4u * part;
#repeat l $WLOADS
        let row_$l = expert + min(first_row + line + $lu * ($THREADSu / PARTS), params.rows - 1u) * params.row_bytes;
#end
        let quad = local % QUADS;
        let column = local / QUADS;
        let left_to = column * STRIDE + quad;
#repeat l $XLOADS
        let vector_$l = min(first + column + $lu * ($THREADSu / QUADS), last);
#if GROUPED
        let pair_$l = pairs[vector_$l];
        let base_$l = select(pair_$l / params.used, pair_$l, params.by_pair != 0u) * params.x_stride + quad;
#else
        let base_$l = vector_$l * params.x_stride + quad;
#endif
        var x_$l = x[base_$l];
#end
#repeat i $FV
#repeat h $FR
        var acc_$i_$h = coop_mat16x16<f32, C>();
#end
#end
        let steps = (params.chunks * 16u + $STEPu - 1u) / $STEPu;
#repeat l $WLOADS
        var w_$l = dequantized(fetched(row_$l, 0u, part), 0u);
#end
        for (var step = 0u; step < steps; step++) {
#if BUFFERS == 2
            let left_at = (step & 1u) * LEFT;
            let right_at = (step & 1u) * RIGHT;
#else
            const left_at = 0u;
            const right_at = 0u;
            workgroupBarrier();
#endif
#repeat l $WLOADS
#repeat q $WQUADS
            right[right_at + right_to + $lu * ($THREADSu / PARTS) * STRIDE + place($qu)] = w_$l.q$q;
#end
#end
#repeat l $XLOADS
            left[left_at + left_to + $lu * ($THREADSu / QUADS) * STRIDE] = x_$l;
#end
            workgroupBarrier();
            let next = min(step + 1u, steps - 1u);
#repeat l $WLOADS
            let raw_$l = fetched(row_$l, next, part);
#end
#repeat l $XLOADS
            x_$l = x[base_$l + next * QUADS];
#end
#repeat k $CHUNKS
            {
#repeat h $FR
                let b_$h = coopLoad<coop_mat16x16<f16, B>>(&right[right_at + (my_row + 16u * $hu) * STRIDE + 4u * $ku], STRIDE);
#end
#repeat i $FV
                let a_$i = coopLoadT<coop_mat16x16<f16, A>>(&left[left_at + (my_vector + 16u * $iu) * STRIDE + 4u * $ku], STRIDE);
#repeat h $FR
                acc_$i_$h = coopMultiplyAdd(a_$i, b_$h, acc_$i_$h);
#end
#end
            }
#end
#repeat l $WLOADS
            w_$l = dequantized(raw_$l, next);
#end
        }
#repeat i $FV
#repeat h $FR
        {
            workgroupBarrier();
            coopStoreT(acc_$i_$h, &sums[subgroup * 256u], 16u);
            workgroupBarrier();
            let row = first_row + my_row + 16u * $hu + lane % 16u;
            for (var e = lane / 16u; e < 16u; e += 2u) {
                let vector = first + my_vector + 16u * $iu + e;
                if (vector <= last && row < params.rows) {
#if GROUPED
                    let pair = pairs[vector];
                    let input = select(pair / params.used, pair, params.by_pair != 0u);
                    let at = pair * params.y_stride + params.y_offset;
#else
                    let input = vector;
                    let at = vector * params.y_stride + params.y_offset;
#endif
                    // Beyond all exponents of floats: the vector has a value that is not finite.
                    let exponent = i32(x[input * params.x_stride + params.x_stride - 2u].x);
                    let scale = bitcast<f32>(select(u32(127 + exponent) << 23u, 0x7fc00000u, exponent > 127));
                    var value = sums[subgroup * 256u + e * 16u + lane % 16u] * scale;
#if BIAS
                    value += bias[row];
#endif
                    if (params.add != 0u) { value += y[at + row]; }
                    y[at + row] = value;
                }
            }
        }
#end
#end
    }
}
