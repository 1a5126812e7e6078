// Decode: a quantized matrix times a few vectors, fused with the steps before and after. A team of 32 threads shares
// $PAIRS results at a time, so it reads a vector once for all of them; a workgroup has several teams. A team halves its
// sums through workgroup memory until $SHUFFLE are left, and adds those with subgroup shuffles: the same tree, so the
// same bits.
// NORM: RMS-normalizes the vectors on the way: y = W · (x ∘ gain) / rms(x), summing the squares beside the products.
// Up to three matrices in one binding (query, key, value); BIAS: with a bias each; otherwise optionally added to y.
// GATED: a result combines two matrix rows, one of gate and one of up, and stores silu(gate) · up.
// EXPERT: group z is one chosen (token, expert) pair. SUM: the weighted sum over a token's experts, in router order.
// Every sum has a fixed order and explicit `fma`, so $ROWS vectors at a time give the bits of one, in every variant.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
#if WIDE
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
#else
@group(0) @binding(1) var<storage, read> weights: array<u32>;
#endif
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
#if NORM
@group(0) @binding(4) var<storage, read> gain: array<vec4<f32>>;
#if BIAS
@group(0) @binding(5) var<storage, read> bias: array<f32>;
#endif
#if EXPERT
@group(0) @binding(5) var<storage, read> slots: array<u32>;
@group(0) @binding(6) var<storage, read> chosen: array<u32>;
#endif
#else
#if SUM
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> chosen: array<u32>;
@group(0) @binding(6) var<storage, read> gates: array<f32>;
#endif
#endif

#if WIDE
#include wide_q4_k
#else
#include weights
#if FORMAT == Q6_K
#include wide_q6_k
#else

struct Unit { q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32> }

// A unit is 16 consecutive values of a row.
fn fetch(base: u32, i: u32) -> Unit {
    let w = fetch16(base, i);
    return Unit(w.a, w.b, w.c, w.d);
}
fn quad(i: u32, k: u32) -> u32 { return 4u * i + k; }
#endif
#endif

const TEAM = 32u;
#if SHARES
var<workgroup> sums: array<f32, $PARTIALS>;
#if NORM
var<workgroup> squares: array<f32, $VECTOR_PARTIALS>;
#endif
#endif

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Byte offset of a matrix row, where its result goes, and its bias.
struct Line { base: u32, y: u32, bias: u32 }

fn line(row: u32) -> Line {
    var at = Line(params.base_0, params.y_0, params.bias_0);
    var first = 0u;
    if (row >= params.end_1) {
        at = Line(params.base_2, params.y_2, params.bias_2);
        first = params.end_1;
    } else if (row >= params.end_0) {
        at = Line(params.base_1, params.y_1, params.bias_1);
        first = params.end_0;
    }
    let r = row - first;
    return Line(at.base + r * params.row_bytes, at.y + r, at.bias + r);
}

#if EXPERT
fn slot_of(pair: u32) -> u32 {
    let expert = chosen[pair];
    var slot = 0xffffffffu;
    if (expert < params.experts) { slot = slots[expert]; }
    return slot - params.slot_first;
}
#endif
#if SUM
fn slot_of(pair: u32) -> u32 {
    let expert = chosen[pair];
    var slot = 0xffffffffu;
    if (expert < params.experts) { slot = slots[expert]; }
    return slot - params.slot_first;
}
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = local % TEAM;
    let team = local / TEAM;
    let tile = group.x + group.y * groups.x;
#repeat p $PAIRS
    let row_$p = $PAIRSu * (tile * ($THREADSu / TEAM) + team) + $pu;
    let line_$p = line(min(row_$p, params.rows - 1u));
    var base_$p_0 = line_$p.base;
#if GATED
    var base_$p_1 = line_$p.base + params.up;
#endif
#end
    var live = row_0 < params.rows;
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    var acc_$r_$p_$h = vec4<f32>(0.0);
#end
#end
    var square_$r = vec4<f32>(0.0);
#end
#if SUM
    if (live) {
        for (var k = 0u; k < params.used; k++) {
            let pair = group.z * params.used + k;
            let slot = slot_of(pair);
            if (slot < params.slot_count) {
                let at = pair * params.x_stride;
#repeat p $PAIRS
                let expert_$p = base_$p_0 + slot * params.expert_bytes;
                var part_$p = vec4<f32>(0.0);
#end
                for (var i = lane; i < params.units; i += TEAM) {
#repeat p $PAIRS
                    let w_$p = fetch(expert_$p, i);
#end
#repeat k $QUADS
                    let x_$k = x[at + quad(i, $ku)];
#repeat p $PAIRS
                    part_$p = fma(w_$p.q$k, x_$k, part_$p);
#end
#end
                }
#repeat p $PAIRS
                acc_0_$p_0 = fma(vec4<f32>(gates[pair]), part_$p, acc_0_$p_0);
#end
            }
        }
    }
