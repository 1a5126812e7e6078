// Tiled product for chunks of a prompt: y[r] = W · x[r] (+ bias), or added to what y holds. A workgroup of 64 threads
// makes a tile of 32 vectors × 32 matrix rows, each thread 4 × 4 of it; the sum over columns runs in a fixed order.
// GROUPED: the vectors are the (row, expert) pairs that chose one expert, listed by `groups.wgsl`.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
#if BIAS
@group(0) @binding(4) var<storage, read> bias: array<f32>;
#endif
#if GROUPED
@group(0) @binding(4) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> pairs: array<u32>;
#endif

#include weights

var<workgroup> left: array<f32, 1024>;
var<workgroup> right: array<f32, 1024>;
#if GROUPED
var<workgroup> job: vec4<u32>;
#endif

fn place(at: u32, v: vec4<f32>) {
    left[at] = v.x;
    left[at + 32u] = v.y;
    left[at + 64u] = v.z;
    left[at + 96u] = v.w;
}

fn place_weights(at: u32, v: vec4<f32>) {
    right[at] = v.x;
    right[at + 32u] = v.y;
    right[at + 64u] = v.z;
    right[at + 96u] = v.w;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let first_row = 32u * (group.x + group.y * groups.x);
#if GROUPED
    // x: first pair in the list, y: how many, z: slot of the expert (all ones: none of ours).
    if (local == 0u) { job = tiles[group.z]; }
    let tile = workgroupUniformLoad(&job);
    if (tile.y == 0u || tile.z < params.slot_first || tile.z - params.slot_first >= params.slot_count) { return; }
    let first = tile.x;
    let last = tile.x + tile.y - 1u;
    let expert = (tile.z - params.slot_first) * params.expert_bytes;
#else
    let first = 32u * group.z;
    let last = params.n - 1u;
    let expert = 0u;
#endif
    // What this thread loads: half a row of weights (two chunks a step), and a quarter of a vector's 32 columns twice.
    let load_row = local / 2u;
    let load_half = local % 2u;
    let weight_base = expert + min(first_row + load_row, params.rows - 1u) * params.row_bytes;
    let vector = min(first + load_row, last);
#if GROUPED
    let pair = pairs[vector];
    var x_base = pair * params.x_stride;
    if (params.by_pair == 0u) { x_base = (pair / params.used) * params.x_stride; }
#else
    let x_base = vector * params.x_stride;
#endif
    let tx = local % 8u;
    let ty = local / 8u;
    var acc_0 = vec4<f32>(0.0);
    var acc_1 = vec4<f32>(0.0);
    var acc_2 = vec4<f32>(0.0);
    var acc_3 = vec4<f32>(0.0);
    for (var step = 0u; step < params.chunks; step += 2u) {
        let chunk = step + load_half;
        let at = load_half * 512u + load_row;
        if (chunk < params.chunks) {
            let w = fetch16(weight_base, chunk);
            place_weights(at, w.a);
            place_weights(at + 128u, w.b);
            place_weights(at + 256u, w.c);
            place_weights(at + 384u, w.d);
        } else {
            for (var k = 0u; k < 16u; k++) { right[at + 32u * k] = 0.0; }
        }
        for (var k = 0u; k < 4u; k++) {
            let col = 4u * chunk + k;
            var v = vec4<f32>(0.0);
            if (col < params.x_stride) { v = x[x_base + col]; }
            place(at + 128u * k, v);
        }
        workgroupBarrier();
        for (var k = 0u; k < 32u; k++) {
            let l = 32u * k + 4u * ty;
            let r = 32u * k + 4u * tx;
            let w = vec4<f32>(right[r], right[r + 1u], right[r + 2u], right[r + 3u]);
            acc_0 = fma(vec4<f32>(left[l]), w, acc_0);
            acc_1 = fma(vec4<f32>(left[l + 1u]), w, acc_1);
            acc_2 = fma(vec4<f32>(left[l + 2u]), w, acc_2);
            acc_3 = fma(vec4<f32>(left[l + 3u]), w, acc_3);
        }
        workgroupBarrier();
    }
    let row = first_row + 4u * tx;
#repeat a 4
    if (first + 4u * ty + $au <= last) {
#if GROUPED
        let at = pairs[first + 4u * ty + $au] * params.y_stride + params.y_offset + row;
#else
        let at = (first + 4u * ty + $au) * params.y_stride + params.y_offset + row;
#endif
#repeat b 4
        if (row + $bu < params.rows) {
            var value = acc_$a[$bu];
#if BIAS
            value += bias[row + $bu];
#endif
            if (params.add != 0u) { value += y[at + $bu]; }
            y[at + $bu] = value;
        }
#end
    }
#end
}
