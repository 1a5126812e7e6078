// Bindings of the `scan` kernels, and what the recurrence of a head needs of a row besides its state.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> time_bias: array<f32>;
@group(0) @binding(4) var<storage, read> decay: array<f32>;
// Delta: the gain of a head's norm. Space: the factor of a head's input.
@group(0) @binding(5) var<storage, read> last: array<f32>;
#if STRATEGY == Workgroup
@group(0) @binding(6) var<storage, read_write> state: array<vec4<f32>>;
#else
@group(0) @binding(6) var<storage, read_write> state: array<f32>;
#endif
@group(0) @binding(7) var<storage, read_write> y: array<f32>;
#include runs

fn sigmoid(v: f32) -> f32 { return 1.0 / (1.0 + exp(clamp(-v, -80.0, 80.0))); }

// log(1 + exp(v)).
fn softplus(v: f32) -> f32 { return max(v, 0.0) + log(1.0 + exp(-abs(v))); }

// The numbers of a head in a row: Delta: beta and alpha; Space: the time step, twice.
fn numbers_of(row: u32, head: u32) -> vec2<f32> {
    let base = row * params.stride + params.beta;
#if RULE == Delta
    // They lie one after another, or by key head.
    var beta = head;
    var alpha = params.heads + head;
    if (params.grouped == 1u) {
        let each = params.heads / params.shared_heads;
        beta = head / each * 2u * each + head % each;
        alpha = beta + each;
    }
    return vec2<f32>(x[base + beta], x[base + alpha]);
#else
    return vec2<f32>(x[base + head]);
#endif
}

// How much of the state stays, and how much of a value is written.
fn step_of(numbers: vec2<f32>, head: u32) -> vec2<f32> {
    let time = softplus(numbers.y + time_bias[head]);
    let fade = exp(decay[head] * time);
#if RULE == Delta
    return vec2<f32>(fade, sigmoid(numbers.x));
#else
    return vec2<f32>(fade, time);
#endif
}

// Factors of keys and queries from their sums of squares.
fn scales_of(written: f32, asked: f32) -> vec2<f32> {
#if RULE == Delta
    return vec2<f32>(1.0 / sqrt(written + params.epsilon), 1.0 / (sqrt(asked + params.epsilon) * sqrt(f32($STATEu))));
#else
    return vec2<f32>(1.0);
#endif
}

// The head (or group) whose keys and queries a head uses, as an offset in a row.
fn shared_at(row: u32, head: u32) -> u32 {
    var shared_head = head % params.shared_heads;
    if (params.grouped == 1u) { shared_head = head / (params.heads / params.shared_heads); }
    return row * params.stride + shared_head * $STATEu;
}

fn gated(v: f32, gate: f32) -> f32 { return v * (gate * sigmoid(gate)); }
