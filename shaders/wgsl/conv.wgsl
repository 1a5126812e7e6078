// Causal convolution over the positions of a conversation: each channel has a filter of its own. The state of a channel
// is its last inputs.
// GATED: the input is b · x and c multiplies the result, rows are [b | c | x]. Otherwise SiLU follows, in place.
// One thread takes a channel through all rows of a run, so a result does not depend on the batch.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> taps: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
#if CONV == Gated
@group(0) @binding(4) var<storage, read> x: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
#else
@group(0) @binding(4) var<storage, read_write> x: array<f32>;
#endif
#if CONV == Biased
@group(0) @binding(5) var<storage, read> bias: array<f32>;
#endif
#include runs

var<private> past: array<f32, $PAST>;

fn keep(slot: u32, channel: u32) {
    let at = slot * params.slot + channel;
    for (var i = 0u; i < $PASTu; i++) { state[at + i * params.channels] = past[i]; }
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let channel = group.x * $THREADSu + lane;
    let first = group.z;
    let run = rows[first].w;
    let count = run_rows(run);
    if (channel >= params.channels || count == 0u) { return; }
    let source = first_slot(run);
    for (var i = 0u; i < $PASTu; i++) {
        past[i] = 0.0;
        if (source != 0u) { past[i] = state[(source - 1u) * params.slot + i * params.channels + channel]; }
    }
    let filter_at = channel * ($PASTu + 1u);
    for (var row = first; row < first + count; row++) {
        let at = row * params.stride + params.offset + channel;
#if CONV == Gated
        let input = x[at] * x[at + 2u * params.channels];
#else
        let input = x[at];
#endif
        var sum = 0.0;
        for (var i = 0u; i < $PASTu; i++) { sum = fma(taps[filter_at + i], past[i], sum); }
        sum = fma(taps[filter_at + $PASTu], input, sum);
        for (var i = 1u; i < $PASTu; i++) { past[i - 1u] = past[i]; }
        past[$PASTu - 1u] = input;
#if CONV == Gated
        y[row * params.channels + channel] = x[at + params.channels] * sum;
#else
#if CONV == Biased
        sum += bias[channel];
#endif
        // Clamp the exponent: WGSL may assume that infinities do not occur.
        x[at] = sum / (1.0 + exp(min(-sum, 80.0)));
#endif
        let copy = copy_slot(rows[row].w);
        if (copy != 0u) { keep(copy - 1u, channel); }
    }
    keep(live_slot(run), channel);
}
