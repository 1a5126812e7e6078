// The end of a block whose experts have a network beside them: the RMSNorms of both outputs, the RMSNorm of their sum,
// its addition to the hidden vector, and the factor of the block, if it has one. A workgroup takes a row; the bits are
// those of `norm_part.wgsl`, `residual.wgsl` twice and `scale_by.wgsl`.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
// Output of the network beside, and of the experts. The second is overwritten.
@group(0) @binding(1) var<storage, read> network: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> experts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> gain_network: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> gain_experts: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> gain: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> factor: array<f32>;

var<workgroup> parts: array<vec2<f32>, $THREADS>;

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Sums over all threads of the workgroup, in the tree of `row_sum.wgsl`.
fn row_sums(value: vec2<f32>, lane: u32) -> vec2<f32> {
    workgroupBarrier();
    parts[lane] = value;
    workgroupBarrier();
    for (var step = $THREADSu / 2u; step > 0u; step = step >> 1u) {
        if (lane < step) { parts[lane] += parts[lane + step]; }
        workgroupBarrier();
    }
    return parts[0];
}

fn inverse_root(sum: f32) -> f32 { return 1.0 / sqrt(sum / f32(4u * params.width) + params.epsilon); }

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = group.x * params.width;
    let last = params.width - 1u;
    let of_block = select(1.0, factor[0], params.scaled != 0u);
    // The first quads of each thread are all on their way at once, and stay.
#repeat j 4
    let at_$j = lane + $ju * $THREADSu;
    let here_$j = min(at_$j, last);
    let a_$j = network[at + here_$j];
    var b_$j = experts[at + here_$j];
    let y_$j = y[at + here_$j];
    let gain_a_$j = gain_network[here_$j];
    let gain_b_$j = gain_experts[here_$j];
    let gain_$j = gain[here_$j];
#end
    var of_network = vec4<f32>(0.0);
    var of_experts = vec4<f32>(0.0);
#repeat j 4
    of_network = select(of_network, fma(a_$j, a_$j, of_network), at_$j < params.width);
    of_experts = select(of_experts, fma(b_$j, b_$j, of_experts), at_$j < params.width);
#end
    for (var i = lane + 4u * $THREADSu; i < params.width; i += $THREADSu) {
        let a = network[at + i];
        let b = experts[at + i];
        of_network = fma(a, a, of_network);
        of_experts = fma(b, b, of_experts);
    }
    let sums = row_sums(vec2<f32>(across(of_network), across(of_experts)), lane);
    let scale_network = inverse_root(sums.x);
    let scale_experts = inverse_root(sums.y);
    var of_both = vec4<f32>(0.0);
#repeat j 4
    b_$j = fma(a_$j * scale_network, gain_a_$j, (b_$j * scale_experts) * gain_b_$j);
    of_both = select(of_both, fma(b_$j, b_$j, of_both), at_$j < params.width);
#end
    for (var i = lane + 4u * $THREADSu; i < params.width; i += $THREADSu) {
        let normed = (experts[at + i] * scale_experts) * gain_experts[i];
        let both = fma(network[at + i] * scale_network, gain_network[i], normed);
        experts[at + i] = both;
        of_both = fma(both, both, of_both);
    }
    let scale = params.scale * inverse_root(row_sums(vec2<f32>(across(of_both), 0.0), lane).x);
#repeat j 4
    if (at_$j < params.width) { y[at + at_$j] = fma(b_$j * scale, gain_$j, y_$j) * of_block; }
#end
    for (var i = lane + 4u * $THREADSu; i < params.width; i += $THREADSu) {
        y[at + i] = fma(experts[at + i] * scale, gain[i], y[at + i]) * of_block;
    }
}
