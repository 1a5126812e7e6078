// KV cache reads for every attention kernel: `key(row, i)` and `value(row, i)` return values 4i to 4i + 3 of a head at
// a position, where `row` is (row in the cache) × (key heads) + (key head).
// A quantized head is the scales of its blocks of 32 values (half floats, two per word), then the values in order: four
// bytes per word, or eight times four bits. Scale and steps are those of ggml, but ggml stores each scale before its
// block.
#if KV_TYPE == F32
@group(0) @binding(4) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> values: array<vec4<f32>>;

fn key(row: u32, i: u32) -> vec4<f32> { return keys[row * $QUADSu + i]; }
fn value(row: u32, i: u32) -> vec4<f32> { return values[row * $QUADSu + i]; }
#endif
#if KV_TYPE == F16
@group(0) @binding(4) var<storage, read> keys: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read> values: array<vec2<u32>>;

fn halves(v: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
fn key(row: u32, i: u32) -> vec4<f32> { return halves(keys[row * $QUADSu + i]); }
fn value(row: u32, i: u32) -> vec4<f32> { return halves(values[row * $QUADSu + i]); }
#endif
#if QUANTIZED
#include numbers

@group(0) @binding(4) var<storage, read> keys: array<u32>;
@group(0) @binding(5) var<storage, read> values: array<u32>;

// Dequantizes quad `i` from the word of its block's scale and the word that holds the quad.
fn dequantized(scales: u32, word: u32, i: u32) -> vec4<f32> {
    let scale = half_bits((scales >> ((i & 8u) << 1u)) & 0xffffu);
#if KV_TYPE == Q8_0
    return scale * signed_bytes(word);
#else
    let bits = (vec4<u32>(word >> ((i & 1u) << 4u)) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return scale * (vec4<f32>(bits) - vec4<f32>(8.0));
#endif
}

fn key(row: u32, i: u32) -> vec4<f32> {
    let head = row * $HEAD_WORDSu;
    return dequantized(keys[head + (i >> 4u)], keys[head + $SCALE_WORDSu + i / $WORD_QUADSu], i);
}

fn value(row: u32, i: u32) -> vec4<f32> {
    let head = row * $HEAD_WORDSu;
    return dequantized(values[head + (i >> 4u)], values[head + $SCALE_WORDSu + i / $WORD_QUADSu], i);
}
#endif
