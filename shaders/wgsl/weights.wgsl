// Quantized weights: `fetch16(base, i)` returns values 16i..16i+15 of the row that starts at byte `base`. It needs
// `weights: array<u32>` and `params.cols`. Values past the end of a row are zero (floats only; the other formats have
// whole blocks). Every value is finite, whatever the file holds: a scale that is not finite counts as zero, because
// WGSL may assume that NaN and infinity do not occur.

struct W16 { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// The four bytes at an even byte offset, because many block lengths are not a multiple of 4. Branch-free: software
// adapters take minutes to compile many branches.
fn word_at(offset: u32) -> u32 {
    let at = offset >> 2u;
    let shift = (offset & 2u) * 8u;
    return (weights[at] >> shift) | ((weights[at + 1u] << 1u) << (31u - shift));
}

// The 16 bytes at an even byte offset: reads five words where `word_at` would read eight.
fn words_at(offset: u32) -> vec4<u32> {
    let at = offset >> 2u;
    let shift = (offset & 2u) * 8u;
    let middle = vec3<u32>(weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let low = vec4<u32>(weights[at], middle);
    let high = vec4<u32>(middle, weights[at + 4u]);
    return (low >> vec4<u32>(shift)) | ((high << vec4<u32>(1u)) << vec4<u32>(31u - shift));
}

#include numbers

// The half float and the 16 bytes of an 18-byte block at an even byte offset: always reads five words.
struct Block18 { d: f32, q: vec4<u32> }

fn block18_at(block: u32) -> Block18 {
    let at = block >> 2u;
    let shift = (block & 2u) * 8u;
    let middle = vec3<u32>(weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let low = vec4<u32>(weights[at], middle);
    let high = vec4<u32>(middle, weights[at + 4u]);
    let q = ((low >> vec4<u32>(1u)) >> vec4<u32>(15u + shift)) | (high << vec4<u32>(16u - shift));
    return Block18(half_bits((low.x >> shift) & 0xffffu), q);
}

// The half float at an even byte offset.
fn half_at(offset: u32) -> f32 {
    return half_bits((weights[offset >> 2u] >> ((offset & 2u) * 8u)) & 0xffffu);
}

fn short_at(offset: u32) -> u32 {
    return (weights[offset >> 2u] >> ((offset & 2u) * 8u)) & 0xffffu;
}

fn byte_at(offset: u32) -> u32 {
    return (weights[offset >> 2u] >> ((offset & 3u) * 8u)) & 0xffu;
}

// Spreads the lowest four bits: each becomes the lowest bit of a byte.
fn spread_bits(bits: u32) -> u32 {
    return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

#include floats
#include simple
#include k_quants
#include four_bit
#include ternary
#include codebooks
