// Decode: a quantized matrix times a few vectors, fused with the steps before and after. A team of 32 threads shares
// $PAIRS results at a time, so it reads a vector once for all of them; a workgroup has several teams. A team halves its
// sums through workgroup memory until $SHUFFLE are left, and adds those with subgroup shuffles: the same tree, so the
// same bits.
// STAGED: with one vector, the workgroup brings it into workgroup memory for all its teams, 1024 values at a time and
// multiplied by the gain, while the weights of the next 1024 are on their way. Several vectors are read where they lie.
// NORM: RMS-normalizes the vectors on the way: y = W · (x ∘ gain) / rms(x). Thread by thread, 256 sums of squares.
// Up to three matrices in one binding (query, key, value); BIAS: with a bias each. Without a norm optionally added to y.
// SCORED: adds to y, times the sigmoid of the vector's score.
// GATED: a result combines two matrix rows, one of gate and one of up, and stores activation(gate) · up.
// EXPERT: group z is one chosen (token, expert) pair, and `used` pairs share a vector: those of a token, or none. BIAS:
// with the biases of its expert.
// Every sum has a fixed order and explicit `fma`, so $ROWS vectors at a time give the bits of one, in every variant.
#include fused_bindings

#if WIDE
#include wide_q4_k
#else
#include weights
#if FORMAT == Q6_K
#include wide_q6_k
#else
#if FORMAT == MXFP4
#include wide_mxfp4
#else
#include sixteen
#endif
#endif
#endif
#if GATED
#include activation
#endif

const TEAM = 32u;
// Quads of a vector that the teams work through at a time.
const CHUNK = 256u;
#if STAGED
// The chunk in use, and the next one.
var<workgroup> staged: array<vec4<f32>, 512>;
#if SUMS
// The sum of each quad, for formats with minimums.
var<workgroup> staged_sums: array<f32, 512>;
#endif
#endif
#include fused_parts

#if SUMS
#if NORM
// From the factors, because a compiler may contract the addition of a product where it sees one.
fn quad_sum(v: vec4<f32>, gain: vec4<f32>) -> f32 {
    return fma(v.x, gain.x, fma(v.y, gain.y, fma(v.z, gain.z, v.w * gain.w)));
}
#else
fn quad_sum(v: vec4<f32>) -> f32 { return across(v); }
#endif
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
#include fused_begin
#if STAGED
#repeat u $UNITS
    let unit_$u = lane + $uu * TEAM;
#repeat p $PAIRS
#repeat h $HALVES
    var w_$p_$h_$u = fetch(base_$p_$h, min(unit_$u, params.units - 1u));
#end
#end
#end
#repeat j $LOADS
    {
        let q = local + $ju * $THREADSu;
        var v = input(at_0, q);
#if NORM
        let g = gain_at(q);
#if SUMS
        staged_sums[sum_at(q)] = quad_sum(v, g);
#endif
        square_0_$j = fma(v, v, square_0_$j);
        v = v * g;
#else
#if SUMS
        staged_sums[sum_at(q)] = quad_sum(v);
#endif
#endif
        staged[staged_at(q)] = prepared(q, v);
    }
#end
    workgroupBarrier();
    for (var c = 0u; c < chunks; c++) {
        let here = (c & 1u) * CHUNK;
        // After the last chunk: zeros and any weights, without a branch.
        let next = (c + 1u) * CHUNK + local;
        let next_unit = (c + 1u) * ($UNITSu * TEAM);
#repeat j $LOADS
        var v_$j = input(at_0, next + $ju * $THREADSu);
#if NORM
        let gain_$j = gain_at(next + $ju * $THREADSu);
#endif
#end
#repeat u $UNITS
#repeat p $PAIRS
#repeat h $HALVES
        let later_$p_$h_$u = fetch(base_$p_$h, min(next_unit + unit_$u, params.units - 1u));
#end
#end
#end
#repeat u $UNITS
        {
            // Units past the end of a row meet zeros.
            let v = Values(
#repeat k $QUADS
                staged[here + staged_at(quad(unit_$u, $ku))],
#end
            );
#if SUMS
            let s = sums_of(
#repeat k $QUADS
                staged_sums[here + sum_at(quad(unit_$u, $ku))],
#end
            );
#else
            let s = vec2<f32>(0.0);
#endif
#repeat p $PAIRS
#repeat h $HALVES
            sum_0_$p_$h = product(w_$p_$h_$u, base_$p_$h, unit_$u, v, s, sum_0_$p_$h);
#end
#end
        }
#end
#repeat j $LOADS
#if NORM
#if SUMS
        staged_sums[(CHUNK - here) + sum_at(local + $ju * $THREADSu)] = quad_sum(v_$j, gain_$j);
#endif
        square_0_$j = fma(v_$j, v_$j, square_0_$j);
        v_$j = v_$j * gain_$j;
#else
#if SUMS
        staged_sums[(CHUNK - here) + sum_at(local + $ju * $THREADSu)] = quad_sum(v_$j);
#endif
#endif
        staged[(CHUNK - here) + staged_at(local + $ju * $THREADSu)] = prepared(local + $ju * $THREADSu, v_$j);
#end
        workgroupBarrier();
#repeat u $UNITS
#repeat p $PAIRS
#repeat h $HALVES
        w_$p_$h_$u = later_$p_$h_$u;
#end
#end
#end
    }
#else
#if NORM
    for (var c = 0u; c < params.x_stride; c += CHUNK) {
#repeat j $LOADS
#repeat r $ROWS
        {
            let v = input(at_$r, c + $ju * $THREADSu + local);
            square_$r_$j = fma(v, v, square_$r_$j);
        }
#end
#end
    }
#endif
    if (live) {
        for (var i = lane; i < params.units; i += TEAM) {
#repeat p $PAIRS
#repeat h $HALVES
            let w_$p_$h = fetch(base_$p_$h, i);
#end
#end
#repeat k $QUADS
            let q_$k = quad(i, $ku);
#if NORM
            let gain_$k = gain_at(q_$k);
#endif
#end
#repeat r $ROWS
            let v_$r = Values(
#repeat k $QUADS
#if NORM
                prepared(q_$k, input(at_$r, q_$k) * gain_$k),
#else
                prepared(q_$k, input(at_$r, q_$k)),
#endif
#end
            );
#if SUMS
            let s_$r = sums_of(
#repeat k $QUADS
#if NORM
                quad_sum(input(at_$r, q_$k), gain_$k),
#else
                quad_sum(input(at_$r, q_$k)),
#endif
#end
            );
#else
            let s_$r = vec2<f32>(0.0);
#endif
#repeat p $PAIRS
#repeat h $HALVES
            sum_$r_$p_$h = product(w_$p_$h, base_$p_$h, i, v_$r, s_$r, sum_$r_$p_$h);
#end
#end
#end
        }
    }
#endif
#if NORM
#repeat r $ROWS
#repeat j $LOADS
    slots_of_squares[$ru * CHUNK + $ju * $THREADSu + local] = across(square_$r_$j);
#end
#end
#endif
#include fused_end
