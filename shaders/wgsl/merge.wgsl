// Merges the splits of one query head of one batch row, in order. Rows whose context has a single split are already
// finished.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let head = group.x;
    let row = group.z;
    let position = rows[row].x;
    if (position < $SPLITu || local >= $QUADSu) { return; }
    let splits = position / $SPLITu + 1u;
    let base = (row * params.heads + head) * params.splits * ($QUADSu + 1u);
    var peak = -1.0e30;
    for (var s = 0u; s < splits; s++) { peak = max(peak, parts[base + s * ($QUADSu + 1u) + $QUADSu].x); }
    var total = 0.0;
    var weighted = vec4<f32>(0.0);
    for (var s = 0u; s < splits; s++) {
        let start = base + s * ($QUADSu + 1u);
        let end = parts[start + $QUADSu];
        let weight = exp(end.x - peak);
        total = fma(end.y, weight, total);
        weighted = fma(vec4<f32>(weight), parts[start + local], weighted);
    }
    y[(row * params.heads + head) * $QUADSu + local] = weighted / total;
}
