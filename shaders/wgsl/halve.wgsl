// Vectors as half floats for the matrix units: each is scaled by a power of two, so that its largest value lies in
// [2^14, 2^15) and none overflows; the exponent follows the values. One workgroup per vector.
enable f16;
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f16>>;

var<workgroup> most: array<u32, $THREADS>;

fn bits(v: vec4<f32>) -> u32 {
    let m = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
    return max(max(m.x, m.y), max(m.z, m.w));
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let vector = group.x + group.y * groups.x;
    if (vector >= params.n) { return; }
    let first = vector * params.x_stride;
    // Magnitudes are compared as bits, in which NaN and infinity are the largest.
    var m = 0u;
    for (var q = local; q < params.quads; q += $THREADSu) { m = max(m, bits(x[first + q])); }
    most[local] = m;
    for (var half = $THREADSu / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (local < half) { most[local] = max(most[local], most[local + half]); }
    }
    workgroupBarrier();
    let largest = most[0];
    // A vector with a NaN or an infinity gets an exponent that stands for NaN, so that it does not get lost.
    let lost = largest >= 0x7f800000u;
    let exponent = clamp(i32(largest >> 23u) - 141, -100, 113);
    let factor = bitcast<f32>(u32(127 - exponent) << 23u);
    let out = vector * params.y_stride;
    // What pads the vector to whole steps is zero.
    for (var q = local; q < params.y_stride - 2u; q += $THREADSu) {
        let v = x[first + min(q, params.quads - 1u)] * factor;
        y[out + q] = vec4<f16>(select(vec4<f32>(0.0), v, vec4<bool>(q < params.quads && !lost)));
    }
    if (local == 0u) { y[out + params.y_stride - 2u] = vec4<f16>(select(f16(exponent), 1000.0h, lost)); }
}
