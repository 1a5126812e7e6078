// Bindings of the kernels that list pairs by expert.
// `tiles` holds (first pair in `pairs`, count, slot, 0); unused tiles have count 0.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> tiles: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> pairs: array<u32>;
