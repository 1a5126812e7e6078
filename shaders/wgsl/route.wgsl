// The choice of a token's experts, and the RMSNorm of its hidden vector for them: a workgroup for each, because neither
// needs the other.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> gates: array<f32>;
@group(0) @binding(4) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> gain: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;
// Factors of the experts' weights, if they have some.
@group(0) @binding(7) var<storage, read> factors: array<f32>;

// A score that is not finite ranks after all others, and its expert has no id.
const LOWEST: f32 = -3.0e38;
const NO_EXPERT: u32 = 0xffffffffu;

#include choice
#include norm_row

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    if (group.z == 0u) {
        choose_experts(group.x, local);
    } else {
        norm_row(group.x, group.x, 1.0, local);
    }
}
