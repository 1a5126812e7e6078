// IQ1, IQ2, IQ3: blocks of 256 values; groups of 8 or 4 values are looked up in a codebook.
#if CODEBOOK_AT
// Every codebook, four values (signed bytes) per word; this format's begins at $CODEBOOK_AT.
@group(0) @binding($CODEBOOKS) var<storage, read> codebooks: array<u32>;

fn codebook(at: u32) -> u32 {
    return codebooks[$CODEBOOK_ATu + at];
}

// Four values of a group, negated where a bit is set.
fn signed_four(word: u32, signs: u32, d: f32) -> vec4<f32> {
    let v = d * unsigned_bytes(word);
    return select(v, -v, (vec4<u32>(signs) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u));
}

// Eight signs from seven bits: the eighth makes the number of set bits even.
fn even_signs(bits: u32) -> u32 {
    let seven = bits & 127u;
    return seven | ((countOneBits(seven) & 1u) << 7u);
}

// 16 values from two groups of eight.
fn signed_groups(first: u32, first_signs: u32, second: u32, second_signs: u32, d: f32) -> W16 {
    return W16(signed_four(codebook(2u * first), first_signs, d),
               signed_four(codebook(2u * first + 1u), first_signs >> 4u, d),
               signed_four(codebook(2u * second), second_signs, d),
               signed_four(codebook(2u * second + 1u), second_signs >> 4u, d));
}

// The same for ternary values, each group shifted up or down.
fn moved_groups(first: u32, first_move: f32, second: u32, second_move: f32, d: f32) -> W16 {
    return W16(d * (signed_bytes(codebook(2u * first)) + vec4<f32>(first_move)),
               d * (signed_bytes(codebook(2u * first + 1u)) + vec4<f32>(first_move)),
               d * (signed_bytes(codebook(2u * second)) + vec4<f32>(second_move)),
               d * (signed_bytes(codebook(2u * second + 1u)) + vec4<f32>(second_move)));
}
#endif

