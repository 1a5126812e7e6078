// Merges the splits of one query head of one batch row, in a fixed order: each thread takes every so manieth split of
// one quad. Rows whose context has a single split are already finished.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
#include splits

var<workgroup> peaks: array<f32, $THREADS>;
// Maxima of every sixteenth of `peaks`.
var<workgroup> sixteenths: array<f32, 16>;
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
    if (local < 16u) {
        for (var i = local; i < $THREADSu; i += 16u) { peak = max(peak, peaks[i]); }
        sixteenths[local] = peak;
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) { peak = max(peak, sixteenths[i]); }
    let quad = local % $QUADSu;
    let part = local / $QUADSu;
    let partitions = $THREADSu / $QUADSu;
    var total = 0.0;
    var weighted = vec4<f32>(0.0);
    // Four splits are on their way at a time.
    for (var s = select(splits, part, part < partitions); s < splits; s += 4u * partitions) {
#repeat u 4
        let s_$u = s + $uu * partitions;
        let begin_$u = base + min(s_$u, splits - 1u) * ($QUADSu + 1u);
        let end_$u = parts[begin_$u + $QUADSu];
        let values_$u = parts[begin_$u + quad];
#end
#repeat u 4
        let weight_$u = select(0.0, exp(end_$u.x - peak), s_$u < splits);
        total = fma(end_$u.y, weight_$u, total);
        weighted = fma(vec4<f32>(weight_$u), values_$u, weighted);
#end
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
