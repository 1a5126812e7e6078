// Bindings of the `rope` kernels, and the rotation of a pair of values.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
// Per batch row: position, row in the KV cache, first entry in the page table, 0.
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
// Per batch row: queries, keys, values.
@group(0) @binding(2) var<storage, read> qkv: array<f32>;
// RoPE table: rotation per position of each pair, as a fraction of a full turn times 2³².
@group(0) @binding(3) var<storage, read> rope_table: array<u32>;
@group(0) @binding(4) var<storage, read_write> q: array<f32>;
#if KV_TYPE == F32
@group(0) @binding(5) var<storage, read_write> keys: array<f32>;
@group(0) @binding(6) var<storage, read_write> values: array<f32>;
#else
@group(0) @binding(5) var<storage, read_write> keys: array<u32>;
@group(0) @binding(6) var<storage, read_write> values: array<u32>;
#endif
#if JOINED
// Both gains and the factors in one binding: only eight storage bindings are guaranteed on every device.
@group(0) @binding(7) var<storage, read> vectors: array<f32>;

fn q_gain(i: u32) -> f32 {
    if (params.gainless != 0u) { return 1.0; }
    return vectors[params.q_gain + i];
}
fn k_gain(i: u32) -> f32 {
    if (params.gainless != 0u) { return 1.0; }
    return vectors[params.k_gain + i];
}
fn factor_of(pair: u32) -> f32 { return vectors[params.factors + pair]; }
#else
#if QK_NORM
@group(0) @binding(7) var<storage, read> q_gains: array<f32>;
@group(0) @binding(8) var<storage, read> k_gains: array<f32>;

fn q_gain(i: u32) -> f32 {
    if (params.gainless != 0u) { return 1.0; }
    return q_gains[i];
}
fn k_gain(i: u32) -> f32 {
    if (params.gainless != 0u) { return 1.0; }
    return k_gains[i];
}
#endif
#if FACTORS
@group(0) @binding(7) var<storage, read> factors: array<f32>;

fn factor_of(pair: u32) -> f32 { return factors[pair]; }
#endif
#endif

// First value of a head in the projections of a row, where gates may lie between the queries.
fn head_at(row: u32, head: u32) -> u32 {
    let gates = params.gated * params.heads;
    let all_heads = params.heads + gates + params.kv_heads + params.value_heads;
    return (row * all_heads + head + params.gated * min(head, params.heads)) * params.head_dim;
}

#if QK_NORM
// The sum of a head's squares: four independent ones.
fn head_squares(source: u32) -> f32 {
    var sums = vec4<f32>(0.0);
    for (var i = source; i < source + params.head_dim; i += 4u) {
        let v = vec4<f32>(qkv[i], qkv[i + 1u], qkv[i + 2u], qkv[i + 3u]);
        sums = fma(v, v, sums);
    }
    return (sums.x + sums.y) + (sums.z + sums.w);
}

// The factor that normalizes a head, applied before its gain.
fn scale_of(squares: f32) -> f32 { return 1.0 / sqrt(squares / f32(params.head_dim) + params.epsilon); }
#endif

// Sine and cosine of a phase in 2⁻³² turns, returned as (cos, sin).
fn circle(phase: u32) -> vec2<f32> {
    let quadrant = (phase + 0x20000000u) >> 30u;
    let t = f32(bitcast<i32>(phase - (quadrant << 30u))) * 1.4629180792671596e-9;
    let t2 = t * t;
    let s = t * fma(t2, fma(t2, fma(t2, fma(t2, 2.7557319e-6, -1.9841270e-4), 8.3333333e-3), -1.6666667e-1), 1.0);
    let c = fma(t2, fma(t2, fma(t2, fma(t2, 2.4801587e-5, -1.3888889e-3), 4.1666667e-2), -0.5), 1.0);
    if (quadrant == 0u) { return vec2<f32>(c, s); }
    if (quadrant == 1u) { return vec2<f32>(-s, c); }
    if (quadrant == 2u) { return vec2<f32>(-c, -s); }
    return vec2<f32>(s, -c);
}

fn rotate(v: vec2<f32>, pair: u32, position: u32) -> vec2<f32> {
    var turn = rope_table[pair];
#if FACTORS
    let factor = factor_of(pair);
    if (factor != 1.0) { turn = u32(f32(turn) / factor); }
#endif
    let cs = circle(turn * position);
    return params.magnitude * vec2<f32>(fma(v.x, cs.x, -(v.y * cs.y)), fma(v.x, cs.y, v.y * cs.x));
}

// The factor of a query, which may grow with its position.
fn temperature(position: u32) -> f32 {
    if (params.step == 0u) { return 1.0; }
    return fma(log(f32((position + params.shift) / params.step) + 1.0), params.growth, 1.0);
}