#if FORMAT == IQ2_XXS
// Blocks of 66 bytes: scale (half); for each 32 values four one-byte indices, then a word of four times seven signs and
// a 4-bit scale.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 66u * (i >> 4u);
    let part = block + 2u + 8u * ((i >> 1u) & 7u);
    let half = i & 1u;
    let indices = word_at(part) >> (16u * half);
    let packed = word_at(part + 4u);
    let d = half_at(block) * (0.5 + f32(packed >> 28u)) * 0.25;
    let signs = packed >> (14u * half);
    return signed_groups(indices & 0xffu, even_signs(signs), (indices >> 8u) & 0xffu, even_signs(signs >> 7u), d);
}
#endif
#if FORMAT == IQ2_XS
// Blocks of 74 bytes: scale (half); for each 8 values a 9-bit index and seven signs; sixteen 4-bit scales.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 74u * (i >> 4u);
    let sub = i & 15u;
    let scale = (byte_at(block + 66u + (sub >> 1u)) >> (4u * (sub & 1u))) & 15u;
    let d = half_at(block) * (0.5 + f32(scale)) * 0.25;
    let both = word_at(block + 2u + 4u * sub);
    return signed_groups(both & 511u, even_signs(both >> 9u), (both >> 16u) & 511u, even_signs(both >> 25u), d);
}
#endif
#if FORMAT == IQ2_S
// Blocks of 82 bytes: scale (half), 32 bytes of indices, 32 bytes of signs, 32 upper bit pairs of indices, sixteen
// 4-bit scales.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 82u * (i >> 4u);
    let sub = i & 15u;
    let scale = (byte_at(block + 74u + (sub >> 1u)) >> (4u * (sub & 1u))) & 15u;
    let d = half_at(block) * (0.5 + f32(scale)) * 0.25;
    let low = short_at(block + 2u + 2u * sub);
    let signs = short_at(block + 34u + 2u * sub);
    let high = byte_at(block + 66u + (sub >> 1u)) >> (4u * (sub & 1u));
    return signed_groups((low & 0xffu) | ((high & 3u) << 8u), signs, (low >> 8u) | ((high & 12u) << 6u), signs >> 8u, d);
}
#endif
#if FORMAT == IQ3_XXS
// Blocks of 98 bytes: scale (half), 64 one-byte indices for 4 values each; for each 32 values a word of four times
// seven signs and a 4-bit scale.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 98u * (i >> 4u);
    let sub = i & 15u;
    let indices = word_at(block + 2u + 4u * sub);
    let packed = word_at(block + 66u + 4u * (sub >> 1u));
    let d = half_at(block) * (0.5 + f32(packed >> 28u)) * 0.5;
    let first = even_signs(packed >> (14u * (sub & 1u)));
    let second = even_signs(packed >> (14u * (sub & 1u) + 7u));
    return W16(signed_four(codebook(indices & 0xffu), first, d),
               signed_four(codebook((indices >> 8u) & 0xffu), first >> 4u, d),
               signed_four(codebook((indices >> 16u) & 0xffu), second, d),
               signed_four(codebook(indices >> 24u), second >> 4u, d));
}
#endif
#if FORMAT == IQ3_S
// Blocks of 110 bytes: scale (half), 64 one-byte indices for 4 values each, their ninth bits, 256 signs, eight 4-bit
// scales.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 110u * (i >> 4u);
    let sub = i & 15u;
    let part = sub >> 1u;
    let scale = (byte_at(block + 106u + (part >> 1u)) >> (4u * (part & 1u))) & 15u;
    let d = half_at(block) * (1.0 + 2.0 * f32(scale));
    let indices = word_at(block + 2u + 4u * sub);
    let ninth = byte_at(block + 66u + part) >> (4u * (sub & 1u));
    let signs = short_at(block + 74u + 2u * sub);
    return W16(signed_four(codebook((indices & 0xffu) | ((ninth & 1u) << 8u)), signs, d),
               signed_four(codebook(((indices >> 8u) & 0xffu) | ((ninth & 2u) << 7u)), signs >> 4u, d),
               signed_four(codebook(((indices >> 16u) & 0xffu) | ((ninth & 4u) << 6u)), signs >> 8u, d),
               signed_four(codebook((indices >> 24u) | ((ninth & 8u) << 5u)), signs >> 12u, d));
}
#endif
#if FORMAT == IQ1_S
// Blocks of 50 bytes: scale (half), 32 bytes of indices; for each 32 values four times three upper bits of indices, a
// 3-bit scale, and a bit that says whether to add or subtract an eighth.
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 50u * (i >> 4u);
    let sub = i & 15u;
    let packed = short_at(block + 34u + 2u * (sub >> 1u));
    let d = half_at(block) * f32(2u * ((packed >> 12u) & 7u) + 1u);
    let delta = select(0.125, -0.125, (packed & 0x8000u) != 0u);
    let low = short_at(block + 2u + 2u * sub);
    let high = packed >> (6u * (sub & 1u));
    return moved_groups((low & 0xffu) | ((high & 7u) << 8u), delta, (low >> 8u) | ((high & 56u) << 5u), delta, d);
}
#endif
#if FORMAT == IQ1_M
// Blocks of 56 bytes: 32 bytes of indices; for each 8 values three upper bits and a bit that says whether to add or
// subtract an eighth; four 16-bit words of four 3-bit scales, whose top nibbles form the block's scale (half).
fn fetch16(base: u32, i: u32) -> W16 {
    let block = base + 56u * (i >> 4u);
    let sub = i & 15u;
    let x = weights[(block >> 2u) + 12u];
    let y = weights[(block >> 2u) + 13u];
    let bits = ((x >> 12u) & 0xfu) | ((x >> 24u) & 0xf0u) | ((y >> 4u) & 0xf00u) | ((y >> 16u) & 0xf000u);
    let scales = select(x, y, sub >= 8u) >> (16u * ((sub >> 2u) & 1u) + 3u * (sub & 3u));
    let d = half_bits(bits) * f32(2u * (scales & 7u) + 1u);
    let low = short_at(block + 2u * sub);
    let high = byte_at(block + 32u + sub);
    let first = select(0.125, -0.125, (high & 8u) != 0u);
    let second = select(0.125, -0.125, (high & 128u) != 0u);
    return moved_groups((low & 0xffu) | ((high & 7u) << 8u), first, (low >> 8u) | ((high & 0x70u) << 4u), second, d);
}
#endif
