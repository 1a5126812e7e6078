// Normalizes and rotates the query and key heads of each batch row, and writes keys and values into the pages of the KV
// cache. One thread computes four values of a head: two rotated pairs.
// QK_NORM: where the threads of a head lie in one workgroup, they add up its squares together, else each for itself.
// Angles are fractions of a turn in 32-bit fixed point, so they wrap by themselves and are as accurate at position
// 100,000 as at 1. Sine and cosine are polynomials, because WGSL guarantees only 11 bits for the built-in functions.
#include rotation

#if KV_TYPE == F16
fn pack(v: vec2<f32>) -> u32 {
    return pack2x16float(clamp(v, vec2<f32>(-65504.0), vec2<f32>(65504.0)));
}
#endif

#if QK_NORM
// The sum of squares of each thread's values.
var<workgroup> squares: array<f32, $THREADS>;
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let quads = params.head_dim / 4u;
    let all_heads = params.heads + params.kv_heads + params.value_heads;
    let quad = index % quads;
    let head = (index / quads) % all_heads;
    let row = min(index / (quads * all_heads), params.n - 1u);
    let is_here = index / (quads * all_heads) < params.n;
    let source = head_at(row, head);
    let is_value = head >= params.heads + params.kv_heads;

    // Where the thread's two pairs lie in the head.
    let rotated = !is_value && 4u * quad >= params.start && 4u * quad < params.start + params.dims;
    var first = 4u * quad;
    var second = first + 2u;
#if PAIRS == Halves
    if (rotated) {
        first = params.start + (4u * quad - params.start) / 2u;
        second = first + params.dims / 2u;
    }
#endif
    var a = vec2<f32>(qkv[source + first], qkv[source + first + 1u]);
    var b = vec2<f32>(qkv[source + second], qkv[source + second + 1u]);
#if QK_NORM
    var sum = 0.0;
    if (quads % 4u == 0u && $THREADSu % quads == 0u) {
        squares[local] = fma(b.y, b.y, fma(b.x, b.x, fma(a.y, a.y, a.x * a.x)));
        workgroupBarrier();
        // Four chains, which all threads of a head read alike.
        var sums = vec4<f32>(0.0);
        let start = local - local % quads;
        for (var i = start; i < start + quads; i += 4u) {
            sums += vec4<f32>(squares[i], squares[i + 1u], squares[i + 2u], squares[i + 3u]);
        }
        sum = (sums.x + sums.y) + (sums.z + sums.w);
    } else {
        sum = head_squares(source);
    }
    if (!is_value || params.value_norm != 0u) {
        let scale = scale_of(sum);
        if (is_value) {
            a = a * scale;
            b = b * scale;
        } else if (head < params.heads) {
            a = (a * scale) * vec2<f32>(q_gain(first), q_gain(first + 1u));
            b = (b * scale) * vec2<f32>(q_gain(second), q_gain(second + 1u));
        } else {
            a = (a * scale) * vec2<f32>(k_gain(first), k_gain(first + 1u));
            b = (b * scale) * vec2<f32>(k_gain(second), k_gain(second + 1u));
        }
    }
#endif
    if (!is_here) { return; }
    let at = rows[row];
    if (rotated) {
#if PAIRS == Halves
        let u = rotate(vec2<f32>(a.x, b.x), first - params.start, at.x);
        let v = rotate(vec2<f32>(a.y, b.y), first - params.start + 1u, at.x);
        a = vec2<f32>(u.x, v.x);
        b = vec2<f32>(u.y, v.y);
#else
        a = rotate(a, (first - params.start) / 2u, at.x);
        b = rotate(b, (second - params.start) / 2u, at.x);
#endif
    }
    if (head < params.heads) {
        let to = (row * params.heads + head) * params.head_dim;
        let warmth = temperature(at.x);
        q[to + first] = a.x * warmth;
        q[to + first + 1u] = a.y * warmth;
        q[to + second] = b.x * warmth;
        q[to + second + 1u] = b.y * warmth;
        return;
    }
    let kv_head = (head - params.heads) % params.kv_heads;
    let to = (at.y * params.kv_heads + kv_head) * params.head_dim;
#if KV_TYPE == F16
    if (is_value) {
        values[(to + first) / 2u] = pack(a);
        values[(to + second) / 2u] = pack(b);
    } else {
        keys[(to + first) / 2u] = pack(a);
        keys[(to + second) / 2u] = pack(b);
    }
#else
    if (is_value) {
        values[to + first] = a.x;
        values[to + first + 1u] = a.y;
        values[to + second] = b.x;
        values[to + second + 1u] = b.y;
    } else {
        keys[to + first] = a.x;
        keys[to + first + 1u] = a.y;
        keys[to + second] = b.x;
        keys[to + second + 1u] = b.y;
    }
#endif
}
