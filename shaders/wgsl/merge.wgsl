// Merges the splits of one query head of one batch row, in a fixed order: each thread takes every so manieth split of
// one quad. Rows whose context has a single split are already finished.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
#include splits

var<workgroup> peaks: array<f32, $THREADS>;
var<workgroup> totals: array<f32, $THREADS>;
var<workgroup> shared_values: array<vec4<f32>, $THREADS>;
var<workgroup> shared_position: u32;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let head = group.x;
    let row = group.z;
    if (local == 0u) { shared_position = rows[row].x; }
    let position = workgroupUniformLoad(&shared_position);
    if (position < $SPLITu) { return; }
    let splits = split_of(position) + 1u;
    let base = (row * params.heads + head) * params.splits * ($QUADSu + 1u);
    var peak = -1.0e30;
    for (var s = local; s < splits; s += $THREADSu) { peak = max(peak, parts[base + s * ($QUADSu + 1u) + $QUADSu].x); }
    peaks[local] = peak;
    workgroupBarrier();
    for (var i = 0u; i < min(splits, $THREADSu); i++) { peak = max(peak, peaks[i]); }
    let quad = local % $QUADSu;
    let part = local / $QUADSu;
    let partitions = $THREADSu / $QUADSu;
    var total = 0.0;
    var weighted = vec4<f32>(0.0);
    if (part < partitions) {
        for (var s = part; s < splits; s += partitions) {
            let start = base + s * ($QUADSu + 1u);
            let end = parts[start + $QUADSu];
            let weight = exp(end.x - peak);
            total = fma(end.y, weight, total);
            weighted = fma(vec4<f32>(weight), parts[start + quad], weighted);
        }
    }
    totals[local] = total;
    shared_values[local] = weighted;
    workgroupBarrier();
    if (local >= $QUADSu) { return; }
    total = 0.0;
    weighted = vec4<f32>(0.0);
    for (var i = 0u; i < partitions; i++) {
        total += totals[i * $QUADSu + local];
        weighted += shared_values[i * $QUADSu + local];
    }
    y[(row * params.heads + head) * $QUADSu + local] = weighted / total;
}
