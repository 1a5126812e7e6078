// Reads a buffer once, to measure the device's memory bandwidth.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> data: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let threads = groups.x * $THREADSu;
    var acc = vec4<u32>(0u);
    for (var i = id.x; i < params.quads; i += threads) { acc = acc ^ data[i]; }
    y[id.x] = acc.x ^ acc.y ^ acc.z ^ acc.w;
}
