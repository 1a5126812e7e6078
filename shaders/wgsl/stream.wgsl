// Reads a buffer once, to measure the device's memory bandwidth: four independent loads in flight per thread.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> data: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    var acc = vec4<u32>(0u);
    for (var tile = group.x; tile < params.tiles; tile += groups.x) {
        let at = tile * (4u * $THREADSu) + local;
        let a = data[at];
        let b = data[at + $THREADSu];
        let c = data[at + 2u * $THREADSu];
        let d = data[at + 3u * $THREADSu];
        acc = acc ^ ((a ^ b) ^ (c ^ d));
    }
    y[group.x * $THREADSu + local] = acc.x ^ acc.y ^ acc.z ^ acc.w;
}
