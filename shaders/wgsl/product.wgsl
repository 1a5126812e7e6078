// Bindings of the matrix-vector and matrix products.
// EXPERT: each vector uses the expert it chose; the slot table gives that expert's matrix.
// PACKED: the vectors come from `quantize.wgsl`.
// GROUPED: the vectors are the (token, expert) pairs that chose one expert, listed by `groups.wgsl`.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
#if PACKED
@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;
#else
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
#endif
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
#if BIAS
@group(0) @binding(4) var<storage, read> bias: array<f32>;
#endif
#if EXPERT
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> chosen: array<u32>;
#endif
#if GROUPED
@group(0) @binding(4) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> pairs: array<u32>;
#endif

#include weights
#if PACKED
#include packed_formats
#endif
