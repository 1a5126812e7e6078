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
#endif
#if SCORED
@group(0) @binding(4) var<storage, read> scores: array<f32>;
#endif
#if EXPERT
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> chosen: array<u32>;
#endif
#if BIAS
@group(0) @binding($BIAS_AT) var<storage, read> bias: array<f32>;
#endif

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

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
#if NORM
var<workgroup> slots_of_squares: array<f32, $SQUARES>;
#endif
#if SHARES
var<workgroup> sums: array<f32, $PARTIALS>;
#if NORM
var<workgroup> squares: array<f32, $VECTOR_PARTIALS>;
#endif
#endif

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

// Quad q of the vector that starts at quad `at`; zeros past its end.
fn input(at: u32, q: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), x[at + min(q, params.x_stride - 1u)], q < params.x_stride);
}
#if NORM
fn gain_at(q: u32) -> vec4<f32> { return gain[min(q, params.x_stride - 1u)]; }
#if SUMS

// From the factors, because a compiler may contract the addition of a product where it sees one.
fn quad_sum(v: vec4<f32>, gain: vec4<f32>) -> f32 {
    return fma(v.x, gain.x, fma(v.y, gain.y, fma(v.z, gain.z, v.w * gain.w)));
}
#endif
#else
#if SUMS

fn quad_sum(v: vec4<f32>) -> f32 { return across(v); }
#endif
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = local % TEAM;
    let team = local / TEAM;
    let tile = group.x + group.y * groups.x;
    let chunks = (params.units + $UNITSu * TEAM - 1u) / ($UNITSu * TEAM);
#repeat p $PAIRS
    let row_$p = $PAIRSu * (tile * ($THREADSu / TEAM) + team) + $pu;
    let line_$p = line(min(row_$p, params.rows - 1u));
    var base_$p_0 = line_$p.base;
#if GATED
    var base_$p_1 = line_$p.base + params.up;
#endif
#end
    let live = row_0 < params.rows;
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    var sum_$r_$p_$h = 0.0;
#end
#end
#if NORM
#repeat j $LOADS
    var square_$r_$j = vec4<f32>(0.0);
#end
#endif
#end
#if EXPERT
    let slot = slot_of(group.z);
    if (slot >= params.slot_count) { return; }
#repeat p $PAIRS
#repeat h $HALVES
    base_$p_$h += slot * params.expert_bytes;
#end
#end
#if BIAS
    let bias_at = (params.slot_first + slot) * params.bias_stride;
#endif
    let first = group.z;
    let at_0 = (group.z / params.used) * params.x_stride;
#else
    let first = group.z * $ROWSu;
#repeat r $ROWS
    let at_$r = (params.x_first + min(first + $ru, params.n - 1u)) * params.x_stride;
#end
#endif
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
    workgroupBarrier();
#repeat r $ROWS
    var squared_$r = 0.0;
    for (var m = 0u; m < CHUNK; m += TEAM) { squared_$r += slots_of_squares[$ru * CHUNK + m + lane]; }
#end
#endif
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
#repeat r $ROWS
    if (first + $ru < params.n) {
        let at = (first + $ru) * params.y_stride;
#if NORM
        let scale = params.scale * (1.0 / sqrt(squared_$r / f32(4u * params.x_stride) + params.epsilon));
#endif
#if SCORED
        // As in `residual`.
        let scale = params.scale * (1.0 / (1.0 + exp(min(-scores[params.bias_0 + first + $ru], 80.0))));
#endif
#repeat p $PAIRS
        if (row_$p < params.rows) {
#if NORM
#repeat h $HALVES
            let sum_$h = sum_$r_$p_$h * scale;
#end
#else
#repeat h $HALVES
            let sum_$h = sum_$r_$p_$h;
#end
#endif
#if GATED
#if BIAS
            let up = sum_1 + bias[bias_at + params.bias_1 + row_$p];
            y[at + line_$p.y] = activated(sum_0 + bias[bias_at + line_$p.bias], up);
#else
            y[at + line_$p.y] = activated(sum_0, sum_1);
#endif
#else
#if EXPERT
#if BIAS
            y[at + line_$p.y] = sum_0 + bias[bias_at + line_$p.bias];
#else
            y[at + line_$p.y] = sum_0;
#endif
#else
#if NORM
#if BIAS
            y[at + line_$p.y] = fma(sum_$r_$p_0, scale, bias[line_$p.bias]);
#else
            y[at + line_$p.y] = sum_0;
#endif
#else
#if SCORED
            y[at + line_$p.y] = fma(sum_0, scale, y[at + line_$p.y]);
#else
            var result = sum_0;
#if BIAS
            result += bias[line_$p.bias];
#endif
            if (params.add != 0u) { result += y[at + line_$p.y]; }
            y[at + line_$p.y] = result;
#endif
#endif
#endif
#endif
        }
#end
    }
#end
}
