// Bindings of the matrix-vector and matrix products.
// EXPERT: each vector uses the expert it chose; the slot table gives that expert's matrix.
// PACKED: the vectors come from `quantize.wgsl`.
// MATRIX: they come from `halve.wgsl`.
// WIDE: the weights are read 16 bytes at a time, by other functions than those of `weights.wgsl`.
// GROUPED: the vectors are the (token, expert) pairs that chose one expert, listed by `groups.wgsl`.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
#if WIDE
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
#else
@group(0) @binding(1) var<storage, read> weights: array<u32>;
#endif
#if PACKED
@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;
#else
#if MATRIX
@group(0) @binding(2) var<storage, read> x: array<vec4<f16>>;
#else
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
#endif
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

#if WIDE
#else
#include weights
#endif
#if PACKED
#include packed_formats
#endif
