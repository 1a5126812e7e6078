// Quantized weights: `fetch16(base, i)` gives values 16i..16i+15 of the row that starts at byte `base`.
// Uses `weights: array<u32>` and `params.cols`. Values past the end of a row are zero (floats only; the other formats have
// whole blocks). Every value is finite, whatever the file holds: a scale that is not a finite number counts as zero, because
// WGSL may assume that there is no NaN and no infinity.

struct W16 { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// The four bytes at an even byte offset: many blocks have a length that is no multiple of 4. Without a branch: software
// adapters take minutes to compile many of them.
fn word_at(offset: u32) -> u32 {
    let at = offset >> 2u;
    let shift = (offset & 2u) * 8u;
    return (weights[at] >> shift) | ((weights[at + 1u] << 1u) << (31u - shift));
}

#include numbers

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

// The lowest four bits, each as the lowest bit of a byte.
fn spread_bits(bits: u32) -> u32 {
    return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

#include floats
#include simple
#include k_quants
#include four_bit
#include ternary
#include codebooks
