// Multiplies values in place: every `row` of them by the next factor, or each weight by the factor of its expert.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> factors: array<f32>;
@group(0) @binding(2) var<storage, read_write> values: array<f32>;
#if EXPERT
@group(0) @binding(3) var<storage, read> chosen: array<u32>;
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    if (index >= params.count) { return; }
#if EXPERT
    let factor = min(chosen[index], params.factors - 1u);
#else
    let factor = min(index / params.row, params.factors - 1u);
#endif
    values[index] = values[index] * factors[factor];
}
