// Bindings of the fused decode kernels.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
#if WIDE
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
#else
@group(0) @binding(1) var<storage, read> weights: array<u32>;
#endif
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
#if NORM
@group(0) @binding(4) var<storage, read> gain: array<vec4<f32>>;
#endif
#if SCORED
@group(0) @binding(4) var<storage, read> scores: array<f32>;
#endif
#if EXPERT
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> chosen: array<u32>;
#endif
#if BIAS
@group(0) @binding($BIAS_AT) var<storage, read> bias: array<f32>;
#endif

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
