// Decode: a quantized matrix times a few vectors, with what comes before and after it. 32 threads (a team) share two
// matrix rows at a time, so that a vector is read once for both; four teams a workgroup.
// NORM: the vectors are RMS-normed on the way: y = W · (x ∘ gain) / rms(x), the squares being summed beside the products.
// Up to three matrices in one binding (query, key, value); BIAS: with a bias each; else optionally added to y.
// GATED: the two rows are the same of gate and up, and silu(gate) · up is stored.
// EXPERT: group z is one chosen (row, expert) pair. SUM: the weighted sum over a row's experts, in router order.
// Every sum has a fixed order and explicit `fma`: $ROWS vectors at a time give the bits of one.
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

struct Unit { q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32> }

// A unit is 16 values in a row.
fn fetch(base: u32, i: u32) -> Unit {
    let w = fetch16(base, i);
    return Unit(w.a, w.b, w.c, w.d);
}
fn quad(i: u32, k: u32) -> u32 { return 4u * i + k; }
#endif

const TEAM = 32u;
var<workgroup> sums: array<vec2<f32>, $PARTIALS>;
#if NORM
var<workgroup> squares: array<f32, $PARTIALS>;
#endif

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Byte of a matrix row, where its result goes, and its bias.
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
#if GATED
    let row_0 = tile * ($THREADSu / TEAM) + team;
    let row_1 = row_0;
    let line_0 = line(min(row_0, params.rows - 1u));
    let line_1 = Line(line_0.base + params.up, line_0.y, line_0.bias);
#else
    let row_0 = 2u * (tile * ($THREADSu / TEAM) + team);
    let row_1 = row_0 + 1u;
    let line_0 = line(min(row_0, params.rows - 1u));
    let line_1 = line(min(row_1, params.rows - 1u));
#endif
    var live = row_0 < params.rows;
#repeat r $ROWS
    var acc_$r_0 = vec4<f32>(0.0);
    var acc_$r_1 = vec4<f32>(0.0);
    var square_$r = vec4<f32>(0.0);
#end
#if SUM
    if (live) {
        for (var k = 0u; k < params.used; k++) {
            let pair = group.z * params.used + k;
            let slot = slot_of(pair);
            if (slot < params.slot_count) {
                let base_0 = line_0.base + slot * params.expert_bytes;
                let base_1 = line_1.base + slot * params.expert_bytes;
                let at = pair * params.x_stride;
                var part_0 = vec4<f32>(0.0);
                var part_1 = vec4<f32>(0.0);
                for (var i = lane; i < params.units; i += TEAM) {
                    let w_0 = fetch(base_0, i);
                    let w_1 = fetch(base_1, i);
#repeat k $QUADS
                    let x_$k = x[at + quad(i, $ku)];
                    part_0 = fma(w_0.q$k, x_$k, part_0);
                    part_1 = fma(w_1.q$k, x_$k, part_1);
#end
                }
                acc_0_0 = fma(vec4<f32>(gates[pair]), part_0, acc_0_0);
                acc_0_1 = fma(vec4<f32>(gates[pair]), part_1, acc_0_1);
            }
        }
    }
#else
    var base_0 = line_0.base;
    var base_1 = line_1.base;
#if EXPERT
    let slot = slot_of(group.z);
    live = live && slot < params.slot_count;
    if (live) {
        base_0 += slot * params.expert_bytes;
        base_1 += slot * params.expert_bytes;
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
            let w_0 = fetch(base_0, i);
            let w_1 = fetch(base_1, i);
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
            acc_$r_0 = fma(w_0.q$k, v_$k_$r, acc_$r_0);
            acc_$r_1 = fma(w_1.q$k, v_$k_$r, acc_$r_1);
#end
#end
        }
    }
#endif
#repeat r $ROWS
    sums[$ru * $THREADSu + local] = vec2<f32>(across(acc_$r_0), across(acc_$r_1));
#if NORM
    squares[$ru * $THREADSu + local] = across(square_$r);
#endif
#end
    workgroupBarrier();
    for (var step = TEAM / 2u; step > 0u; step = step >> 1u) {
        if (lane < step) {
#repeat r $ROWS
            sums[$ru * $THREADSu + local] += sums[$ru * $THREADSu + local + step];
#if NORM
            squares[$ru * $THREADSu + local] += squares[$ru * $THREADSu + local + step];
#endif
#end
        }
        workgroupBarrier();
    }
    if (lane > 0u || !live) { return; }
#if SUM
    let at = group.z * params.y_stride;
    let sum = sums[local];
    var value_0 = sum.x;
    var value_1 = sum.y;
    if (params.add != 0u) { value_0 += y[at + line_0.y]; }
    y[at + line_0.y] = value_0;
    if (row_1 < params.rows) {
        if (params.add != 0u) { value_1 += y[at + line_1.y]; }
        y[at + line_1.y] = value_1;
    }
#else
#repeat r $ROWS
    if (first + $ru < params.n) {
        let at = (first + $ru) * params.y_stride;
        let sum = sums[$ru * $THREADSu + local];
#if NORM
        let scale = 1.0 / sqrt(squares[$ru * $THREADSu + local] / f32(4u * params.x_stride) + params.epsilon);
#else
        let scale = 1.0;
#endif
#if GATED
        let g = sum.x * scale;
        let u = sum.y * scale;
        // The exponent is kept finite: WGSL may assume that there is no infinity.
        y[at + line_0.y] = (g / (1.0 + exp(min(-g, 80.0)))) * u;
#else
#if BIAS
        y[at + line_0.y] = fma(sum.x, scale, bias[line_0.bias]);
        if (row_1 < params.rows) { y[at + line_1.y] = fma(sum.y, scale, bias[line_1.bias]); }
#else
        if (params.add != 0u) {
            y[at + line_0.y] = fma(sum.x, scale, y[at + line_0.y]);
            if (row_1 < params.rows) { y[at + line_1.y] = fma(sum.y, scale, y[at + line_1.y]); }
        } else {
            y[at + line_0.y] = sum.x * scale;
            if (row_1 < params.rows) { y[at + line_1.y] = sum.y * scale; }
        }
#endif
#endif
    }
#end
#endif
}