#else
#if EXPERT
    let slot = slot_of(group.z);
    live = live && slot < params.slot_count;
    if (live) {
#repeat p $PAIRS
#repeat h $HALVES
        base_$p_$h += slot * params.expert_bytes;
#end
#end
    }
    let first = group.z;
    let at_0 = (group.z / params.used) * params.x_stride;
#else
    let first = group.z * $ROWSu;
#repeat r $ROWS
    let at_$r = (params.x_first + min(first + $ru, params.n - 1u)) * params.x_stride;
#end
#endif
    if (live) {
        for (var i = lane; i < params.units; i += TEAM) {
#repeat p $PAIRS
#repeat h $HALVES
            let w_$p_$h = fetch(base_$p_$h, i);
#end
#end
#repeat k $QUADS
            let at_$k_quad = quad(i, $ku);
#if NORM
#if SHORT
            // A row may end inside a unit.
            let inside_$k = at_$k_quad < params.x_stride;
            let gain_$k = select(vec4<f32>(0.0), gain[at_$k_quad], vec4<bool>(inside_$k));
#else
            let gain_$k = gain[at_$k_quad];
#endif
#endif
#repeat r $ROWS
#if NORM
#if SHORT
            let x_$k_$r = select(vec4<f32>(0.0), x[at_$r + at_$k_quad], vec4<bool>(inside_$k));
#else
            let x_$k_$r = x[at_$r + at_$k_quad];
#endif
            square_$r = fma(x_$k_$r, x_$k_$r, square_$r);
            let v_$k_$r = x_$k_$r * gain_$k;
#else
            let v_$k_$r = x[at_$r + at_$k_quad];
#endif
#repeat p $PAIRS
#repeat h $HALVES
            acc_$r_$p_$h = fma(w_$p_$h.q$k, v_$k_$r, acc_$r_$p_$h);
#end
#end
#end
#end
        }
    }
#endif
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    var sum_$r_$p_$h = across(acc_$r_$p_$h);
#end
#end
#if NORM
    var squared_$r = across(square_$r);
#endif
#end
#if SHARES
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    sums[(($ru * $PAIRSu + $pu) * $HALVESu + $hu) * $THREADSu + local] = sum_$r_$p_$h;
#end
#end
#if NORM
    squares[$ru * $THREADSu + local] = squared_$r;
#endif
#end
    workgroupBarrier();
    for (var step = TEAM / 2u; step >= $SHUFFLEu; step = step >> 1u) {
        if (lane < step) {
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
            {
                let at = (($ru * $PAIRSu + $pu) * $HALVESu + $hu) * $THREADSu + local;
                sums[at] += sums[at + step];
            }
#end
#end
#if NORM
            squares[$ru * $THREADSu + local] += squares[$ru * $THREADSu + local + step];
#endif
#end
        }
        workgroupBarrier();
    }
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    sum_$r_$p_$h = sums[(($ru * $PAIRSu + $pu) * $HALVESu + $hu) * $THREADSu + local];
#end
#end
#if NORM
    squared_$r = squares[$ru * $THREADSu + local];
#endif
#end
#endif
#if SHUFFLES
    // The threads of a team are neighbours in a subgroup; the self-test proves it by comparing bits.
#repeat s $SHUFFLES
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    sum_$r_$p_$h += subgroupShuffleDown(sum_$r_$p_$h, $SHUFFLEu >> ($su + 1u));
#end
#end
#if NORM
    squared_$r += subgroupShuffleDown(squared_$r, $SHUFFLEu >> ($su + 1u));
#endif
#end
#end
#endif
    if (lane > 0u || !live) { return; }
#if SUM
    let at = group.z * params.y_stride;
#repeat p $PAIRS
    if (row_$p < params.rows) {
        if (params.add != 0u) { sum_0_$p_0 += y[at + line_$p.y]; }
        y[at + line_$p.y] = sum_0_$p_0;
    }
#end
#else
#repeat r $ROWS
    if (first + $ru < params.n) {
        let at = (first + $ru) * params.y_stride;
#if NORM
        let scale = 1.0 / sqrt(squared_$r / f32(4u * params.x_stride) + params.epsilon);
#else
        let scale = 1.0;
#endif
#repeat p $PAIRS
        if (row_$p < params.rows) {
#if GATED
            let g = sum_$r_$p_0 * scale;
            let u = sum_$r_$p_1 * scale;
            // Clamp the exponent: WGSL may assume that infinities do not occur.
            y[at + line_$p.y] = (g / (1.0 + exp(min(-g, 80.0)))) * u;
#else
#if BIAS
            y[at + line_$p.y] = fma(sum_$r_$p_0, scale, bias[line_$p.bias]);
#else
            if (params.add != 0u) {
                y[at + line_$p.y] = fma(sum_$r_$p_0, scale, y[at + line_$p.y]);
            } else {
                y[at + line_$p.y] = sum_$r_$p_0 * scale;
            }
#endif
#endif
        }
#end
    }
#end
#endif
}
