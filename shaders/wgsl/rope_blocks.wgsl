// `rope` for a KV cache of quantized blocks (`kv_cache` gives their layout). 16 threads handle 64 values of a head: two
// blocks, whose scales share a word. A block's scale and steps depend on its own values only.
#include rotation

// The quads of all threads.
var<workgroup> quads: array<vec4<f32>, $THREADS>;

// A head's norm: the factor for its values, applied before their gain.
fn norm_scale(source: u32, is_value: bool) -> f32 {
#if QK_NORM
    if (!is_value || params.value_norm != 0u) {
        return scale_of(head_squares(source));
    }
#endif
    return 1.0;
}

// Value `i` of a head before its rotation.
fn normed(source: u32, head: u32, scale: f32, i: u32) -> f32 {
    let v = qkv[source + i];
#if QK_NORM
    if (head < params.heads) { return (v * scale) * q_gain(i); }
    if (head < params.heads + params.kv_heads) { return (v * scale) * k_gain(i); }
#endif
    // A value's norm has no gain.
    return v * scale;
}

// Value `i` of a head, rotated where RoPE applies.
fn turned(source: u32, head: u32, scale: f32, position: u32, i: u32) -> f32 {
    let start = params.start;
    if (head >= params.heads + params.kv_heads || i < start || i >= start + params.dims) {
        return normed(source, head, scale, i);
    }
#if PAIRS == Halves
    let half_dims = params.dims / 2u;
    let pair = (i - start) % half_dims;
    let low = start + pair;
    let high = low + half_dims;
#else
    let pair = (i - start) / 2u;
    let low = start + 2u * pair;
    let high = low + 1u;
#endif
    let v = rotate(vec2<f32>(normed(source, head, scale, low), normed(source, head, scale, high)), pair, position);
    return select(v.y, v.x, i == low);
}

// The step size of the block whose quads begin at `first`.
fn step_of(first: u32) -> f32 {
    // The value of the largest magnitude, with its sign; the first one on a tie.
    var peak = 0.0;
    for (var i = first; i < first + 8u; i++) {
        let v = quads[i];
        peak = select(peak, v.x, abs(v.x) > abs(peak));
        peak = select(peak, v.y, abs(v.y) > abs(peak));
        peak = select(peak, v.z, abs(v.z) > abs(peak));
        peak = select(peak, v.w, abs(v.w) > abs(peak));
    }
#if KV_TYPE == Q8_0
    return abs(peak) / 127.0;
#else
    return peak / -8.0;
#endif
}

// The factor that turns values into steps. Blocks of negligible magnitude become zeros.
fn inverse(step: f32) -> f32 {
    let some = abs(step) > 1.0e-30;
    return select(0.0, 1.0 / select(1.0, step, some), some);
}

// Encodes a half float, rounded to nearest (ties to even) and clamped to the largest finite one. Computed on the bits,
// because devices may round differently or flush subnormal numbers to zero.
fn half_of(v: f32) -> u32 {
    let magnitude = min(abs(v), 65504.0);
    let bits = max(bitcast<u32>(magnitude), 0x38800000u);
    let normal = (bits - 0x38000000u + 0xfffu + ((bits >> 13u) & 1u)) >> 13u;
    let small = u32(fma(magnitude, 16777216.0, 0.5));
    return select(normal, small, magnitude < 6.103515625e-5) | select(0u, 0x8000u, v < 0.0);
}

// Four values in their stored bits: one byte each, or four bits each in the lower half.
fn packed(v: vec4<f32>, inverted: f32) -> u32 {
#if KV_TYPE == Q8_0
    let x = v * inverted;
    let steps = vec4<i32>(clamp(sign(x) * floor(abs(x) + vec4<f32>(0.5)), vec4<f32>(-127.0), vec4<f32>(127.0)));
    let bytes = bitcast<vec4<u32>>(steps) & vec4<u32>(0xffu);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
#else
    let steps = vec4<u32>(clamp(fma(v, vec4<f32>(inverted), vec4<f32>(8.5)), vec4<f32>(0.0), vec4<f32>(15.0)));
    return steps.x | (steps.y << 4u) | (steps.z << 8u) | (steps.w << 12u);
#endif
}

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let parts = (params.head_dim + 63u) / 64u;
    let all_heads = params.heads + params.kv_heads + params.value_heads;
    let part = (index / 16u) % parts;
    let head = (index / (16u * parts)) % all_heads;
    let row = index / (16u * parts * all_heads);
    let first = 64u * part + 4u * (index % 16u);
    let is_here = row < params.n && first < params.head_dim;
    var at = vec4<u32>(0u);
    var v = vec4<f32>(0.0);
    if (is_here) {
        at = rows[row];
        let source = head_at(row, head);
        let scale = norm_scale(source, head >= params.heads + params.kv_heads);
        v = vec4<f32>(turned(source, head, scale, at.x, first), turned(source, head, scale, at.x, first + 1u),
                      turned(source, head, scale, at.x, first + 2u), turned(source, head, scale, at.x, first + 3u));
        if (head < params.heads) {
            let to = (row * params.heads + head) * params.head_dim + first;
            let warmth = temperature(at.x);
            q[to] = v.x * warmth;
            q[to + 1u] = v.y * warmth;
            q[to + 2u] = v.z * warmth;
            q[to + 3u] = v.w * warmth;
        }
    }
    quads[local] = v;
    workgroupBarrier();
    if (!is_here || head < params.heads) { return; }

    let kv_head = (head - params.heads) % params.kv_heads;
    let words = parts + params.head_dim / (4u * $WORD_QUADSu);
    let to = (at.y * params.kv_heads + kv_head) * words;
    let is_value = head >= params.heads + params.kv_heads;
    if (local % 16u == 0u) {
        // If the last block has no neighbour, all quads after it are zeros.
        let scales = half_of(step_of(local)) | (half_of(step_of(local + 8u)) << 16u);
        if (is_value) { values[to + part] = scales; } else { keys[to + part] = scales; }
    }
    let inverted = inverse(step_of(local & ~7u));
#if KV_TYPE == Q8_0
    let word = packed(v, inverted);
    let place = to + parts + first / 4u;
#else
    // Two quads share a word; the thread of the first one writes it.
    if (local % 2u == 1u) { return; }
    let word = packed(v, inverted) | (packed(quads[local + 1u], inverted) << 16u);
    let place = to + parts + first / 8u;
#endif
    if (is_value) { values[place] = word; } else { keys[place] = word; }
}
